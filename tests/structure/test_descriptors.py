import importlib
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference.matrices as reference
from nodejepa.errors import ConfigError
from nodejepa.graph import Graph
from nodejepa.structure import DESCRIPTORS, descriptors, local_clustering, pagerank, spectral_coordinates

# by name, because the package offers a function that is called like the module
module = importlib.import_module("nodejepa.structure.descriptors")


def standard(values: np.ndarray) -> np.ndarray:
    return (values - values.mean()) / values.std()


def test_columns_are_what_the_table_says(toy_graph: Graph):
    size = toy_graph.num_nodes
    spectral = spectral_coordinates(toy_graph, 8)
    expected = np.column_stack(
        [
            standard(np.log1p(size * pagerank(toy_graph))),
            standard(np.log1p(toy_graph.degrees)),
            standard(local_clustering(toy_graph)),
            np.sign(spectral) * np.log1p(np.abs(spectral)),
        ]
    )
    got = descriptors(toy_graph, cache=False)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected, atol=1e-5)


@pytest.mark.parametrize("left_out", DESCRIPTORS)
def test_each_can_be_left_out_and_order_is_fixed(toy_graph: Graph, left_out: str):
    every = descriptors(toy_graph, spectral_dim=3)
    names = [name for name in reversed(DESCRIPTORS) if name != left_out]
    of_name = np.repeat(DESCRIPTORS, [1, 1, 1, 3])
    np.testing.assert_array_equal(
        descriptors(toy_graph, names, spectral_dim=3), every[:, of_name != left_out]
    )


def test_no_names_give_no_columns(toy_graph: Graph):
    assert descriptors(toy_graph, ()).shape == (60, 0)


def test_what_does_not_vary_becomes_zero():
    ring = Graph.from_edges(range(10), np.roll(range(10), 1))
    np.testing.assert_array_equal(descriptors(ring, ("pagerank", "degree", "clustering")), 0)
    lonely = descriptors(Graph.from_edges([], [], num_nodes=1))
    assert lonely.shape == (1, 11)
    assert not lonely.any()


def test_slow_parts_come_from_disk_the_second_time(toy_graph, tmp_path, monkeypatch):
    monkeypatch.setenv("NODEJEPA_CACHE", str(tmp_path))
    first = descriptors(toy_graph)
    for name in ("pagerank", "local_clustering", "spectral_coordinates"):
        monkeypatch.setattr(module, name, None)
    np.testing.assert_array_equal(descriptors(toy_graph), first)
    with pytest.raises(TypeError):
        descriptors(toy_graph, cache=False)


@pytest.mark.parametrize(("name", "advice"), [("page_rank", "mean pagerank"), ("xyz", "Choose from")])
def test_unknown_names_are_refused_with_advice(toy_graph: Graph, name: str, advice: str):
    with pytest.raises(ConfigError, match=advice):
        descriptors(toy_graph, (name,))


@pytest.mark.slow
def test_real_graph(data_root: Path):
    path = data_root / "Amazon" / "Photo" / "raw" / "amazon_electronics_photo.npz"
    with np.load(path, allow_pickle=False) as raw:
        source = np.repeat(np.arange(raw["adj_shape"][0]), np.diff(raw["adj_indptr"]))
        graph = Graph.from_edges(source, raw["adj_indices"], num_nodes=int(raw["adj_shape"][0]))
    got = descriptors(graph, cache=False)
    assert np.isfinite(got).all()
    isolated = graph.degrees == 0
    assert isolated.sum() == 115
    assert not got[isolated, 3:].any()
    # the leading coordinates describe many nodes, not a few detached ones
    assert np.all(np.count_nonzero(np.abs(got[:, 3:]) > 0.1, axis=0) > 300)


@pytest.mark.parametrize("direction", ["symmetrize", "keep"])
@pytest.mark.parametrize("damping", [0.5, 0.85, 0.95])
def test_pagerank_equals_networkx_with_weights_and_dangling_nodes(direction: str, damping: float):
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(
        rng.integers(0, 80, 150),
        rng.integers(0, 80, 150),
        weights=rng.uniform(0.1, 5, 150),
        num_nodes=90,
        direction=direction,
    )
    assert np.any(graph.degrees == 0)
    ranks = pagerank(graph, damping=damping)
    np.testing.assert_allclose(ranks, reference.pagerank(graph, damping), rtol=1e-4)
    assert ranks.sum() == pytest.approx(1)


def test_directed_edges_pass_rank_forward():
    graph = Graph.from_edges([0, 1, 2], [3, 3, 3], direction="keep")
    assert pagerank(graph).argmax() == 3


def test_without_edges_or_damping_all_nodes_are_equal():
    assert pagerank(Graph.from_edges([], [], num_nodes=4)).tolist() == [0.25] * 4
    np.testing.assert_allclose(pagerank(Graph.from_edges([0, 1], [1, 2]), damping=0.0), 1 / 3)


@pytest.mark.parametrize("damping", [1.0, -0.1, float("nan")])
def test_refuses_a_damping_that_cannot_work(damping: float):
    with pytest.raises(ConfigError, match="pagerank"):
        pagerank(Graph.from_edges([0], [1]), damping=damping)


@given(
    edges=st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), max_size=80),
    direction=st.sampled_from(["symmetrize", "keep"]),
)
def test_clustering_equals_networkx(edges: list[tuple[int, int]], direction: str):
    source, target = [i for i, _ in edges], [j for _, j in edges]
    graph = Graph.from_edges(source, target, num_nodes=15, direction=direction)
    np.testing.assert_allclose(local_clustering(graph), reference.clustering(graph), atol=1e-12)


def test_clustering_equals_networkx_on_a_graph_with_hubs():
    graph = Graph.from_scipy(nx.to_scipy_sparse_array(nx.barabasi_albert_graph(600, 6, seed=3)))
    np.testing.assert_allclose(local_clustering(graph), reference.clustering(graph), atol=1e-12)


def test_by_hand():
    triangle_with_tail = Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3], weights=[5, 1, 1, 2])
    assert local_clustering(triangle_with_tail).tolist() == pytest.approx([1, 1, 1 / 3, 0])
    assert local_clustering(Graph.from_edges([], [], num_nodes=2)).tolist() == [0, 0]
