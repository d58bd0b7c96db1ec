"""Embeddings out, a row a node, and back: parquet with the caller's own ids, or a plain npy array."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import scipy.sparse as sp

from nodejepa.diagnostics import check_embeddings
from nodejepa.errors import DataError, GraphError, NodeJEPAError
from nodejepa.files import atomic_path
from nodejepa.graph import Graph
from nodejepa.graph_checks import Features, FloatArray, id_array
from nodejepa.progress import progress_bar
from nodejepa.tables.inputs import near_path

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
    with _explained(path):
        stored = readers[file.suffix.lower()](file)
    check_embeddings(stored.matrix, where=str(path))
    return stored


def read_columns(path: str | Path) -> dict[str, list[Any]]:
    """What stands beside the vectors of a ``.parquet`` file, by its name: labels, clusters, sides."""
    file = Path(path)
    if file.suffix.lower() != ".parquet":
        return {}
    with _explained(path):
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


@contextmanager
def _explained(path: str | Path) -> Iterator[None]:
    """A parser that meets damage may raise anything; to the user it is a damaged file."""
    try:
        yield
    except NodeJEPAError:
        raise
    except PermissionError:
        raise DataError("the file may not be read", where=str(path), fix="Check its permissions.") from None
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"the file is damaged or of another kind: {reason}", where=str(path), fix=_MAKE
        ) from None


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
