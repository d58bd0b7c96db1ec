"""Embeddings on disk: original ids, original order, whole or not at all."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from nodejepa.errors import GraphError
from nodejepa.graph import Graph
from nodejepa.io import write_embeddings

Z = np.array([[1, 0.5], [0, 2], [3, 0]], dtype=np.float32)


@pytest.mark.parametrize("embeddings", [Z, Z.astype(np.float64), np.asfortranarray(Z), sp.csr_array(Z)])
@pytest.mark.parametrize("ids", [None, ["b", "<i>", "=1+1"], [2**62, -5, 0]])
def test_round_trip(tmp_path, embeddings, ids):
    write_embeddings(
        tmp_path / "deep" / "z.parquet", Graph.from_edges([0], [1], num_nodes=3, node_ids=ids), embeddings
    )
    table = pq.read_table(tmp_path / "deep" / "z.parquet").to_pydict()
    assert table == {"id": ids or [0, 1, 2], "z0": [1, 0, 3], "z1": [0.5, 2, 0]}


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path):
    mixed = Graph.from_edges([0], [1], node_ids=[1, "one", (2,)])
    with pytest.raises(GraphError, match="parquet cannot hold"):
        write_embeddings(tmp_path / "z.parquet", mixed, Z)
    with pytest.raises(GraphError, match="for 3 nodes"):
        write_embeddings(tmp_path / "z.parquet", mixed, Z[:2])
    assert list(tmp_path.iterdir()) == []
