"""The same graph in memory and on disk."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from nodejepa.nn import workspace
from nodejepa.tables import read_graph
from nodejepa.tables import store as store_graph
from nodejepa.tables.prepare import prepare_store

NODES = 700


@pytest.fixture(scope="module")
def make_graph(tmp_path_factory):
    """The same graph in memory and on disk, each made once; ``"sparse"`` columns are kept as CSR."""

    @cache
    def made(columns=70, directed=False, weighted=False):
        folder, form = tmp_path_factory.mktemp("graph"), sp.csr_array if columns == "sparse" else np.ndarray
        files = write_sparse(folder) if columns == "sparse" else write_dense(folder, columns, weighted)
        graph = read_graph(*files, directed=directed).graph
        store = prepare_store(*files, out=folder / "g.store", directed=directed)
        assert store.content_hash == graph.content_hash
        assert isinstance(graph.features, form)
        assert store.sparse_features == (columns == "sparse")
        return graph, store

    return made


def write_dense(folder, columns, weighted):
    rng = np.random.default_rng(columns)
    ends = rng.integers(0, NODES - 5, (2, 6 * NODES))
    ends[1] = (ends[0] + rng.integers(1, 9, ends.shape[1])) % (NODES - 5)
    x = rng.normal(size=(NODES, columns)).astype(np.float32)
    for _ in range(2):
        np.add.at(x, ends[0], 0.2 * x[ends[1]])
    x *= 1.5 ** -np.arange(columns, dtype=np.float32)[:, None].T * 3 + 0.05
    edges = {"source": ends[0], "target": ends[1]}
    if weighted:
        edges["weight"] = rng.random(ends.shape[1])
    pq.write_table(pa.table(edges), folder / "e.parquet")
    rows = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), columns)
    pq.write_table(pa.table({"id": np.arange(NODES), "x": rows}), folder / "n.parquet")
    return folder / "e.parquet", folder / "n.parquet"


def write_sparse(folder, *, numbers=0, categories=60, filled="all"):
    """Two columns of categories and some of numbers, of neighbours that are alike."""
    rng = np.random.default_rng(categories)
    ends = rng.integers(0, NODES, (2, 5 * NODES))
    ends[1] = (ends[0] + rng.integers(1, 9, ends.shape[1])) % NODES
    places = np.arange(NODES) * categories // NODES
    table = {"id": np.arange(NODES)}
    for name, spread in (("c", 3), ("d", 9)):
        drawn = (places + rng.integers(0, spread, NODES)) % categories
        table[name] = [f"{value:03d}" for value in drawn]
    for i in range(numbers):
        seen = {"all": slice(None), "first": slice(50), "last": slice(50, None)}[filled]
        table[f"x{i}"] = np.zeros(NODES)
        table[f"x{i}"][seen] = rng.normal(size=NODES)[seen]
    pq.write_table(pa.table({"source": ends[0], "target": ends[1]}), folder / "e.parquet")
    pq.write_table(pa.table(table), folder / "n.parquet", row_group_size=50)
    return folder / "e.parquet", folder / "n.parquet"


@pytest.fixture(name="write_sparse", scope="session")
def _write_sparse():
    """120 columns, 1 in 60 of them filled, unless it is asked for others."""
    return write_sparse


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 150 rows, and room for a few columns: everything else goes to disk."""
    spans = store_graph.StoredGraph.spans
    monkeypatch.setattr(store_graph.StoredGraph, "spans", lambda self, *_: spans(self, 150, 1 << 20))
    monkeypatch.setattr(workspace, "_MEMORY", 700 * 4 * 5 * 20)
