"""Questions about single nodes of finished embeddings: the row of an id, and the rows nearest to a row."""

import operator
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from nodejepa.diagnostics import Embeddings, check_embeddings
from nodejepa.errors import DataError, EvaluationError, nearest
from nodejepa.graph_checks import in_node_order
from nodejepa.machine import progress_bar

Metric: TypeAlias = Literal["cosine", "euclidean"]
Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[np.int64]

_SCORES = 2**23  # scores of one block of queries against all rows: 64 MB
_ELEMENTS = 2**20  # embedding values converted to float64 at one time: 8 MB, a few times over
_COMPARED = 20_000  # ids that are compared letter by letter to find a near miss; that is slow


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The nearest rows of each query, nearest first, the query itself left out.

    ``scores`` are cosine similarities (higher is nearer) or euclidean distances (lower is nearer). ``ids``
    are those of ``rows``, where ids were given.
    """

    rows: Rows  # [queries, k]
    scores: Floats  # [queries, k]
    metric: Metric
    ids: npt.NDArray[Any] | None = None  # [queries, k]


def nearest_neighbours(
    embeddings: Embeddings,
    rows: npt.ArrayLike | None = None,
    *,
    ids: npt.ArrayLike | None = None,
    k: int = 10,
    metric: Metric = "cosine",
) -> Neighbours:
    """The ``k`` nearest rows of some rows of a matrix: every row is compared, a block at a time.

    Args:
        embeddings: ``[nodes, d]``, dense or SciPy sparse; a frame is aligned with ``ids`` by its index.
        rows: which nodes to ask for, by row number, or by id where there are ``ids``; all if not given.
        ids: one for every row, such as ``graph.node_ids``; by default the index of a frame.
        k: how many; all other nodes if there are fewer.
        metric: ``"cosine"`` similarity (a row of zeros has 0 to every other) or ``"euclidean"`` distance.

    >>> z = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> nearest_neighbours(z, [0], k=2).rows.tolist()
    [[1, 2]]
    >>> nearest_neighbours(z, ["eve"], ids=["ann", "bob", "eve"], k=1).ids.tolist()
    [['bob']]
    """
    if metric not in get_args(Metric):
        raise EvaluationError(f"metric {metric!r} is unknown", fix='Use "cosine" or "euclidean".')
    try:
        count = operator.index(k)
    except TypeError:
        count = 0
    if count < 1:
        raise EvaluationError(f"k is {k!r}", fix="Ask for at least one neighbour.")
    names = frame_ids(embeddings) if ids is None else np.asarray(ids)
    z = check_embeddings(embeddings if ids is None else in_node_order(embeddings, names, where="embeddings"))
    queries = np.arange(z.shape[0]) if rows is None else rows_asked(rows, z.shape[0], names)
    width = min(count, z.shape[0] - 1)
    found, scores = np.empty((queries.size, width), dtype=np.int64), np.empty((queries.size, width))
    at_once = max(1, min(_SCORES // z.shape[0], _ELEMENTS // z.shape[1]))
    with progress_bar("Finding neighbours", total=queries.size) as advance:
        for start in range(0, queries.size if width else 0, at_once):
            block = queries[start : start + at_once]
            closeness = _closeness(z, block, metric)
            closeness[np.arange(len(block)), block] = -np.inf  # the query itself
            best = np.argpartition(-closeness, width - 1, axis=1)[:, :width]
            best.sort(axis=1)  # of equally close rows the first one goes first
            near = np.take_along_axis(closeness, best, axis=1)
            order = np.argsort(-near, axis=1, kind="stable")
            found[start : start + at_once] = np.take_along_axis(best, order, axis=1)
            near = np.take_along_axis(near, order, axis=1)
            scores[start : start + at_once] = near if metric == "cosine" else -near
            advance(len(block))
    return Neighbours(found, scores, metric, None if names is None else names[found])


def _closeness(z: Embeddings, queries: Rows, metric: Metric) -> Floats:
    """Cosine similarities or negative distances of some rows to all, ``[queries, nodes]``."""
    asked, step = _doubles(z[queries]), max(1, _ELEMENTS // z.shape[1])
    closeness = np.empty((queries.size, z.shape[0]))
    for start in range(0, z.shape[0], step):
        others = _doubles(z[start : start + step])
        if metric == "cosine":
            part = _unit(asked) @ _unit(others).T
        else:
            squares = np.sum(asked**2, axis=1)[:, None] + np.sum(others**2, axis=1) - 2 * asked @ others.T
            part = -np.sqrt(np.maximum(squares, 0))
        closeness[:, start : start + step] = part
    return closeness


def _doubles(part: Any) -> Floats:
    return np.asarray(part if isinstance(part, np.ndarray) else part.toarray(), dtype=np.float64)


def _unit(rows: Floats) -> Floats:
    """Rows of length 1; rows of zeros stay."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Floats = rows / np.where(length > 0, length, 1.0)
    return unit


