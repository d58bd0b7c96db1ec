"""Embeddings out, a row a node: parquet with the caller's own ids, or a plain npy array."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

from nodejepa.errors import GraphError
from nodejepa.files import atomic_path
from nodejepa.graph import Graph
from nodejepa.graph_checks import Features, FloatArray
from nodejepa.progress import progress_bar

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
    beside = {} if ending == ".npy" else {"id": _ids(graph, str(path)), **(columns or {})}
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


def _ids(graph: Graph, where: str) -> pa.Array:
    names = np.arange(graph.num_nodes) if graph.node_ids is None else graph.node_ids
    try:
        return pa.array(names.tolist() if names.dtype.kind in "OU" else names)
    except (pa.ArrowException, UnicodeError, OverflowError) as error:
        raise GraphError(
            f"parquet cannot hold these node ids: {error}",
            where=where,
            fix="Give the graph ids of one kind: all text or all whole numbers below 2^63.",
        ) from None
