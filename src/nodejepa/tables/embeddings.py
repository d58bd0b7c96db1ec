"""Embeddings out, one row per node, and back: parquet with the caller's own ids, or a plain npy array."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

from nodejepa.diagnostics import check_embeddings
from nodejepa.errors import DataError, GraphError
from nodejepa.files import atomic_path
from nodejepa.graph import Graph
from nodejepa.graph_checks import Features, FloatArray, id_array
from nodejepa.machine import progress_bar
from nodejepa.tables.table import near_path, reading

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
        columns: more columns of a parquet file, with one value per node, such as ``LoadedGraph.sides``.
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
            # parquet stores columns; by parts that stay in the processor's cache
            columns = np.empty(rows.shape[::-1], rows.dtype)
            np.concatenate([part.T for part in _parts(rows)], axis=1, out=columns)
            arrays = [*more.values(), *(pa.array(column) for column in columns)]
            table = pa.table(arrays, names=[*more, *names])
            # checksums: a flipped bit is found on reading; dictionaries and extremes only cost
            writer = writer or pq.ParquetWriter(
                temporary,
                table.schema,
                write_page_checksum=True,
                use_dictionary=False,
                write_statistics=[*more],
                compression=compression,
            )
            writer.write_table(table)
            advance(len(rows))
        if writer is not None:
            writer.close()


def _parts(rows: Any, size: int = 512) -> list[Any]:
    return [rows[low : low + size] for low in range(0, max(len(rows), 1), size)]


def check_ending(path: str | os.PathLike[str]) -> str:
    """``.parquet`` or ``.npy``, the two kinds of files that :func:`write_embeddings` writes."""
    if not isinstance(path, str | os.PathLike) or "\0" in os.fspath(path):
        raise GraphError(f"{path!r} is no path", where="out", fix='Name a file, such as "z.parquet".')
    ending = Path(path).suffix.lower()
    if ending not in _ENDINGS:
        raise GraphError(
            f"embeddings cannot be written as {ending or 'a file without ending'}",
            where=str(path),
            fix="End the name in .parquet (a table with node ids) or .npy (an array, rows in node order).",
        )
    return ending


def _dense(embeddings: Any, graph: Graph, where: str) -> FloatArray:
    if not (isinstance(embeddings, np.ndarray) or sp.issparse(embeddings)):
        raise GraphError(
            f"embeddings are a {type(embeddings).__name__}",
            where=where,
            fix="Give a NumPy array or a SciPy sparse matrix.",
        )
    array: npt.NDArray[Any] = embeddings.toarray() if sp.issparse(embeddings) else embeddings
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

    Parquet has the columns ``id``, ``z0``, ``z1``, ... of :func:`nodejepa.tables.write_embeddings`; further
    columns are left alone. Checksums of pages are verified.

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
        fields = [f for f in pq.read_schema(file) if f.name != "id" and not _NUMBERED.fullmatch(f.name)]
        names = [field.name for field in fields if not pa.types.is_nested(field.type)]
        return pq.read_table(file, columns=names).to_pydict()  # type: ignore[no-any-return]


def _read_npy(file: Path) -> StoredEmbeddings:
    matrix = np.load(file, allow_pickle=False)
    if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or matrix.dtype.kind not in "fiu":
        shape = getattr(matrix, "shape", "no shape")
        raise DataError(f"the array is no table of numbers but has {shape}", where=str(file), fix=_MAKE)
    kind = np.float32 if matrix.dtype in (np.float16, np.float32) else np.float64
    return StoredEmbeddings(np.arange(matrix.shape[0]), matrix.astype(kind, copy=False))


def _read_parquet(file: Path) -> StoredEmbeddings:
    with pq.ParquetFile(file, page_checksum_verification=True) as parquet:
        names, dtype = _layout(parquet.schema_arrow, str(file))
        total = parquet.metadata.num_rows
        chunks: list[pa.Array] = []
        matrix = np.empty((total, len(names)), dtype)
        start, at_once = 0, max(1, _VALUES_AT_ONCE // len(names))
        with progress_bar("Reading embeddings", total=total) as advance:
            for batch in parquet.iter_batches(at_once, columns=["id", *names]):
                for place, column in enumerate(batch.column(name) for name in names):
                    _refuse_missing(column, "embeddings", str(file))
                    matrix[start : start + batch.num_rows, place] = column.to_numpy(zero_copy_only=False)
                chunks.append(batch.column("id"))
                start += batch.num_rows
                advance(batch.num_rows)
    if start == 0 or start != total:
        raise DataError(f"the file holds {start} of {total} rows", where=str(file), fix=_MAKE)
    ids = pa.chunked_array(chunks)
    _refuse_missing(ids, "ids", str(file))
    return StoredEmbeddings(
        ids.to_numpy() if pa.types.is_integer(ids.type) else id_array(ids.to_pylist()), matrix
    )


def _layout(schema: pa.Schema, where: str) -> tuple[list[str], npt.DTypeLike]:
    """Names of the columns that hold numbers, and their common type."""
    names = sorted((n for n in schema.names if _NUMBERED.fullmatch(n)), key=lambda n: int(n[1:]))
    if schema.names.count("id") != 1 or not names or names != [f"z{j}" for j in range(len(names))]:
        found = ", ".join(schema.names[:8]) + (", ..." if len(schema.names) > 8 else "")
        raise DataError(f"the columns are {found or 'none'}, not id, z0, z1, ...", where=where, fix=_MAKE)
    types = {schema.field(name).type for name in names}
    for kind in types:
        if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
            raise DataError(f"embeddings are of type {kind}, not numbers", where=where, fix=_MAKE)
    single = all(pa.types.is_float32(kind) or pa.types.is_float16(kind) for kind in types)
    return names, np.float32 if single else np.float64


def _refuse_missing(column: Any, what: str, where: str) -> None:
    if column.null_count:
        raise DataError(
            f"{column.null_count} {what} are missing (null)", where=where, fix="Fill or drop these rows."
        )