def frame_ids(embeddings: Any) -> npt.NDArray[Any] | None:
    """The index of a pandas frame, which names its rows."""
    index: Any = getattr(embeddings, "index", None)
    return np.asarray(index) if hasattr(index, "is_unique") else None


def rows_asked(asked: npt.ArrayLike, size: int, ids: npt.NDArray[Any] | None = None) -> Rows:
    """Numbers of the rows that are asked for, by their ids where there are any."""
    rows = np.atleast_1d(np.asarray(asked))
    if rows.size == 0:
        return np.empty(0, dtype=np.int64)
    if ids is not None:
        if len(ids) != size:
            raise EvaluationError(f"{len(ids)} ids for {size} rows", fix="Give one id for every row.")
        return find_rows(ids, rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise EvaluationError(
            "rows are no list of row numbers", fix="Give whole numbers, 0 for the first row."
        )
    outside = rows[(rows < 0) | (rows >= size)]
    if outside.size:
        raise EvaluationError(f"there is no row {outside[0]}", fix=f"Rows are numbered 0 to {size - 1}.")
    return rows.astype(np.int64)


def find_rows(ids: Sequence[Any] | npt.NDArray[Any], wanted: Iterable[Any]) -> Rows:
    """The row of each wanted id, in the order they were asked for.

    >>> find_rows(["ann", "bob", "eve"], ["eve", "ann"]).tolist()
    [2, 0]
    """
    names = _plain(ids)
    places = {name: row for row, name in enumerate(names)}
    if len(places) < len(names):
        twice = next(name for row, name in enumerate(names) if places[name] != row)
        raise DataError(f"two rows have the same id {twice!r}", fix="Ids must be unique.")
    rows, asked = [], _plain(wanted)
    if any(isinstance(name, bool) for name in asked) and not any(isinstance(name, bool) for name in names):
        raise DataError(
            "a mask of True and False names no nodes", where="ids", fix="Give the ids themselves: ids[mask]."
        )
    for name in asked:
        if not isinstance(name, Hashable) or name not in places:
            raise DataError(f"there is no node {name!r}", where="ids", fix=_advice(str(name), names))
        rows.append(places[name])
    return np.array(rows, dtype=np.int64)


def find_row(ids: npt.NDArray[Any], text: str) -> int:
    """The row whose id is written ``text``: whole numbers are compared as numbers, all else as text."""
    names = _plain(ids)
    wanted: Any = text
    if ids.dtype.kind not in "iu":
        names = [str(name) for name in names]
    elif re.fullmatch(r"\s*[+-]?[0-9]{1,40}\s*", text):
        wanted = int(text)
    return int(find_rows(names, [wanted])[0])


def _plain(values: Any) -> list[Any]:
    """Python's own values: NumPy's hash alike but print differently."""
    return list(values.tolist() if hasattr(values, "tolist") else values)


def _advice(text: str, names: list[Any]) -> str:
    """The nearest id there is, else what ids look like here."""
    if names and all(isinstance(name, int) for name in names):
        return f"The ids here are whole numbers from {min(names)} to {max(names)}."
    known = [str(name) for name in names[:_COMPARED]]
    near = nearest(text, known, 0.7)
    return f"Did you mean {near!r}?" if near else f"The ids here look like {', '.join(map(repr, known[:3]))}."
