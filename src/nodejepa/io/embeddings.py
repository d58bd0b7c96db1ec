"""Embeddings out: one parquet file, a row a node, keyed by the caller's own ids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nodejepa.errors import GraphError
from nodejepa.files import atomic_path
from nodejepa.graph import Graph
from nodejepa.graph_checks import Features


def write_embeddings(path: str | Path, graph: Graph, embeddings: Features) -> None:
    """Write columns ``id``, ``z0``, ``z1``, ... in the graph's order, atomically.

    Args:
        path: of the parquet file; its folder is made if needed.
        graph: whose ``node_ids`` (or positions, if it has none) become the column ``id``.
        embeddings: ``[nodes, D]``, dense or sparse.
    """
    if embeddings.ndim != 2 or embeddings.shape[0] != graph.num_nodes:
        raise GraphError(
            f"embeddings have shape {embeddings.shape} for {graph.num_nodes} nodes",
            where=str(path),
            fix="Give one row a node, in the graph's order.",
        )
    names = np.arange(graph.num_nodes) if graph.node_ids is None else graph.node_ids
    try:
        ids = pa.array(names.tolist() if names.dtype.kind in "OU" else names)
    except (pa.ArrowException, UnicodeError) as error:
        raise GraphError(
            f"parquet cannot hold these node ids: {error}",
            where=str(path),
            fix="Give the graph ids of one kind: all text or all whole numbers.",
        ) from None
    dense = embeddings if isinstance(embeddings, np.ndarray) else embeddings.toarray()
    columns = np.asfortranarray(
        dense, dtype=np.float32
    )  # parquet stores columns; a view of each is free then
    names_of_columns = ["id", *(f"z{j}" for j in range(columns.shape[1]))]
    table = pa.table([ids, *(pa.array(column) for column in columns.T)], names=names_of_columns)
    with atomic_path(path) as temporary:
        pq.write_table(table, temporary)
