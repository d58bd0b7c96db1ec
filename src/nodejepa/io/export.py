"""Embeddings in the formats that other tools read.

projector  TensorBoard's projector: tensors.tsv, metadata.tsv and projector_config.pbtxt in a folder
parquet    columns ``id`` and ``vector`` (a list of fixed size): LanceDB, Milvus, DuckDB, pandas, Polars
jsonl      a line ``{"id": ..., "vector": [...]}`` a node: Qdrant, Weaviate, OpenSearch, any script
csv        ``id,z0,z1,...``: spreadsheets, COPY of a database
fvecs      32-bit dimension and floats a row, as FAISS and its benchmarks read; ids in a file beside it
npy        the array alone; ids in a file beside it

Floats are written with the fewest digits that read back to the same float32.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from nodejepa.diagnostics import check_embeddings
from nodejepa.errors import Advice, DataError, Setting
from nodejepa.files import atomic_path, write_text
from nodejepa.io.export_ids import ExportIds
from nodejepa.progress import progress_bar

Matrix: TypeAlias = npt.NDArray[np.float32]

_VALUES_AT_ONCE = 2**20


def write_projector(folder: Path, ids: ExportIds, z: Matrix) -> list[Path]:
    """The configuration comes last: without it TensorBoard shows nothing rather than half."""
    tensors, metadata, config = (
        folder / name for name in ("tensors.tsv", "metadata.tsv", "projector_config.pbtxt")
    )
    schema = pa.schema([(f"z{j}", pa.float32()) for j in range(z.shape[1])])
    _write_separated(tensors, schema, [], z, header=False, delimiter="\t")
    write_text(metadata, "".join(f"{line}\n" for line in ids.metadata()))
    write_text(
        config,
        "embeddings {\n"
        '  tensor_name: "nodejepa"\n'
        f"  tensor_shape: {z.shape[0]}\n"
        f"  tensor_shape: {z.shape[1]}\n"
        '  tensor_path: "tensors.tsv"\n'
        '  metadata_path: "metadata.tsv"\n'
        "}\n",
    )
    return [tensors, metadata, config]


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
    _write_separated(path, schema, list(first.values()), z, header=True, delimiter=",")
    return [path]


def write_fvecs(path: Path, ids: ExportIds, z: Matrix) -> list[Path]:
    """Little-endian: an int32 with the dimension before each row of float32."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        for _, block in _blocks(z):
            record = np.empty((len(block), block.shape[1] + 1), dtype="<f4")
            record[:, 1:] = block
            record.view("<i4")[:, 0] = block.shape[1]
            file.write(record.tobytes())
    return [path, _write_id_lines(path, ids)]


def write_npy(path: Path, ids: ExportIds, z: Matrix) -> list[Path]:
    """The array as it is."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.save(file, z, allow_pickle=False)
    return [path, _write_id_lines(path, ids)]


def _write_id_lines(path: Path, ids: ExportIds) -> Path:
    """``z.fvecs`` has its ids in ``z.fvecs.ids.jsonl``, a JSON value a line: any text fits."""
    beside = path.with_name(f"{path.name}.ids.jsonl")
    write_text(beside, "".join(f"{json.dumps(value)}\n" for value in ids.values))
    return beside


def _write_separated(
    path: Path, schema: pa.Schema, first: list[pa.Array], z: Matrix, *, header: bool, delimiter: str
) -> None:
    options = pyarrow.csv.WriteOptions(include_header=header, delimiter=delimiter)
    with (
        atomic_path(path) as temporary,
        pyarrow.csv.CSVWriter(temporary, schema, write_options=options) as file,
    ):
        for start, block in _blocks(z):
            columns = [column.slice(start, len(block)) for column in first]
            columns += [pa.array(column) for column in np.asfortranarray(block).T]
            file.write_table(pa.table(columns, schema=schema))


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
    """How a format is written, how its files end (a folder has no ending) and how they begin."""

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
    "projector": ExportFormat(write_projector, ()),
    "parquet": ExportFormat(write_vectors, (".parquet",), b"PAR1", ("id", "vector")),
    "jsonl": ExportFormat(write_jsonl, (".jsonl", ".ndjson"), b'{"id":'),
    "csv": ExportFormat(write_csv, (".csv",), b'"id",'),
    "fvecs": ExportFormat(write_fvecs, (".fvecs",)),
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
        out: the file, or the folder for ``projector``.
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
    if endings and Path(out).suffix.lower() not in endings:
        raise DataError(
            f"a {to} file is not called so", where=str(out), fix=f"End the name in {' or '.join(endings)}."
        )
    if not endings and (not str(out) or Path(out).is_file()):
        fix = Advice("Name a folder with ", Setting("out"), ".")
        raise DataError("the projector needs a folder", where=str(out), fix=fix)
