"""What may become a :class:`~nodejepa.graph.Graph`, and what is refused with advice."""

from collections.abc import Iterable
from decimal import Decimal
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nodejepa.errors import GraphError

FloatArray: TypeAlias = npt.NDArray[np.float32]
SparseMatrix: TypeAlias = sp.csr_array
Features: TypeAlias = FloatArray | SparseMatrix

_MAX_NODES = np.iinfo(np.int32).max  # CSR indices are 32-bit: half the memory traffic of a sparse product
_MAX_FLOAT = float(np.finfo(np.float32).max)
# of features: products of two columns, summed over 10^9 nodes, fit into float32 (3.4e38)
LARGEST_FEATURE = 1e14
ID_NAMES = ("id", "node", "node_id", "nodeid")  # of columns of a frame
_PLAUSIBLE_NODES = 1_000_000  # edge lists may imply this many nodes freely; more only if most have an edge


def read_array(values: object, where: str) -> npt.NDArray[Any]:
    """Anything array-like as a plain array without missing entries."""
    try:
        array = np.asarray(values)
    except Exception as error:  # NumPy hands on whatever a foreign object's conversion raises
        raise GraphError(f"{where} cannot be read as an array: {error}", where=where) from None
    if np.any(np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else False):
        raise GraphError("masked entries are missing values", where=where, fix="Fill them in or drop them.")
    return array


def read_numbers(values: object, where: str) -> npt.NDArray[Any]:
    """An array of real numbers; text is refused even where it spells a number."""
    array = read_array(values, where)
    if array.dtype.kind == "O" and all(isinstance(v, Real | Decimal) for v in array.ravel().tolist()):
        try:
            array = array.astype(np.float64)
        except (OverflowError, ValueError, TypeError) as error:
            raise GraphError(f"a number is out of range: {error}", where=where) from None
    if array.dtype.kind == "O" and any(v is None or type(v).__name__ == "NAType" for v in array.ravel()):
        raise GraphError("there are missing values", where=where, fix="Fill them in or drop them.")
    if array.dtype.kind not in "biuf":
        raise GraphError(
            f"{array.dtype} values are not real numbers",
            where=where,
            fix="Encode text, dates and categories as numbers first.",
        )
    return array


