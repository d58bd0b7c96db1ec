"""Nodes that only their place describes, on disk: the features, to the bit, that they have in memory."""

from __future__ import annotations

import sys

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nodejepa.errors import ConfigError
from nodejepa.graph import Graph
from nodejepa.structure import descriptors, spectral_coordinates
from nodejepa.structure.base import largest_component, neighbours
from nodejepa.tables import read_graph
from nodejepa.tables.options import COMPARABLE
from nodejepa.tables.prepare import prepare_store


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Nothing that one way computed is found by the other."""
    folders = iter(range(100))

    def fresh():
        monkeypatch.setenv("NODEJEPA_CACHE", str(tmp_path / f"cache{next(folders)}"))

    fresh()
    return fresh


def write(folder, *, nodes=700, weighted=False, named="id"):
    """A ring of neighbours, a second component and nodes that only the table knows."""
    rng = np.random.default_rng(0)
    start = rng.integers(0, nodes, 4 * nodes)
    end = (start + rng.integers(1, 25, 4 * nodes)) % nodes
    start, end = np.append(start, [nodes, nodes + 1]), np.append(end, [nodes + 1, nodes + 2])
    edges = {"source": start, "target": end}
    if weighted:
        edges["weight"] = rng.random(start.size)
    pq.write_table(pa.table(edges), folder / "e.parquet")
    table = {named: np.arange(nodes + 5), "c": [f"{i * 40 // nodes:02d}" for i in range(nodes + 5)]}
    pq.write_table(pa.table(table), folder / "n.parquet")
    pq.write_table(pa.table({named: np.arange(nodes + 5)}), folder / "ids.parquet")
    return folder / "e.parquet"


@pytest.mark.parametrize(("directed", "weighted"), [(False, False), (True, True)])
@pytest.mark.parametrize("nodes", [700, 1500], ids=["dense-solver", "krylov"])
@pytest.mark.usefixtures("small_blocks")
def test_edges_alone_make_the_store_that_they_make_in_memory(tmp_path, own_cache, directed, weighted, nodes):
    edges = write(tmp_path, nodes=nodes, weighted=weighted)
    loaded = read_graph(edges, directed=directed, structural="all")  # a store has no adjacency coordinates
    own_cache()
    store = prepare_store(edges, out=tmp_path / "g.store", directed=directed)
    assert store.num_features == 11
    assert len([*store.spans()]) > 3
    assert store.content_hash == loaded.graph.content_hash
    assert store.manifest.schema == loaded.schema.to_dict()
    told = store.manifest.report
    assert told["notes"] == loaded.report.to_dict()["notes"]
    assert store.ids(0, store.num_nodes).to_pylist() == loaded.graph.node_ids.tolist()


@pytest.mark.parametrize(
    ("nodes", "structural"),
    [
        ("ids.parquet", None),
        ("n.parquet", ("degree", "pagerank")),
        ("n.parquet", True),
        ("ids.parquet", "degree"),
    ],
)
@pytest.mark.usefixtures("small_blocks")
def test_descriptors_stand_beside_the_columns_of_a_table(tmp_path, own_cache, nodes, structural):
    edges = write(tmp_path)
    loaded = read_graph(edges, tmp_path / nodes, structural="all" if structural is None else structural)
    own_cache()
    store = prepare_store(edges, tmp_path / nodes, out=tmp_path / "g.store", structural=structural)
    assert store.content_hash == loaded.graph.content_hash
    assert store.manifest.schema == loaded.schema.to_dict()


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.usefixtures("small_blocks")
def test_all_descriptors_by_rows_are_those_of_the_graph_in_memory(make_graph, directed):
    graph, store = make_graph(20, directed, directed)
    np.testing.assert_array_equal(descriptors(store, cache=False), descriptors(graph, cache=False))


def test_a_store_has_no_coordinates_of_the_adjacency(tmp_path):
    edges = write(tmp_path)
    with pytest.raises(ConfigError, match=r"'adjacency' is made of graphs in memory only.*spectral"):
        prepare_store(edges, out=tmp_path / "g.store", structural=("degree", "adjacency"))


def test_descriptors_are_not_computed_twice(tmp_path, monkeypatch):
    edges = write(tmp_path)
    prepare_store(edges, out=tmp_path / "g.store")
    monkeypatch.setattr("nodejepa.structure.laplacian.leading_eigenpairs", None)
    again = prepare_store(edges, out=tmp_path / "again.store")
    assert descriptors(again, COMPARABLE).shape == (again.num_nodes, 11)


def test_too_little_memory_for_spectral_coordinates_is_said_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["nodejepa.structure.descriptors"], "_SPECTRAL_BYTES", 1 << 40)
    with pytest.raises(ConfigError, match=r"spectral coordinates of 703 nodes need.*Leave them out"):
        prepare_store(write(tmp_path), out=tmp_path / "g.store")
    made = prepare_store(
        tmp_path / "e.parquet", out=tmp_path / "g.store", structural=("pagerank", "degree", "clustering")
    )
    assert made.num_features == 3


@pytest.mark.parametrize("seed", range(5))
def test_the_largest_component_alone_has_coordinates(seed):
    rng = np.random.default_rng(seed)
    graph = Graph.from_edges(*rng.integers(0, 60, (2, 35)), num_nodes=60, direction="keep")
    edges = neighbours(graph)
    undirected = nx.from_scipy_sparse_array(graph.adjacency)
    sizes = [len(part) for part in nx.connected_components(undirected)]
    assert largest_component(edges).size == max(sizes)
    assert not spectral_coordinates(graph, 2)[np.setdiff1d(np.arange(60), largest_component(edges))].any()
