"""Embeddings out, one row per node, and back: parquet with the caller's own ids, or a plain npy array.

``export_embeddings`` writes them for other tools.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import scipy.sparse as sp

from nodejepa.diagnostics import check_embeddings
from nodejepa.errors import DataError, GraphError
from nodejepa.files import atomic_path, write_text
from nodejepa.graph import Graph
from nodejepa.graph_checks import Features, FloatArray, id_array, read_ids
from nodejepa.progress import progress_bar
from nodejepa.tables.inputs import near_path, reading

_ENDINGS = (".parquet", ".npy")
MANIFEST_FORMAT = "nodejepa embeddings"  # of the JSON that tells how embeddings were made


def write_embeddings(
    path: str | Path, graph: Graph, embeddings: Features, columns: Mapping[str, Sequence[Any]] | None = None
) -> None:
    """Write the embeddings in the graph's order, atomically; the ending of ``path`` says how.

    Args:
        path: ``.parquet`` has columns ``id``, ``z0``, ``z1``, ...; ``.npy`` is the float32 array
            ``[nodes, D]`` without ids. The folder is made if needed.
        graph: whose ``node_ids`` (or positions, if it has none) become the column ``id``.
        embeddings: ``[nodes, D]``, dense or sparse.
        columns: more columns of a parquet file, a value a node, such as ``LoadedGraph.sides``.
    """
    ending = check_ending(path)
    z = _dense(embeddings, graph, str(path))
    beside = {} if ending == ".npy" else {"id": id_column(graph, str(path)), **(columns or {})}
    more = {name: pa.array(values) for name, values in beside.items()}
    stream_embeddings(path, z.shape, [(more, z)], compression="snappy")


def stream_embeddings(
    path: str | Path,
    shape: tuple[int, ...],
    blocks: Iterable[tuple[Mapping[str, Any], Any]],
    compression: str = "none",
) -> None:
    """As :func:`write_embeddings`, of blocks of rows that come one after the other: ``id`` and more columns
    as Arrow has them, and the rows."""
    with atomic_path(path) as temporary, progress_bar("Writing embeddings", total=shape[0]) as advance:
        if check_ending(path) == ".npy":
            header = {"descr": "<f4", "fortran_order": False, "shape": shape}
            with temporary.open("wb") as file:
                np.lib.format.write_array_header_1_0(file, header)
                for _, rows in blocks:
                    file.write(np.ascontiguousarray(rows, dtype="<f4").data)
                    advance(len(rows))
            return
        names = [f"z{j}" for j in range(shape[1])]
        writer = None
        for more, rows in blocks:
            columns = np.asfortranarray(rows)  # parquet stores columns; a view of each is free then
            arrays = [*more.values(), *(pa.array(column) for column in columns.T)]
            table = pa.table(arrays, names=[*more, *names])
            # checksums: a flipped bit is found on reading; hardly a value repeats, so dictionaries only cost
            writer = writer or pq.ParquetWriter(
                temporary,
                table.schema,
                write_page_checksum=True,
                use_dictionary=False,
                compression=compression,
            )
            writer.write_table(table)
            advance(len(rows))
        if writer is not None:
            writer.close()


def check_ending(path: str | Path) -> str:
    """``.parquet`` or ``.npy``, the two kinds of files that :func:`write_embeddings` writes."""
    ending = Path(path).suffix.lower()
    if ending not in _ENDINGS:
        raise GraphError(
            f"embeddings cannot be written as {ending or 'a file without ending'}",
            where=str(path),
            fix="End the name in .parquet (a table with node ids) or .npy (an array, rows in node order).",
        )
    return ending


def _dense(embeddings: object, graph: Graph, where: str) -> FloatArray:
    if not (isinstance(embeddings, np.ndarray) or sp.issparse(embeddings)):
        raise GraphError(
            f"embeddings are a {type(embeddings).__name__}",
            where=where,
            fix="Give a NumPy array or a SciPy sparse matrix.",
        )
    array: npt.NDArray[np.generic] = (
        embeddings if isinstance(embeddings, np.ndarray) else embeddings.toarray()  # type: ignore[attr-defined]
    )
    if array.ndim != 2 or array.shape[0] != graph.num_nodes or array.dtype.kind not in "fiub":
        raise GraphError(
            f"embeddings are {array.dtype} of shape {array.shape} for {graph.num_nodes} nodes",
            where=where,
            fix="Give one row of numbers a node, in the graph's order.",
        )
    return array.astype(np.float32, copy=False)


def id_column(graph: Graph, where: str) -> pa.Array:
    """The graph's own ids, or positions if it has none, as Arrow holds them."""
    names = np.arange(graph.num_nodes) if graph.node_ids is None else graph.node_ids
    try:
        return pa.array(names.tolist() if names.dtype.kind in "OU" else names)
    except (pa.ArrowException, UnicodeError, OverflowError) as error:
        raise GraphError(
            f"parquet cannot hold these node ids: {error}",
            where=where,
            fix="Give the graph ids of one kind: all text or all whole numbers below 2^63.",
        ) from None