def _as_double(array: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes infinite, which is refused later
        return array.astype(np.float64)


def refuse_other_order(*columns: Any) -> None:
    """Refuse pandas series, one entry an edge each, whose indexes differ; nothing says how to pair them."""
    indexes = [column.index for column in columns if hasattr(getattr(column, "index", None), "is_unique")]
    if any(not index.equals(indexes[0]) for index in indexes):
        raise GraphError(
            "source, target and weights are series with different indexes",
            where="edges",
            fix="Take them from one frame, or drop the indexes: series.to_numpy().",
        )


def check_positions(values: object, name: str) -> npt.NDArray[np.int64]:
    """Whole numbers, one an edge end; whole floats pass."""
    array = read_array(values, name)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1:
        raise GraphError(f"{name} has {array.ndim} dimensions", where="edges", fix="Give a flat array.")
    kind = array.dtype.kind
    if kind not in "iuf" or (kind == "f" and not np.all(np.floor(array) == array)):
        raise GraphError(
            f"{name} holds {array.dtype} values, not only whole numbers",
            where="edges",
            fix="Positions run from 0 to num_nodes - 1; keep other names in node_ids.",
        )
    if kind == "f":
        array = _as_double(array)
    wrong = (array > _MAX_NODES) | (array < 0)  # before the cast, which would wrap
    refuse_where(wrong, array, name, f"Positions run from 0 to num_nodes - 1 (at most {_MAX_NODES}).")
    return array.astype(np.int64)


def refuse_where(bad: npt.NDArray[np.bool_], array: npt.NDArray[Any], name: str, fix: str) -> None:
    """Refuse what was given for edges by the first entry that is ``bad``."""
    at = np.flatnonzero(bad)
    if at.size:
        raise GraphError(f"{name}[{at[0]}] is {array[at[0]]} ({at.size} such)", where="edges", fix=fix)


def count_nodes(
    num_nodes: object,
    features: Features | None,
    node_ids: npt.NDArray[Any] | None,
    start: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
) -> int:
    """The number of nodes as given, or as the features, ids or edges imply."""
    if num_nodes is not None:
        if not isinstance(num_nodes, int | np.integer):
            raise GraphError(
                f"num_nodes is a {type(num_nodes).__name__}", where="num_nodes", fix="Give a whole number."
            )
        size = int(num_nodes)
    elif features is not None:
        size = int(features.shape[0])
    elif node_ids is not None:
        size = len(node_ids)
    else:
        size = int(max(start.max(initial=-1), end.max(initial=-1))) + 1
        if size > max(_PLAUSIBLE_NODES, 4 * start.size):  # nothing but one large position speaks for them
            raise GraphError(
                f"the largest position is {size - 1} but there are only {start.size} edges",
                where="edges",
                fix="Renumber the nodes from 0 without gaps, or pass num_nodes if so many are isolated.",
            )
    if size <= 0:
        raise GraphError("the graph is empty: no nodes", where="num_nodes", fix="Give at least one node.")
    if size > _MAX_NODES:
        raise GraphError(
            f"{size} nodes are more than {_MAX_NODES}",
            where="num_nodes",
            fix="Renumber the nodes from 0 without gaps.",
        )
    return size


def check_weights(weights: object, count: int) -> npt.NDArray[np.float64]:
    """Finite, non-negative, one an edge."""
    if weights is None:
        return np.ones(count)
    numbers = _as_double(read_numbers(weights, "edge weights"))
    if numbers.shape != (count,):
        raise GraphError(f"weights have shape {numbers.shape} for {count} edges", where="edge weights")
    wrong = ~np.isfinite(numbers) | (numbers < 0) | (numbers > _MAX_FLOAT)
    refuse_where(
        wrong, numbers, "weights", f"Weights must be finite, not negative and at most {_MAX_FLOAT:.1e}."
    )
    return numbers


def merge_entries(row: Any, column: Any, weight: Any, shape: tuple[int, int]) -> SparseMatrix:
    """Entries of some rows as float32 CSR, sorted, without zeros; weights of repeated ones add up.

    Without ``weight`` an entry is 1 however often it is there. Refused where degrees would not fit into
    float32.
    """
    data = np.ones(len(row), dtype=np.float32) if weight is None else weight
    matrix = sp.coo_array((data, (row, column)), shape=shape).tocsr()
    matrix.sum_duplicates()
    if weight is None:
        matrix.data[:] = 1
        return matrix
    if matrix.data.sum() > _MAX_FLOAT / 2:  # symmetrising may double it
        raise GraphError(
            f"the weights add up to {matrix.data.sum():.1e}", where="edge weights", fix="Scale them down."
        )
    single = matrix.astype(np.float32)
    single.eliminate_zeros()
    return single


def merge_directions(rows: SparseMatrix, reverse: Any) -> SparseMatrix:
    """Rows of the adjacency of an undirected graph: of both directions the larger weight counts."""
    matrix = rows.maximum(reverse).tocsr()
    matrix.sort_indices()
    return matrix


def refuse_one_way_edges(matrix: SparseMatrix) -> None:
    """Refuse a matrix that differs from its transpose by more than rounding."""
    mirror = matrix.T.tocsr()
    excess = (abs(matrix - mirror) - 1e-6 * matrix.maximum(mirror)).tocoo()
    odd = np.flatnonzero(excess.data > 0)
    if odd.size:
        i, j = int(excess.row[odd[0]]), int(excess.col[odd[0]])
        raise GraphError(
            f"the graph is directed: {i} -> {j} and {j} -> {i} differ ({odd.size} such entries)",
            where="edges",
            fix='Pass direction="symmetrize" to forget directions or direction="keep" to keep them.',
        )


def read_sparse(matrix: Any, where: str) -> Any:
    """A two-dimensional SciPy matrix of real numbers whose indices are sound."""
    if len(matrix.shape) != 2 or matrix.dtype.kind not in "biuf":
        raise GraphError(
            f"the sparse matrix has shape {matrix.shape} and {matrix.dtype} values",
            where=where,
            fix="Give a two-dimensional matrix of real numbers.",
        )
    try:
        if hasattr(matrix, "check_format"):  # SciPy's own loops trust the indices
            matrix.check_format(full_check=True)
        return sp.coo_array(matrix)
    except (ValueError, IndexError) as error:
        raise GraphError(f"the sparse matrix is damaged: {error}", where=where) from None


def compact_csr(data: Any, indices: Any, indptr: Any, rows: int, columns: int | None = None) -> SparseMatrix:
    """A float32 CSR matrix with 32-bit indices (64-bit only above 2^31 entries)."""
    pointer = np.int32 if len(indices) <= np.iinfo(np.int32).max else np.int64
    return sp.csr_array(
        (np.ascontiguousarray(data, dtype=np.float32), indices.astype(pointer), indptr.astype(pointer)),
        shape=(rows, rows if columns is None else columns),
    )


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
            f"features have shape {tuple(matrix.shape)}",
            where=where,
            fix="Give one row per node: [nodes, F].",
        )
    _refuse_infinite(matrix, before)
    if isinstance(matrix, np.ndarray):
        return matrix
    return compact_csr(matrix.data, matrix.indices, matrix.indptr, *matrix.shape)


