"""The same graph in memory and on disk."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nodejepa.nn import workspace
from nodejepa.tables import read_graph
from nodejepa.tables import store as store_graph
from nodejepa.tables.prepare import prepare_store


@pytest.fixture(scope="module")
def make_graph(tmp_path_factory):
    """The same graph in memory and on disk, each made once."""

    @cache
    def made(columns=70, directed=False, weighted=False):
        return build(tmp_path_factory.mktemp("graph"), columns, directed, weighted)

    return made


def build(folder, columns, directed, weighted, nodes=700):
    rng = np.random.default_rng(columns)
    ends = rng.integers(0, nodes - 5, (2, 6 * nodes))
    ends[1] = (ends[0] + rng.integers(1, 9, ends.shape[1])) % (nodes - 5)
    x = rng.normal(size=(nodes, columns)).astype(np.float32)
    for _ in range(2):
        np.add.at(x, ends[0], 0.2 * x[ends[1]])
    x *= 1.5 ** -np.arange(columns, dtype=np.float32)[:, None].T * 3 + 0.05
    edges = {"source": ends[0], "target": ends[1]}
    if weighted:
        edges["weight"] = rng.random(ends.shape[1])
    pq.write_table(pa.table(edges), folder / "e.parquet")
    rows = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), columns)
    pq.write_table(pa.table({"id": np.arange(nodes), "x": rows}), folder / "n.parquet")
    files = (folder / "e.parquet", folder / "n.parquet")
    graph = read_graph(*files, directed=directed).graph
    store = prepare_store(*files, out=folder / "g.store", directed=directed)
    assert store.content_hash == graph.content_hash
    return graph, store


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 150 rows, and room for a few columns: everything else goes to disk."""
    spans = store_graph.StoredGraph.spans
    monkeypatch.setattr(store_graph.StoredGraph, "spans", lambda self, *_: spans(self, 150, 1 << 20))
    monkeypatch.setattr(workspace, "_MEMORY", 700 * 4 * 5 * 20)