# ---------------------------------------------------------------- back


_VALUES_AT_ONCE = 2**22  # of a parquet file: what is read beside the matrix stays near 16 MB
_NUMBERED = re.compile(r"z(0|[1-9]\d{0,8})")
_MAKE = "Make one with `nodejepa embed` or nodejepa.tables.write_embeddings."


class StoredEmbeddings(NamedTuple):
    """What a file of embeddings holds: row ``i`` of ``matrix`` belongs to the node ``ids[i]``."""

    ids: npt.NDArray[Any]
    matrix: npt.NDArray[Any]  # float32, or float64 where the file has it


def read_embeddings(path: str | Path) -> StoredEmbeddings:
    """Ids and matrix of a ``.parquet`` or ``.npy`` file; the ids of ``.npy`` rows are their numbers.

    Parquet may have the columns ``id``, ``z0``, ``z1``, ... of :func:`nodejepa.tables.write_embeddings`, or
    ``id`` and a list column ``vector``; further columns are left alone. Checksums of pages are verified.

    >>> ids, z = read_embeddings("z.parquet")  # doctest: +SKIP
    """
    file = Path(path)
    readers = {".parquet": _read_parquet, ".npy": _read_npy}
    if file.suffix.lower() not in readers:
        raise DataError(
            f"embeddings are not read from {file.suffix or 'files without ending'}",
            where=str(path),
            fix="Give a .parquet or .npy file.",
        )
    if not file.is_file():
        what = "this is a folder, not a file" if file.is_dir() else "there is no such file"
        raise DataError(what, where=str(path), fix=f"{near_path(file)}{_MAKE}")
    with reading(str(path), _MAKE):
        stored = readers[file.suffix.lower()](file)
    check_embeddings(stored.matrix, where=str(path))
    return stored


def read_columns(path: str | Path) -> dict[str, list[Any]]:
    """What stands beside the vectors of a ``.parquet`` file, by its name: labels, clusters, sides."""
    file = Path(path)
    if file.suffix.lower() != ".parquet":
        return {}
    with reading(str(path), _MAKE):
        schema = pq.read_schema(file)
        names = [
            field.name
            for field in schema
            if field.name not in ("id", "vector")
            and not _NUMBERED.fullmatch(field.name)
            and _is_plain(field.type)
        ]
        table = pq.read_table(file, columns=names)
        return {name: table[name].to_pylist() for name in names}


def _is_plain(kind: pa.DataType) -> bool:
    kinds = ("string", "large_string", "integer", "floating", "boolean")
    return any(getattr(pa.types, f"is_{name}")(kind) for name in kinds)


def _read_npy(file: Path) -> StoredEmbeddings:
    matrix = np.load(file, allow_pickle=False)
    if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or matrix.dtype.kind not in "fiu":
        shape = getattr(matrix, "shape", "no shape")
        raise DataError(f"the array is no table of numbers but has {shape}", where=str(file), fix=_MAKE)
    kind = np.float32 if matrix.dtype in (np.float16, np.float32) else np.float64
    return StoredEmbeddings(np.arange(matrix.shape[0]), matrix.astype(kind, copy=False))


