"""Graphs and features stored as matrices: SciPy and NumPy archives, MatrixMarket."""

import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.sparse as sp

from nodejepa.errors import DataError, GraphError
from nodejepa.graph_checks import (
    Features,
    check_positions,
    read_features,
    read_sparse,
    refuse_implausible,
)
from nodejepa.tables.inputs import byte_stream, reading

Positions: TypeAlias = npt.NDArray[np.int64]

MATRIX_FORMATS = ("npz", "npy", "mtx")
_EDGES = ("edge_index", "edges")
_WEIGHTS = ("edge_weight", "weights", "edge_weights")
_FEATURES = ("features", "x", "attr", "feat")
_IDS = ("node_ids", "ids")


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
                fix="Store one word or whole number per node.",
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
        refuse_implausible(size, matrix.nnz, self.where)
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
        return MatrixFile(where, {"matrix": read_matrix_market(path, compression, most)})
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


# ---------------------------------------------------------------- MatrixMarket

# The format: a banner ``%%MatrixMarket matrix <format> <field> <symmetry>``, comments, a line of sizes, then
# entries ``row column [value]`` counted from 1 (``coordinate``) or all values column by column (``array``).
_FIELDS = {"real": 1, "double": 1, "integer": 1, "unsigned-integer": 1, "pattern": 0}
_MIRRORED = {"general": 0.0, "symmetric": 1.0, "skew-symmetric": -1.0}
_LONGEST_SIZES = 10_000  # comment lines before the sizes


def read_matrix_market(path: Path, compression: str | None, most: int | None = None) -> sp.coo_array:
    """The matrix in a file; a pattern has ones. ``most`` bytes may come out of a compressed one.

    Not by SciPy, whose reader ends the process on some damaged files (tests/tables/test_fuzz_inputs.py).
    """
    where = str(path)
    with reading(where), byte_stream(path, compression, "Reading a matrix", most) as stream:
        lines = io.TextIOWrapper(stream, encoding="latin-1")
        layout, field, symmetry = _banner(lines.readline(), where)
        sizes = _sizes(lines, 3 if layout == "coordinate" else 2, where)
        rows, columns = sizes[:2]
        if layout == "array":
            _check_promise(rows * columns, path, compression)
            values = _numbers(lines, rows * columns, 1, where)
            return sp.coo_array(values.reshape(columns, rows).T)
        count = sizes[2]
        _check_promise(count, path, compression)
        entries = _numbers(lines, count, 2 + _FIELDS[field], where)
    ends = entries[:, :2]
    inside = ((ends >= 1) & (ends <= [rows, columns]) & (np.floor(ends) == ends)).all(axis=1)
    if not inside.all():
        bad = int(np.argmin(inside))
        raise DataError(f"entry {bad + 1} is at {ends[bad].tolist()} of {rows} x {columns}", where=where)
    places = ends.astype(np.int64) - 1
    values = entries[:, 2] if _FIELDS[field] else np.ones(count)
    matrix = sp.coo_array((values, (places[:, 0], places[:, 1])), shape=(rows, columns))
    sign = _MIRRORED[symmetry]
    if not sign:
        return matrix
    if rows != columns:
        raise DataError(f"a {symmetry} matrix of {rows} x {columns}", where=where)
    off = places[:, 0] != places[:, 1]  # only one half is stored
    mirrored = np.concatenate([places, places[off, ::-1]])
    return sp.coo_array((np.concatenate([values, sign * values[off]]), tuple(mirrored.T)), shape=matrix.shape)


def _banner(line: str, where: str) -> tuple[str, str, str]:
    words = line.lower().split()
    if len(words) != 5 or words[1] != "matrix":
        raise DataError(f"the first line is {line.strip()[:80]!r}, no banner of a matrix", where=where)
    layout, field, symmetry = words[2:]
    known = layout in ("coordinate", "array") and field in _FIELDS and symmetry in _MIRRORED
    if not known or (layout == "array" and (symmetry != "general" or field == "pattern")):
        raise GraphError(
            f"a matrix that is {layout} {field} {symmetry} cannot be read",
            where=where,
            fix="Store a coordinate matrix of real numbers, general or symmetric.",
        )
    return layout, field, symmetry


def _sizes(lines: Any, count: int, where: str) -> list[int]:
    for _ in range(_LONGEST_SIZES):
        line = lines.readline()
        if not line:
            break
        words = line.split()
        if not words or words[0].startswith("%"):
            continue
        if len(words) == count and all(word.isdecimal() and len(word) < 19 for word in words):
            return [int(word) for word in words]
        break
    raise DataError("the line of sizes is missing or damaged", where=where)


def _check_promise(count: int, path: Path, compression: str | None) -> None:
    """Room is made for what the header promises: refuse more entries than the file can hold."""
    if count > path.stat().st_size * (1 if compression is None else 1000):
        raise DataError(
            f"the header promises {count} entries, the file is too short for them", where=str(path)
        )


def _numbers(lines: Any, rows: int, width: int, where: str) -> npt.NDArray[np.float64]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # no entries are no reason to warn
        numbers = np.loadtxt(lines, comments="%", ndmin=2, max_rows=rows + 1)
    if numbers.size == 0:
        numbers = numbers.reshape(0, width)
    if numbers.shape != (rows, width):
        raise DataError(
            f"the header promises numbers of shape {(rows, width)}, there are {numbers.shape}",
            where=where,
        )
    return np.asarray(numbers, dtype=np.float64)
