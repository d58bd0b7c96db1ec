"""Embeddings in the formats that other tools read.

parquet    columns ``id`` and ``vector`` (a list of fixed size): LanceDB, Milvus, DuckDB, pandas, Polars
jsonl      a line ``{"id": ..., "vector": [...]}`` a node: Qdrant, Weaviate, OpenSearch, any script
csv        ``id,z0,z1,...``: spreadsheets, COPY of a database
npy        the array alone, as FAISS takes it; ids in a file beside it

Floats are written with the fewest digits that read back to the same float32.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from nodejepa.diagnostics import check_embeddings
from nodejepa.errors import DataError
from nodejepa.files import atomic_path, write_text
from nodejepa.graph_checks import read_ids
from nodejepa.progress import progress_bar

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_EXACT_IN_JAVASCRIPT = 2**53


@dataclass(frozen=True, eq=False)
class ExportIds:
    """One id a row: all whole numbers or all text."""

    values: list[Any]
    column: pa.Array
    converted: bool  # ids of another kind were turned into text
    more: dict[str, pa.Array]  # columns that travel along, such as labels

    @classmethod
    def of(
        cls, ids: npt.ArrayLike | None, rows: int, columns: Mapping[str, Sequence[Any]] | None = None
    ) -> Self:
        """From any ids; none numbers the rows."""
        more = {name: pa.array(values) for name, values in (columns or {}).items()}
        for name, values in more.items():
            if len(values) != rows or name in ("id", "vector"):
                raise DataError(
                    f"there are {len(values)} values for {rows} rows",
                    where=f"column {name}",
                    fix="Give one value a row, under a name of its own.",
                )
        names = read_ids(ids)
        array = np.arange(rows) if names is None else names
        if array.shape != (rows,):
            raise DataError(
                f"there are {array.size} ids for {rows} rows", where="ids", fix="Give one id a row."
            )
        values = array.tolist()
        kind = _kind(values)
        if kind is None:
            values = [str(value) for value in values]
        try:
            return cls(values, pa.array(values, kind or pa.string()), kind is None, more)
        except UnicodeError as error:
            raise DataError(f"an id is no valid text: {error}", where="ids") from None

    def notes(self, to: str) -> list[str]:
        """What changed on the way, or what the reading tool may change."""
        notes = ["ids were neither text nor whole numbers and are written as text"] if self.converted else []
        text = [value for value in self.values if isinstance(value, str)]
        if to == "npy" and self.more:
            notes.append(f"{', '.join(self.more)} stay behind: a {to} file holds vectors only")
        if to == "csv" and (risky := sum(value.startswith(_FORMULA) for value in text)):
            notes.append(
                f"{risky} ids begin like a formula (=, +, -, @) and are kept as they are: "
                "import the column as text in a spreadsheet"
            )
        if to == "jsonl" and any(type(v) is int and abs(v) > _EXACT_IN_JAVASCRIPT for v in self.values):
            notes.append("some ids are above 2^53: readers in JavaScript round them")
        return notes


def _kind(values: list[Any]) -> pa.DataType | None:
    """The Arrow type that holds all ids as they are, if there is one."""
    if values and all(type(value) is int for value in values):
        if min(values) >= -(2**63) and max(values) < 2**63:
            return pa.int64()
        return pa.uint64() if min(values) >= 0 and max(values) < 2**64 else None
    return pa.string() if all(type(value) is str for value in values) else None


Matrix: TypeAlias = npt.NDArray[np.float32]

_VALUES_AT_ONCE = 2**20


def write_vectors(path: Path, ids: ExportIds, z: Matrix) -> list[Path]:
    """A list of fixed size a node: what vector stores take for a vector without being told."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(z.ravel()), z.shape[1])
    table = pa.table({"id": ids.column, "vector": vectors, **ids.more})
    with atomic_path(path) as temporary:
        pq.write_table(table, temporary, write_page_checksum=True, use_dictionary=False)
    return [path]


def write_jsonl(path: Path, ids: ExportIds, z: Matrix) -> list[Path]:
    """An object a line."""
    beside = {name: column.to_pylist() for name, column in ids.more.items()}
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        for start, block in _blocks(z):
            # Arrow's text of a finite float32 is a JSON number, and faster than Python's
            texts = pa.array(block.ravel()).cast(pa.string()).to_pylist()
            # "1" would be read as a whole number, and "-0" would lose its sign
            numbers = [text if "." in text or "e" in text else f"{text}.0" for text in texts]
            width = block.shape[1]
            for row in range(len(block)):
                name = json.dumps(ids.values[start + row])
                vector = ", ".join(numbers[row * width : (row + 1) * width])
                more = "".join(
                    f", {json.dumps(key)}: {json.dumps(v[start + row])}" for key, v in beside.items()
                )
                file.write(f'{{"id": {name}, "vector": [{vector}]{more}}}\n')
    return [path]