def _read_parquet(file: Path) -> StoredEmbeddings:
    with pq.ParquetFile(file, page_checksum_verification=True) as parquet:
        names, dtype, width = _layout(parquet.schema_arrow, str(file))
        total = parquet.metadata.num_rows
        chunks: list[pa.Array] = []
        matrix = np.empty((0, 0), dtype)
        start = 0
        at_once = max(1, _VALUES_AT_ONCE // (width or 256))
        with progress_bar("Reading embeddings", total=total) as advance:
            for batch in parquet.iter_batches(at_once, columns=["id", *names]):
                rows = batch.num_rows
                if rows == 0:
                    continue
                block = _block(batch, names, str(file))
                if start == 0:
                    matrix = np.empty((total, block.shape[1]), dtype)
                matrix[start : start + rows] = block
                chunks.append(batch.column("id"))
                start += rows
                advance(rows)
    if start == 0 or start != total:
        raise DataError(f"the file holds {start} of {total} rows", where=str(file), fix=_MAKE)
    return StoredEmbeddings(_ids(pa.chunked_array(chunks), str(file)), matrix)


def _layout(schema: pa.Schema, where: str) -> tuple[list[str], np.dtype[Any], int | None]:
    """Names of the columns that hold numbers, their common type and, where the file says it, the width."""
    numbered = sorted((n for n in schema.names if _NUMBERED.fullmatch(n)), key=lambda n: int(n[1:]))
    names = ["vector"] if "vector" in schema.names and not numbered else numbered
    complete = names == ["vector"] or names == [f"z{j}" for j in range(len(names))]
    if schema.names.count("id") != 1 or not names or not complete:
        found = ", ".join(schema.names[:8]) + (", ..." if len(schema.names) > 8 else "")
        raise DataError(
            f"the columns are {found or 'none'}, not id, z0, z1, ... or id, vector", where=where, fix=_MAKE
        )
    width: int | None = len(names)
    types = {schema.field(name).type for name in names}
    if names == ["vector"]:
        (kind,) = types
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
            raise DataError(
                f"the column vector is of type {kind}, not lists of numbers", where=where, fix=_MAKE
            )
        width = kind.list_size if pa.types.is_fixed_size_list(kind) else None
        types = {kind.value_type}
    for kind in types:
        if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
            raise DataError(f"embeddings are of type {kind}, not numbers", where=where, fix=_MAKE)
    single = all(pa.types.is_float32(kind) or pa.types.is_float16(kind) for kind in types)
    return names, np.dtype(np.float32 if single else np.float64), width


def _block(batch: pa.RecordBatch, names: list[str], where: str) -> npt.NDArray[Any]:
    columns = [batch.column(name) for name in names]
    if any(column.null_count for column in columns):
        raise DataError("some embeddings are missing (null)", where=where, fix="Fill or drop these rows.")
    if names != ["vector"]:
        return np.column_stack([column.to_numpy(zero_copy_only=False) for column in columns])
    (vectors,) = columns
    lengths = pc.unique(pc.list_value_length(vectors)).to_pylist()
    values = vectors.flatten()
    if len(lengths) != 1 or values.null_count:
        raise DataError(
            "the lists in the column vector differ in length or have gaps", where=where, fix=_MAKE
        )
    matrix: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False).reshape(batch.num_rows, lengths[0])
    return matrix


def _ids(column: pa.ChunkedArray, where: str) -> npt.NDArray[Any]:
    if column.null_count:
        raise DataError(
            f"{column.null_count} ids are missing (null)", where=where, fix="Fill or drop these rows."
        )
    if pa.types.is_integer(column.type):
        integers: npt.NDArray[Any] = column.to_numpy()
        return integers
    return id_array(column.to_pylist())


# ---------------------------------------------------------------- for other tools


_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_EXACT_IN_JAVASCRIPT = 2**53


def _write_vectors(path: Path, names: pa.Table, z: FloatArray) -> list[Path]:
    """One list of fixed size per node: vector stores take it for a vector."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(z.ravel()), z.shape[1])
    with atomic_path(path) as temporary:
        table = names.add_column(1, "vector", vectors)
        pq.write_table(table, temporary, write_page_checksum=True, use_dictionary=False)
    return [path]


def _write_jsonl(path: Path, names: pa.Table, z: FloatArray) -> list[Path]:
    """An object a line."""
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        for start, block in _blocks(z):
            # Arrow's text of a finite float32 is a JSON number, and faster than Python's
            texts = pa.array(block.ravel()).cast(pa.string()).to_pylist()
            # "1" would be read as a whole number, and "-0" would lose its sign
            numbers = [text if "." in text or "e" in text else f"{text}.0" for text in texts]
            width = block.shape[1]
            for i, row in enumerate(names.slice(start, len(block)).to_pylist()):
                vector = ", ".join(numbers[i * width : (i + 1) * width])
                file.write(f'{json.dumps(row)[:-1]}, "vector": [{vector}]}}\n')
    return [path]


def _write_csv(path: Path, names: pa.Table, z: FloatArray) -> list[Path]:
    """A header, then a line per node; text is quoted."""
    schema = pa.schema([*names.schema, *((f"z{j}", pa.float32()) for j in range(z.shape[1]))])
    with atomic_path(path) as temporary, pyarrow.csv.CSVWriter(temporary, schema) as file:
        for start, block in _blocks(z):
            columns = [*names.slice(start, len(block)).columns, *map(pa.array, np.asfortranarray(block).T)]
            file.write_table(pa.table(columns, schema=schema))
    return [path]


def _write_npy(path: Path, names: pa.Table, z: FloatArray) -> list[Path]:
    """The array as it is; ids go to ``z.npy.ids.jsonl``, a JSON value a line: any text fits."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.save(file, z, allow_pickle=False)
    beside = path.with_name(f"{path.name}.ids.jsonl")
    write_text(beside, "".join(f"{json.dumps(value)}\n" for value in names["id"].to_pylist()))
    return [path, beside]


