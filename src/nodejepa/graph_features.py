"""What may become features and ids of a graph, and what is refused with advice."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nodejepa.errors import GraphError
from nodejepa.graph_checks import Features, compact_csr, read_array, read_numbers, read_sparse

_LONGEST_FIXED_NAME = 256  # NumPy gives every string of an array the room of the longest

# Above this share of non-zeros a dense product is faster than a sparse one: Photo's features (0.35) are
# better off dense, those of CS and Physics (below 0.01) sparse.
_DENSE_ABOVE = 0.15


def multiplied_sparse(entries: int, cells: int) -> bool:
    """Whether a network reads features, of which so many are stored, as a sparse matrix."""
    return entries <= _DENSE_ABOVE * max(cells, 1)


def read_features(features: object, before: int = 0) -> Features | None:
    """A private, finite float32 copy, dense or CSR, of a two-dimensional array; None stays None.

    Where it is the rows of a larger one that follow ``before`` others, errors count these, too.
    """
    if features is None:
        return None
    where = "features"
    with np.errstate(over="ignore"):  # what is too large for float32 is reported below, as infinite
        if sp.issparse(features):
            sparse = sp.csr_array(read_sparse(features, where), dtype=np.float32, copy=True)
            sparse.sum_duplicates()
            sparse.eliminate_zeros()
            matrix: Features = sparse
        else:
            matrix = np.array(read_numbers(features, where), dtype=np.float32, order="C")
    if len(matrix.shape) != 2:
        raise GraphError(
            f"features have shape {tuple(matrix.shape)}", where=where, fix="Give one row a node: [nodes, F]."
        )
    _refuse_infinite(matrix, before)
    if isinstance(matrix, np.ndarray):
        return matrix
    return compact_csr(matrix.data, matrix.indices, matrix.indptr, *matrix.shape)


def fit_features(matrix: Features | None, size: int) -> Features:
    """Refuse features with another number of rows than nodes; none means zero columns."""
    if matrix is None:
        return np.zeros((size, 0), dtype=np.float32)
    if matrix.shape[0] != size:
        raise GraphError(
            f"features have shape {tuple(matrix.shape)} for {size} nodes",
            where="features",
            fix="One row a node is expected.",
        )
    return matrix


def _refuse_infinite(matrix: Features, before: int) -> None:
    values = matrix if isinstance(matrix, np.ndarray) else matrix.data
    finite = np.isfinite(values)
    if finite.all():
        return
    at = np.argwhere(~finite)[0]
    if isinstance(matrix, np.ndarray):
        row, column = at
    else:
        row = np.searchsorted(matrix.indptr, at[0], side="right") - 1
        column = matrix.indices[at[0]]
    raise GraphError(
        f"row {before + row}, column {column} is {values[tuple(at)]} ({np.count_nonzero(~finite)} such)",
        where="features",
        fix="Fill in or drop missing and infinite values.",
    )


def read_ids(node_ids: object) -> npt.NDArray[Any] | None:
    """A private copy of the ids, in order; None stays None."""
    if node_ids is None:
        return None
    if hasattr(node_ids, "__array__"):
        array = read_array(node_ids, "node_ids")
        return id_array(array.tolist()) if array.dtype.kind == "O" and array.ndim == 1 else array.copy()
    if isinstance(node_ids, str | bytes | set | frozenset) or not isinstance(node_ids, Iterable):
        raise GraphError(
            f"node_ids is a {type(node_ids).__name__}", where="node_ids", fix="Give a list or array of ids."
        )
    return id_array(list(node_ids))


def check_ids(ids: npt.NDArray[Any], size: int) -> None:
    """Refuse ids that are missing, repeated, unhashable or of another number than nodes."""
    if ids.shape != (size,):
        raise GraphError(f"node_ids have shape {ids.shape} for {size} nodes", where="node_ids")
    seen: dict[Any, int] = {}
    for i, name in enumerate(ids.tolist()):
        try:
            first = seen.setdefault(name, i)
            missing = name is None or bool(name != name)
        except Exception:  # an object's own __hash__ or __eq__ may raise anything
            raise GraphError(
                f"a {type(name).__name__} cannot be the id of node {i}", where="node_ids"
            ) from None
        if missing:
            raise GraphError(f"the id of node {i} is missing ({name})", where="node_ids")
        if first != i:
            raise GraphError(
                f"nodes {first} and {i} have the same id {name!r}",
                where="node_ids",
                fix="Ids must be unique.",
            )


def id_array(names: list[Any]) -> npt.NDArray[Any]:
    """Names as int64 or str where all are of that kind, else as objects."""
    if names and all(type(n) is int and -(2**63) <= n < 2**63 for n in names):
        return np.array(names, dtype=np.int64)
    if names and all(type(n) is str and len(n) <= _LONGEST_FIXED_NAME and n[-1:] != "\0" for n in names):
        return np.array(names, dtype=np.str_)  # a NumPy string cannot end in NUL: such names stay objects
    return np.fromiter(names, dtype=object, count=len(names))
