"""MatrixMarket files, read with care: SciPy's own reader can crash the process on a damaged one.

The format: a banner ``%%MatrixMarket matrix <format> <field> <symmetry>``, comments, a line of sizes, then
entries ``row column [value]`` counted from 1 (``coordinate``) or all values column by column (``array``).
"""

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nodejepa.errors import DataError, GraphError
from nodejepa.io.files_in import byte_stream, reading

_FIELDS = {"real": 1, "double": 1, "integer": 1, "unsigned-integer": 1, "pattern": 0}
_MIRRORED = {"general": 0.0, "symmetric": 1.0, "skew-symmetric": -1.0}
_LONGEST_SIZES = 10_000  # comment lines before the sizes


def read_matrix_market(path: Path, compression: str | None, most: int | None = None) -> sp.coo_array:
    """The matrix in a file; a pattern has ones. ``most`` bytes may come out of a compressed one."""
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