def write_csv(path: Path, ids: ExportIds, z: Matrix) -> list[Path]:
    """A header, then a line a node; text is quoted."""
    first = {"id": ids.column, **ids.more}
    named = [(name, column.type) for name, column in first.items()]
    schema = pa.schema([*named, *((f"z{j}", pa.float32()) for j in range(z.shape[1]))])
    with atomic_path(path) as temporary, pyarrow.csv.CSVWriter(temporary, schema) as file:
        for start, block in _blocks(z):
            columns = [column.slice(start, len(block)) for column in first.values()]
            columns += [pa.array(column) for column in np.asfortranarray(block).T]
            file.write_table(pa.table(columns, schema=schema))
    return [path]


def write_npy(path: Path, ids: ExportIds, z: Matrix) -> list[Path]:
    """The array as it is; ids go to ``z.npy.ids.jsonl``, a JSON value a line: any text fits."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.save(file, z, allow_pickle=False)
    beside = path.with_name(f"{path.name}.ids.jsonl")
    write_text(beside, "".join(f"{json.dumps(value)}\n" for value in ids.values))
    return [path, beside]


def _blocks(z: Matrix) -> Iterator[tuple[int, Matrix]]:
    """A few rows at a time with the number of the first, under a progress bar."""
    step = max(1, _VALUES_AT_ONCE // z.shape[1])
    with progress_bar("Writing", total=len(z)) as advance:
        for start in range(0, len(z), step):
            block = z[start : start + step]
            yield start, block
            advance(len(block))


@dataclass(frozen=True)
class ExportFormat:
    """How a format is written, how its files end and how they begin."""

    write: Callable[[Path, ExportIds, Matrix], list[Path]]
    endings: tuple[str, ...]
    begins: bytes = b""
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exported:
    """The files that were written, and what the reader of them should know."""

    files: tuple[Path, ...]
    notes: tuple[str, ...]


EXPORT_FORMATS: dict[str, ExportFormat] = {
    "parquet": ExportFormat(write_vectors, (".parquet",), b"PAR1", ("id", "vector")),
    "jsonl": ExportFormat(write_jsonl, (".jsonl", ".ndjson"), b'{"id":'),
    "csv": ExportFormat(write_csv, (".csv",), b'"id",'),
    "npy": ExportFormat(write_npy, (".npy",), b"\x93NUMPY"),
}


def export_embeddings(
    out: str | Path,
    ids: npt.ArrayLike | None,
    embeddings: Any,
    *,
    to: str,
    columns: Mapping[str, Sequence[Any]] | None = None,
) -> Exported:
    """Write embeddings for another tool, each file atomically, numbers as float32 that read back to the bit.

    Args:
        out: the file.
        ids: of the rows, in order; none numbers them.
        embeddings: ``[nodes, d]``, dense or SciPy sparse.
        to: a key of :data:`EXPORT_FORMATS`.
        columns: what travels beside the ids, a value a row: labels, clusters; see :func:`read_columns`.

    >>> export_embeddings("z.jsonl", ["ann", "bob"], np.eye(2), to="jsonl").files  # doctest: +SKIP
    (PosixPath('z.jsonl'),)
    """
    check_target(out, to)
    z = check_embeddings(embeddings)
    dense = z if isinstance(z, np.ndarray) else z.toarray()
    with np.errstate(over="ignore"):
        matrix = np.ascontiguousarray(dense, dtype=np.float32)
    if matrix is not dense and not np.isfinite(matrix).all():
        raise DataError(
            "some numbers are too large for float32", where=str(out), fix="Scale them down first."
        )
    names = ExportIds.of(ids, len(matrix), columns)
    files = EXPORT_FORMATS[to].write(Path(out), names, matrix)
    return Exported(tuple(files), tuple(names.notes(to)))


def check_target(out: str | Path, to: str) -> None:
    """Refuse an unknown format and a path that does not suit it, before any work."""
    if to not in EXPORT_FORMATS:
        raise DataError(f"format {to!r} is unknown", fix=f"Use one of {', '.join(EXPORT_FORMATS)}.")
    endings = EXPORT_FORMATS[to].endings
    if Path(out).suffix.lower() not in endings:
        raise DataError(
            f"a {to} file is not called so", where=str(out), fix=f"End the name in {' or '.join(endings)}."
        )
