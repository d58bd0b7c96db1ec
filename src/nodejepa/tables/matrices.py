"""Graphs and features stored as matrices: SciPy and NumPy archives, MatrixMarket."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.io
import scipy.sparse as sp

from nodejepa.errors import DataError, GraphError
from nodejepa.graph_checks import Features, check_positions, read_features, read_sparse
from nodejepa.tables.inputs import byte_stream, reading

Positions: TypeAlias = npt.NDArray[np.integer[Any]]

MATRIX_FORMATS = ("npz", "npy", "mtx")
_EDGES = ("edge_index", "edges")
_WEIGHTS = ("edge_weight", "weights", "edge_weights")
_FEATURES = ("features", "x", "attr", "feat")
_IDS = ("node_ids", "ids")
_MATRIX = "Store a coordinate matrix of real numbers, general or symmetric."
_PLAUSIBLE_NODES = 1_000_000  # a matrix may declare this many rows freely; more only if most are used


@dataclass(frozen=True)
class MatrixFile:
    """The arrays of a file; matrices stored in pieces are put together."""

    where: str
    arrays: dict[str, Any]

    def first(self, names: tuple[str, ...]) -> Any:
        """The first array there is of these names, or None."""
        return next((self.arrays[name] for name in names if name in self.arrays), None)

    def has_features(self) -> bool:
        """Whether the archive of the edges describes the nodes as well."""
        return self.first(_FEATURES) is not None

    def features(self) -> Features:
        """The one matrix of features of a node file."""
        found = self.first(_FEATURES)
        if found is None and len(self.arrays) == 1:
            found = next(iter(self.arrays.values()))
        if found is None:
            raise GraphError(
                f"no features among {self._names()}", where=self.where, fix=f"Name them {_FEATURES[0]!r}."
            )
        return _features(found, self.where)

    def node_ids(self) -> npt.NDArray[Any] | None:
        """Ids of the nodes, if the archive has them."""
        found = self.first(_IDS)
        return None if found is None else np.asarray(found)

    def labels(self, name: str, size: int) -> pa.ChunkedArray:
        """The array of labels of this name, one a node."""
        if name not in self.arrays:
            raise GraphError(
                f"there is no array {name!r}", where=self.where, fix=f"There are: {self._names()}."
            )
        values = self.arrays[name]
        if sp.issparse(values) or values.shape != (size,) or values.dtype.kind not in "biufU":
            raise GraphError(
                f"labels are {values.dtype} of shape {values.shape} for {size} nodes",
                where=f"{self.where}, array {name!r}",
                fix="Store one word or whole number a node.",
            )
        return pa.chunked_array([pa.array(values.tolist() if values.dtype.kind == "U" else values)])

    def adjacency(self) -> tuple[Positions, Positions, npt.NDArray[Any] | None, int | None]:
        """Sources, targets and weights of an edge file; how many nodes there are, if it says so."""
        pairs = self.first(_EDGES)
        if pairs is not None and not sp.issparse(pairs):
            return self._from_pairs(np.asarray(pairs))
        found = self.arrays.get("adj", self.arrays.get("matrix"))
        if found is None and len(self.arrays) == 1:
            found = next(iter(self.arrays.values()))
        if found is None:
            raise GraphError(
                f"no edges among {self._names()}",
                where=self.where,
                fix="Store a SciPy matrix (scipy.sparse.save_npz) or an array edge_index [2, edges].",
            )
        if not sp.issparse(found):
            dense = np.asarray(found)
            if dense.ndim == 2 and 2 in dense.shape and dense.shape[0] != dense.shape[1]:
                return self._from_pairs(dense)
            if dense.ndim != 2 or dense.dtype.kind not in "biuf":
                raise GraphError(
                    f"an array of {dense.dtype} and shape {dense.shape} holds no edges", where=self.where
                )
            found = sp.coo_array(dense.astype(np.float64))  # SciPy has no half precision
        matrix = read_sparse(found, self.where)
        if matrix.shape[0] != matrix.shape[1]:
            raise GraphError(
                f"the matrix has shape {matrix.shape}", where=self.where, fix="An adjacency is square."
            )
        size = int(matrix.shape[0])
        if size > max(_PLAUSIBLE_NODES, 4 * matrix.nnz):
            raise GraphError(
                f"the matrix declares {size} nodes for {matrix.nnz} entries",
                where=self.where,
                fix="Leave out the isolated nodes, or give a list of edges.",
            )
        return matrix.row.astype(np.int64), matrix.col.astype(np.int64), matrix.data, size

    def _from_pairs(
        self, pairs: npt.NDArray[Any]
    ) -> tuple[Positions, Positions, npt.NDArray[Any] | None, None]:
        if pairs.ndim != 2 or 2 not in pairs.shape:
            raise GraphError(
                f"edges have shape {pairs.shape}", where=self.where, fix="Store them as [2, edges]."
            )
        pairs = pairs if pairs.shape[0] == 2 else pairs.T
        source, target = (check_positions(end, "edge_index") for end in pairs)
        weight = self.first(_WEIGHTS)
        return source, target, None if weight is None else np.asarray(weight), None

    def _names(self) -> str:
        return ", ".join(map(repr, list(self.arrays)[:10])) or "no arrays"


def open_matrix(path: Path, kind: str, compression: str | None, most: int | None = None) -> MatrixFile:
    """Read an npz, npy or MatrixMarket file; ``most`` bytes may come out of a compressed one."""
    where = str(path)
    if kind == "mtx":
        return MatrixFile(where, {"matrix": _matrix_market(path, compression, most)})
    if compression is not None:
        raise DataError(f"{kind} within another compression", where=where, fix="Decompress it first.")
    if kind == "npy":
        with reading(where), path.open("rb") as file:
            return MatrixFile(where, {"array": np.load(file, allow_pickle=False)})
    with reading(where), path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        found = {name: arrays[name] for name in arrays.files}
    return MatrixFile(where, _assembled(found, where))


def _assembled(arrays: dict[str, Any], where: str) -> dict[str, Any]:
    """Arrays named ``<prefix>data, indices, indptr, shape`` (or ``row, col``) as the matrices they are."""
    out = dict(arrays)
    for name in arrays:
        if not name.endswith("shape"):
            continue
        prefix = name.removesuffix("shape")
        compressed = [f"{prefix}{part}" for part in ("data", "indices", "indptr")]
        pairs = [f"{prefix}{part}" for part in ("data", "row", "col")]
        used = compressed if all(part in arrays for part in compressed) else pairs
        if not all(part in arrays for part in used):
            continue
        with reading(where):
            shape = tuple(int(size) for size in np.ravel(arrays[name]))
            data, first, second = (arrays[part] for part in used)
            form = str(arrays.get(f"{prefix}format", np.array(b"csr")).astype(str))
            if used is pairs:
                matrix = sp.coo_array((data, (first, second)), shape=shape)
            else:
                layout = {"csr": sp.csr_array, "csc": sp.csc_array, "bsr": sp.bsr_array}[form]
                matrix = layout((data, first, second), shape=shape)
                matrix.check_format(full_check=True)  # SciPy's own loops trust the indices
        for part in (*used, name, f"{prefix}format", f"{prefix}_is_array"):
            out.pop(part, None)
        out[prefix.rstrip("_") or "matrix"] = matrix
    out.pop("_is_array", None)
    return out


def _features(found: Any, where: str) -> Features:
    try:
        matrix = read_features(found)
    except GraphError as error:
        raise GraphError(error.what, where=where, fix=error.fix) from None
    if matrix is None:
        raise GraphError("there are no features", where=where)
    return matrix


def _matrix_market(path: Path, compression: str | None, most: int | None) -> sp.coo_array:
    """The matrix in a file; SciPy makes room for what the header promises, so that is checked before."""
    where = str(path)
    with reading(where):
        with byte_stream(path, compression, "Reading a matrix", most) as stream:
            content = stream.read()  # SciPy ends the process where a stream of its own raises
        entries, field = (scipy.io.mminfo(io.BytesIO(content))[place] for place in (2, 4))
        if entries > len(content):
            raise DataError(f"the header promises {entries} entries, the file is too short", where=where)
        if field == "complex":
            raise GraphError("a matrix of complex numbers cannot be read", where=where, fix=_MATRIX)
        return sp.coo_array(scipy.io.mmread(io.BytesIO(content), spmatrix=False))
