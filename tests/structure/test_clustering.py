import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference.structure as reference
from nodejepa.graph import Graph
from nodejepa.structure import local_clustering


@given(
    edges=st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), max_size=80),
    direction=st.sampled_from(["symmetrize", "keep"]),
)
def test_equals_networkx(edges: list[tuple[int, int]], direction: str) -> None:
    source, target = [i for i, _ in edges], [j for _, j in edges]
    graph = Graph.from_edges(source, target, num_nodes=15, direction=direction)
    np.testing.assert_allclose(local_clustering(graph), reference.clustering(graph), atol=1e-12)


def test_equals_networkx_on_a_graph_with_hubs() -> None:
    graph = Graph.from_scipy(nx.to_scipy_sparse_array(nx.barabasi_albert_graph(600, 6, seed=3)))
    np.testing.assert_allclose(local_clustering(graph), reference.clustering(graph), atol=1e-12)


def test_by_hand() -> None:
    triangle_with_tail = Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3], weights=[5, 1, 1, 2])
    assert local_clustering(triangle_with_tail).tolist() == pytest.approx([1, 1, 1 / 3, 0])
    assert local_clustering(Graph.from_edges([], [], num_nodes=2)).tolist() == [0, 0]
