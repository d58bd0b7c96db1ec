import importlib

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodejepa.data import load_dataset
from nodejepa.errors import ConfigError
from nodejepa.graph import Graph
from nodejepa.structure import partition, recommended_parts
from nodejepa.structure.base import cache_file
from nodejepa.structure.partition import random_parts

# by name, because the package offers a function that is called like the module
partition_module = importlib.import_module("nodejepa.structure.partition")


def check_parts(part: np.ndarray, graph: Graph, parts: int):
    assert part.shape == (graph.num_nodes,)
    assert part.dtype == np.int32
    assert np.unique(part).tolist() == list(range(parts))


@pytest.mark.slow
@given(
    num_nodes=st.integers(1, 60),
    parts=st.integers(1, 40),
    degree=st.sampled_from([0.0, 0.3, 1.0, 4.0]),
    seed=st.integers(0, 100),
)
def test_no_part_is_ever_empty(num_nodes: int, parts: int, degree: float, seed: int):
    rng = np.random.default_rng(seed)
    count = int(degree * num_nodes)
    graph = Graph.from_edges(
        rng.integers(0, num_nodes, count), rng.integers(0, num_nodes, count), num_nodes=num_nodes
    )
    part = partition(graph, parts, cache=False)
    check_parts(part, graph, min(parts, max(min(num_nodes, 2), num_nodes // 2)))
    np.testing.assert_array_equal(part, partition(graph, parts, cache=False))


def test_finds_communities():
    twin = nx.connected_caveman_graph(8, 12)
    part = partition(Graph.from_scipy(nx.to_scipy_sparse_array(twin)), 8, cache=False)
    assert all(np.unique(part[first : first + 12]).size == 1 for first in range(0, 96, 12))


def test_cuts_far_fewer_edges_than_chance():
    graph = Graph.from_scipy(nx.to_scipy_sparse_array(nx.grid_2d_graph(40, 40)))
    part = partition(graph, 16, cache=False)
    source, target, _ = graph.edge_arrays()
    assert np.mean(part[source] != part[target]) < 0.2
    assert np.bincount(part).max() < 1.2 * 100


def test_isolated_nodes_even_out_the_parts():
    graph = Graph.from_scipy(
        nx.to_scipy_sparse_array(nx.disjoint_union(nx.grid_2d_graph(6, 6), nx.empty_graph(64)))
    )
    assert np.bincount(partition(graph, 10, cache=False)).tolist() == [10] * 10
    lonely = Graph.from_edges([], [], num_nodes=11)
    assert sorted(np.bincount(partition(lonely, 4, cache=False))) == [2, 3, 3, 3]


def test_groups_go_to_the_smallest_part_one_at_a_time():
    sizes, groups = np.array([5, 0, 3, 0]), np.array([4, 4, 1, 1, 1, 1, 2])
    slow, expected = sizes.copy(), []
    for group in groups:
        expected.append(int(np.argmin(slow)))
        slow[expected[-1]] += group
    assert partition_module._onto_smallest(sizes, groups).tolist() == expected


def test_parts_that_metis_leaves_empty_are_filled(monkeypatch: pytest.MonkeyPatch):
    graph = Graph.from_scipy(nx.to_scipy_sparse_array(nx.path_graph(16)))
    monkeypatch.setattr(partition_module, "_metis", lambda *_: np.zeros(16, dtype=np.int32))
    part = partition(graph, 4, cache=False)
    assert np.bincount(part).tolist() == [4, 4, 4, 4]
    assert np.count_nonzero(np.diff(part)) == 3


def test_directed_graphs_are_split_by_their_undirected_view():
    rng = np.random.default_rng(0)
    source, target = rng.integers(0, 50, 120), rng.integers(0, 50, 120)
    directed = Graph.from_edges(source, target, num_nodes=50, direction="keep")
    symmetric = Graph.from_edges(source, target, num_nodes=50)
    np.testing.assert_array_equal(partition(directed, 5, cache=False), partition(symmetric, 5, cache=False))


def test_is_kept_on_disk_by_number_of_parts(monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.setenv("NODEJEPA_CACHE", str(tmp_path))
    graph = Graph.from_scipy(nx.to_scipy_sparse_array(nx.grid_2d_graph(7, 7)))
    first = partition(graph, 5)
    assert cache_file(graph, "metis-5").is_file()
    check_parts(partition(graph, 3), graph, 3)
    monkeypatch.setattr(partition_module, "_metis", None)
    np.testing.assert_array_equal(partition(graph, 5), first)


def test_recommended_parts_gives_the_papers_table():
    table = {13_752: 64, 7_650: 64, 18_333: 64, 34_493: 128, 169_343: 256}
    assert {size: recommended_parts(size) for size in table} == table
    assert [recommended_parts(size) for size in (1, 2, 3, 10, 16, 100, 1797)] == [1, 2, 2, 5, 8, 8, 32]


def test_refuses_less_than_one_part():
    with pytest.raises(ConfigError, match="parts is 0"):
        partition(Graph.from_edges([0], [1]), 0)


def inner_edges(graph: Graph, part: np.ndarray) -> float:
    """Share of the edges that stay inside of a part."""
    source, target, _ = graph.edge_arrays()
    return float(np.mean(part[source] == part[target]))


@pytest.mark.slow
def test_clusters_instead_of_nodes_give_balanced_parts_with_few_cut_edges(monkeypatch):
    """What graphs beyond METIS's memory get, on graphs where METIS can be asked as well."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 40, 6000)
    source = rng.integers(0, 6000, 60_000)
    near = rng.permutation(np.argsort(group, kind="stable"))
    by_group = [np.flatnonzero(group == g) for g in range(40)]
    target = np.where(
        rng.random(60_000) < 0.8,
        [by_group[group[s]][k % len(by_group[group[s]])] for s, k in zip(source, near[source], strict=True)],
        rng.integers(0, 6000, 60_000),
    )
    planted = Graph.from_edges(source, target, num_nodes=6000)
    digits = load_dataset("digits").graph
    for graph in (planted, digits):
        monkeypatch.setattr(partition_module, "METIS_ENTRIES", 10**9)
        metis = inner_edges(graph, partition(graph, 8, cache=False))
        monkeypatch.setattr(partition_module, "METIS_ENTRIES", 0)
        part = partition(graph, 8, cache=False)
        check_parts(part, graph, 8)
        np.testing.assert_array_equal(part, partition(graph, 8, cache=False))
        assert np.bincount(part).max() <= 1.15 * graph.num_nodes / 8
        chance = inner_edges(graph, random_parts(graph, 8))
        assert chance == pytest.approx(1 / 8, abs=0.02)
        assert inner_edges(graph, part) - chance > 0.6 * (metis - chance)


@pytest.mark.slow
def test_no_cluster_outgrows_its_limit():
    adjacency = load_dataset("digits").graph.adjacency
    for limit in (1, 7, 50):
        labels = partition_module._spread(adjacency.indptr, adjacency.indices, limit, 8)
        sizes = np.bincount(labels)
        assert sizes.max() <= limit
        assert limit == 1 or np.median(sizes[labels]) > limit / 2


def test_random_parts_are_of_equal_size():
    graph = Graph.from_edges([0], [1], num_nodes=101)
    assert sorted(np.bincount(random_parts(graph, 8))) == [12, 12, 12, 13, 13, 13, 13, 13]