def _blocks(z: FloatArray) -> Iterator[tuple[int, FloatArray]]:
    """A few rows at a time with the number of the first, under a progress bar."""
    step = max(1, _VALUES_AT_ONCE // z.shape[1])
    with progress_bar("Writing", total=len(z)) as advance:
        for start in range(0, len(z), step):
            block = z[start : start + step]
            yield start, block
            advance(len(block))


class ExportFormat(NamedTuple):
    """How a format is written, and how its files end."""

    write: Callable[[Path, pa.Table, FloatArray], list[Path]]
    endings: tuple[str, ...]


class Exported(NamedTuple):
    """The files that were written, and what the reader of them should know."""

    files: tuple[Path, ...]
    notes: tuple[str, ...]


EXPORT_FORMATS: dict[str, ExportFormat] = {
    "parquet": ExportFormat(_write_vectors, (".parquet",)),
    "jsonl": ExportFormat(_write_jsonl, (".jsonl", ".ndjson")),
    "csv": ExportFormat(_write_csv, (".csv",)),
    "npy": ExportFormat(_write_npy, (".npy",)),
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
        to: ``"parquet"`` (columns ``id`` and ``vector``, a list of fixed size, as LanceDB, Milvus, DuckDB and
            pandas take it), ``"jsonl"`` (``{"id": ..., "vector": [...]}``, one line per node: Qdrant,
            Weaviate, OpenSearch), ``"csv"`` (``id,z0,z1,...``) or ``"npy"`` (the array alone, as FAISS takes
            it; ids in a file beside it).
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
    array = read_ids(ids)
    values = list(range(len(matrix))) if array is None else array.tolist()
    kind = _kind(values)
    texts = values if kind is not None else [str(value) for value in values]
    more = dict(columns or {})
    for name, column in (("id", texts), *more.items()):
        if len(column) != len(matrix) or (name in ("id", "vector") and name in more):
            raise DataError(
                f"there are {len(column)} {'ids' if column is texts else 'values'} for {len(matrix)} rows",
                where=f"column {name}",
                fix="Give one value a row, under a name of its own.",
            )
    try:
        arrays = {"id": pa.array(texts, kind or pa.string())} | {n: pa.array(c) for n, c in more.items()}
    except UnicodeError as error:
        raise DataError(f"an id is no valid text: {error}", where="ids") from None
    files = EXPORT_FORMATS[to].write(Path(out), pa.table(arrays), matrix)
    return Exported(tuple(files), tuple(_notes(to, values, kind, list(more))))


def check_target(out: str | Path, to: str) -> None:
    """Refuse an unknown format and a path that does not suit it, before any work."""
    if to not in EXPORT_FORMATS:
        raise DataError(f"format {to!r} is unknown", fix=f"Use one of {', '.join(EXPORT_FORMATS)}.")
    endings = EXPORT_FORMATS[to].endings
    if Path(out).suffix.lower() not in endings:
        raise DataError(
            f"a {to} file is not called so", where=str(out), fix=f"End the name in {' or '.join(endings)}."
        )


def _kind(values: list[Any]) -> pa.DataType | None:
    """The Arrow type that holds all ids as they are, if there is one."""
    if values and all(type(value) is int for value in values):
        if min(values) >= -(2**63) and max(values) < 2**63:
            return pa.int64()
        return pa.uint64() if min(values) >= 0 and max(values) < 2**64 else None
    return pa.string() if all(type(value) is str for value in values) else None


def _notes(to: str, values: list[Any], kind: pa.DataType | None, more: list[str]) -> Iterator[str]:
    """What changed on the way, or what the reading tool may change."""
    if kind is None:
        yield "ids were neither text nor whole numbers and are written as text"
    if to == "npy" and more:
        yield f"{', '.join(more)} stay behind: a {to} file holds vectors only"
    if to == "csv" and (risky := sum(str(v).startswith(_FORMULA) for v in values if type(v) is not int)):
        yield (
            f"{risky} ids begin like a formula (=, +, -, @) and are kept as they are: import the column as "
            "text in a spreadsheet"
        )
    if to == "jsonl" and kind != pa.string() and any(abs(v) > _EXACT_IN_JAVASCRIPT for v in values if kind):
        yield "some ids are above 2^53: readers in JavaScript round them"
