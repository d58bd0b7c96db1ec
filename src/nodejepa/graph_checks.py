"""What may become a :class:`~nodejepa.graph.Graph`, and what is refused with advice."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nodejepa.errors import GraphError

FloatArray: TypeAlias = npt.NDArray[np.float32]
SparseMatrix: TypeAlias = sp.csr_array
Features: TypeAlias = FloatArray | SparseMatrix

_MAX_NODES = np.iinfo(np.int32).max  # CSR indices are 32-bit: half the memory traffic of a sparse product


def check_positions(values: npt.ArrayLike, name: str) -> npt.NDArray[np.int64]:
    """Whole numbers, one an edge end; whole floats pass."""
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise GraphError(f"{name} is not an array of numbers: {error}", where="edges") from None
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1:
        raise GraphError(f"{name} has {array.ndim} dimensions", where="edges", fix="Give a flat array.")
    if array.dtype.kind == "f" and np.all(np.isfinite(array)) and np.all(array == np.floor(array)):
        array = array.astype(np.int64) if np.all(np.abs(array) < 2**53) else array
    if array.dtype.kind not in "iu":
        raise GraphError(
            f"{name} holds {array.dtype} values, not whole numbers",
            where="edges",
            fix="Positions run from 0 to num_nodes - 1; keep other names in node_ids.",
        )
    return array.astype(np.int64)


def check_range(array: npt.NDArray[np.int64], size: int, name: str) -> None:
    """Refuse positions that are no node's."""
    bad = np.flatnonzero((array < 0) | (array >= size))
    if bad.size:
        raise GraphError(
            f"{name}[{bad[0]}] is {array[bad[0]]}, outside 0..{size - 1} ({bad.size} such)",
            where="edges",
            fix="Every edge must join positions of existing nodes.",
        )


def count_nodes(
    num_nodes: int | None,
    features: Any,
    node_ids: Any,
    start: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
) -> int:
    """The number of nodes as told, or as the features, ids or edges imply."""
    if num_nodes is not None:
        size = int(num_nodes)
    elif features is not None and len(np.shape(features)) >= 1:
        size = int(np.shape(features)[0])
    elif node_ids is not None:
        size = len(np.atleast_1d(np.asarray(node_ids)))
    else:
        size = int(max(start.max(initial=-1), end.max(initial=-1))) + 1
    if size <= 0:
        raise GraphError("the graph is empty: no nodes", fix="Give at least one node.")
    if size > _MAX_NODES:
        raise GraphError(
            f"{size} nodes are more than {_MAX_NODES}", fix="Renumber the nodes from 0 without gaps."
        )
    return size


def check_weights(weights: npt.ArrayLike | None, count: int) -> npt.NDArray[np.float64]:
    """Finite, non-negative, one an edge."""
    if weights is None:
        return np.ones(count)
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise GraphError(f"weights are not numbers: {error}", where="edge weights") from None
    if array.shape != (count,):
        raise GraphError(f"weights have shape {array.shape} for {count} edges", where="edge weights")
    bad = np.flatnonzero(~np.isfinite(array) | (array < 0) | (array > np.finfo(np.float32).max))
    if bad.size:
        raise GraphError(
            f"weight of edge {bad[0]} is {array[bad[0]]} ({bad.size} such)",
            where="edge weights",
            fix="Weights must be finite and not negative.",
        )
    return array


def refuse_one_way_edges(matrix: SparseMatrix) -> None:
    """Refuse a matrix that differs from its transpose."""
    difference = (matrix - matrix.T).tocoo()
    odd = np.flatnonzero(np.abs(difference.data) > 1e-6 * np.abs(matrix.data).max(initial=1.0))
    if odd.size:
        i, j = int(difference.row[odd[0]]), int(difference.col[odd[0]])
        raise GraphError(
            f"the graph is directed: {i} -> {j} and {j} -> {i} differ ({odd.size} such entries)",
            where="edges",
            fix='Pass direction="symmetrize" to forget directions or direction="keep" to keep them.',
        )


def check_features(features: Any, size: int) -> Features:
    """A private float32 copy, dense or CSR, finite, one row a node."""
    if features is None:
        return np.zeros((size, 0), dtype=np.float32)
    where = "features"
    if sp.issparse(features):
        try:
            matrix = sp.csr_array(features, dtype=np.float32, copy=True)
        except (ValueError, TypeError) as error:
            raise GraphError(f"features are not numbers: {error}", where=where) from None
        matrix.sum_duplicates()
        values, shape = matrix.data, matrix.shape
    else:
        try:
            with np.errstate(over="ignore"):  # a float64 too large for float32 is reported below, as infinite
                dense = np.array(features, dtype=np.float32, order="C")
        except (ValueError, TypeError, OverflowError) as error:
            raise GraphError(
                f"features are not a rectangular array of numbers: {error}",
                where=where,
                fix="Encode text and categories as numbers first.",
            ) from None
        values, shape = dense, dense.shape
    if len(shape) != 2 or shape[0] != size:
        raise GraphError(
            f"features have shape {tuple(shape)} for {size} nodes",
            where=where,
            fix="One row a node is expected.",
        )
    finite = np.isfinite(values)
    if not finite.all():
        at = np.argwhere(~finite)[0]
        row = (
            int(np.searchsorted(matrix.indptr, at[0], side="right") - 1)
            if sp.issparse(features)
            else int(at[0])
        )
        column = int(matrix.indices[at[0]]) if sp.issparse(features) else int(at[1])
        raise GraphError(
            f"row {row}, column {column} is {values[tuple(at)]} ({np.count_nonzero(~finite)} such)",
            where=where,
            fix="Fill in or drop missing and infinite values.",
        )
    if not sp.issparse(features):
        return dense
    return compact_csr(matrix.data, matrix.indices, matrix.indptr, size, int(shape[1]))


def check_ids(node_ids: Any, size: int) -> npt.NDArray[Any]:
    """A private copy of the ids, one a node and unique."""
    ids = node_ids.copy() if isinstance(node_ids, np.ndarray) else id_array(list(node_ids))
    if ids.shape != (size,):
        raise GraphError(f"node_ids have shape {ids.shape} for {size} nodes", where="node_ids")
    seen: dict[Any, int] = {}
    for i, name in enumerate(ids.tolist()):
        try:
            first = seen.setdefault(name, i)
        except TypeError:
            raise GraphError(f"the id of node {i} is a {type(name).__name__}", where="node_ids") from None
        if first != i:
            raise GraphError(
                f"nodes {first} and {i} have the same id {name!r}",
                where="node_ids",
                fix="Ids must be unique.",
            )
    return ids


def id_array(names: list[Any]) -> npt.NDArray[Any]:
    """Names as int64 or str where all are of that kind, else as objects."""
    if names and all(type(n) is int and abs(n) < 2**63 for n in names):
        return np.array(names, dtype=np.int64)
    if names and all(type(n) is str for n in names):
        return np.array(names, dtype=np.str_)
    out = np.empty(len(names), dtype=object)
    out[:] = names
    return out


def compact_csr(data: Any, indices: Any, indptr: Any, rows: int, columns: int | None = None) -> SparseMatrix:
    """A float32 CSR matrix with 32-bit indices (64-bit only above 2^31 entries)."""
    pointer = np.int32 if len(indices) <= np.iinfo(np.int32).max else np.int64
    return sp.csr_array(
        (np.ascontiguousarray(data, dtype=np.float32), indices.astype(pointer), indptr.astype(pointer)),
        shape=(rows, rows if columns is None else columns),
    )
