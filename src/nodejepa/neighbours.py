"""The nodes nearest to a node in embedding space, exactly, a block of rows at a time.

A matrix product finds, for every query, the few rows that can be among its k nearest; their scores are then
computed pair by pair in float64. So two rows with the same numbers have the same score wherever they stand,
and such ties go to the row that comes first.
"""

import operator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from nodejepa.diagnostics import Embeddings, check_embeddings
from nodejepa.errors import EvaluationError
from nodejepa.lookup import find_rows
from nodejepa.progress import progress_bar

Metric: TypeAlias = Literal["cosine", "euclidean"]
Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[np.int64]

_SCORES = 2**23  # scores of one block of queries against all rows: 64 MB
_ELEMENTS = 2**20  # embedding values converted to float64 at one time: 8 MB, a few times over
_LARGEST = 1e150  # its square still is a float64


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
    """The ``k`` nearest rows of some rows of a matrix.

    Args:
        embeddings: ``[nodes, d]``, dense or SciPy sparse.
        rows: which nodes to ask for, by row number, or by id where ``ids`` are given; all if not given.
        ids: one for every row, such as ``graph.node_ids``.
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
    z = check_embeddings(embeddings)
    if max(abs(float(z.max())), abs(float(z.min()))) > _LARGEST:
        raise EvaluationError("the embeddings hold numbers above 1e150", fix="Scale them down first.")
    names = None if ids is None else np.asarray(ids)
    queries = np.arange(z.shape[0]) if rows is None else rows_asked(rows, z.shape[0], names)
    width = min(_check_k(k), z.shape[0] - 1)
    space = _Space(z, metric)
    found, scores = np.empty((queries.size, width), dtype=np.int64), np.empty((queries.size, width))
    at_once = max(1, min(_SCORES // z.shape[0], _ELEMENTS // z.shape[1]))
    with progress_bar("Finding neighbours", total=queries.size) as advance:
        for start in range(0, queries.size if width else 0, at_once):
            block = queries[start : start + at_once]
            closeness, error = space.closeness(block)
            closeness[np.arange(block.size), block] = -np.inf  # nobody is their own neighbour
            for i, query in enumerate(block):
                least = np.partition(closeness[i], -width)[-width] - 2 * error[i]
                near = np.flatnonzero(closeness[i] >= least)
                exact = space.scores(query, near)
                order = np.lexsort((near, exact if metric == "euclidean" else -exact))[:width]
                found[start + i], scores[start + i] = near[order], exact[order]
            advance(block.size)
    return Neighbours(found, scores, metric, None if names is None else names[found])


class _Space:
    """Closeness of rows under a metric: fast with a known error, or exact for chosen pairs."""

    def __init__(self, z: Embeddings, metric: Metric) -> None:
        self.z, self.metric = z, metric
        self.step = max(1, _ELEMENTS // z.shape[1])
        # distances do not change when all rows are moved; around 0 the product loses fewest digits
        self.centre = np.asarray(z.mean(axis=0, dtype=np.float64)).ravel() if metric == "euclidean" else 0.0

    def closeness(self, queries: Rows) -> tuple[Floats, Floats]:
        """Closeness ``[queries, nodes]`` (higher is nearer) and how far each query's may be off."""
        asked = self._prepared(self.z[queries])
        closeness, longest = np.empty((queries.size, self.z.shape[0])), 0.0
        for start in range(0, self.z.shape[0], self.step):
            block = self._prepared(self.z[start : start + self.step])
            lengths = np.einsum("ij,ij->i", block, block)
            view = closeness[:, start : start + block.shape[0]]
            np.matmul(asked, block.T, out=view)
            if self.metric == "euclidean":  # -|q - z|^2 without the |q|^2 that all share
                view *= 2
                view -= lengths
            longest = max(longest, float(lengths.max()))
        own = np.einsum("ij,ij->i", asked, asked)
        rounding = 8 * (self.z.shape[1] + 8) * np.finfo(np.float64).eps
        return closeness, rounding * (own + longest) + np.finfo(np.float64).tiny

    def scores(self, query: int, rows: Rows) -> Floats:
        """Exact scores of a row with some others; each depends on its two rows alone."""
        own = _dense(self.z[query : query + 1])
        scores = np.empty(rows.size)
        for start in range(0, rows.size, self.step):
            others = _dense(self.z[rows[start : start + self.step]])
            if self.metric == "cosine":
                scores[start : start + self.step] = np.sum(_unit(own) * _unit(others), axis=1)
            else:
                scores[start : start + self.step] = np.sqrt(np.sum((own - others) ** 2, axis=1))
        return scores

    def _prepared(self, part: Any) -> Floats:
        """Rows of length 1, or around 0."""
        dense = _dense(part)
        return _unit(dense) if self.metric == "cosine" else dense - self.centre


def _dense(part: Any) -> Floats:
    array = part if isinstance(part, np.ndarray) else part.toarray()
    return np.ascontiguousarray(array, dtype=np.float64)


def _unit(rows: Floats) -> Floats:
    """Rows of length 1; rows of zeros stay. Divided by the largest entry first: no square underflows."""
    largest = np.abs(rows).max(axis=1, keepdims=True)
    scaled = rows / np.where(largest > 0, largest, 1.0)
    length = np.sqrt(np.sum(scaled**2, axis=1, keepdims=True))
    unit: Floats = scaled / np.where(length > 0, length, 1.0)
    return unit


def _check_k(k: Any) -> int:
    try:
        number = operator.index(k)
    except TypeError:
        number = 0
    if number < 1:
        raise EvaluationError(f"k is {k!r}", fix="Ask for at least one neighbour.")
    return number


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
    if int(rows.min()) < 0 or int(rows.max()) >= size:
        wrong = next(row for row in rows.tolist() if not 0 <= row < size)
        raise EvaluationError(f"there is no row {wrong}", fix=f"Rows are numbered 0 to {size - 1}.")
    return rows.astype(np.int64)
