"""Embeddings in the formats that other tools read.

projector  TensorBoard's projector: tensors.tsv, metadata.tsv and projector_config.pbtxt in a folder
parquet    columns ``id`` and ``vector`` (a list of fixed size): LanceDB, Milvus, DuckDB, pandas, Polars
jsonl      a line ``{"id": ..., "vector": [...]}`` a node: Qdrant, Weaviate, OpenSearch, any script
csv        ``id,z0,z1,...``: spreadsheets, COPY of a database
fvecs      32-bit dimension and floats a row, as FAISS and its benchmarks read; ids in a file beside it
npy        the array alone; ids in a file beside it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nodejepa.diagnostics import check_embeddings
from nodejepa.errors import Advice, DataError, Setting
from nodejepa.io.export_ids import ExportIds
from nodejepa.io.export_writers import (
    Matrix,
    write_csv,
    write_fvecs,
    write_jsonl,
    write_npy,
    write_projector,
    write_vectors,
)


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