def in_node_order(
    features: Any, ids: npt.NDArray[Any] | None, size: int | None = None, where: str = "features"
) -> Any:
    """Rows of a pandas frame or series in the order of the nodes, by its index; anything else as it is.

    The default index (0, 1, 2, ...) says nothing where it does not hold the ids: such rows are in order.
    Where it holds them in another order, labels and embeddings are refused: it may mean either.
    """
    index: Any = getattr(features, "index", None)
    if not hasattr(features, "iloc") or not hasattr(index, "is_unique"):
        return features
    named = next((c for c in getattr(features, "columns", ()) if str(c).lower() in ID_NAMES), None)
    if named is not None:
        raise GraphError(
            f"the frame has a column {named!r}, and ids are no {where}",
            where=where,
            fix=f"Say {where}.set_index({named!r}) if it names the nodes, else drop or rename it.",
        )
    names = range(len(index) if size is None else size) if ids is None else ids.tolist()
    rows = {name: row for row, name in enumerate(index.tolist())}
    order = [rows.get(name) for name in names]
    default = type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)
    if len(rows) == len(index) and None not in order:
        if where != "features" and default and index.name is None and order != list(range(len(order))):
            raise GraphError(
                "the default index 0, 1, 2, ... holds the ids of the nodes in another order",
                where=where,
                fix=f'Say {where}.rename_axis("id") if it names the nodes, else {where}.to_numpy().',
            )
        return features.iloc[order]
    if default:
        return features
    lost = next((name for name, row in zip(names, order, strict=True) if row is None), None)
    said = "holds an id twice" if len(rows) < len(index) else f"has no row for node {lost!r}"
    raise GraphError(
        f"the index of the {'frame' if where == 'features' else where} {said}",
        where=where,
        fix="Set the nodes' ids as its index, or give rows in the order of the nodes: "
        f"{where}.reset_index(drop=True).",
    )


def fit_features(matrix: Features | None, size: int) -> Features:
    """Refuse features with another number of rows than nodes; none means zero columns."""
    if matrix is None:
        return np.zeros((size, 0), dtype=np.float32)
    if matrix.shape[0] != size:
        raise GraphError(
            f"features have shape {tuple(matrix.shape)} for {size} nodes",
            where="features",
            fix="One row per node is expected.",
        )
    return matrix


def _refuse_infinite(matrix: Features, before: int) -> None:
    values = matrix if isinstance(matrix, np.ndarray) else matrix.data
    finite = np.abs(values) <= LARGEST_FEATURE  # false for NaN
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
        fix="Fill in or drop missing and infinite values, and scale columns so that no value is beyond "
        f"{LARGEST_FEATURE:.0e} in size: sums of products must fit into single precision.",
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
            problem = f"of node {i} is missing ({name})" if name is None or bool(name != name) else ""
        except Exception:  # an object's own __hash__ or __eq__ may raise anything
            first, problem = i, f"of node {i} cannot be a {type(name).__name__}"
        if first != i:
            problem = f"{name!r} is that of nodes {first} and {i}"
        if problem:
            raise GraphError(f"the id {problem}", where="node_ids", fix="Every node needs an id of its own.")


def id_array(names: list[Any]) -> npt.NDArray[Any]:
    """Names as int64 or str where all are of that kind, else as objects."""
    if names and all(type(n) is int and -(2**63) <= n < 2**63 for n in names):
        return np.array(names, dtype=np.int64)
    if names and all(type(n) is str and len(n) <= _LONGEST_FIXED_NAME and n[-1:] != "\0" for n in names):
        return np.array(names, dtype=np.str_)  # a NumPy string cannot end in NUL: such names stay objects
    return np.fromiter(names, dtype=object, count=len(names))
