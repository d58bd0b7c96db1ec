"""Facts about a graph equal those counted one by one."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from nodejepa.graph import Graph
from nodejepa.structure.summary import summarise_graph


@pytest.mark.slow
@given(
    nodes=st.integers(1, 12),
    pairs=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=30),
    directed=st.booleans(),
    sparse=st.booleans(),
    data=st.data(),
)
def test_equal_to_counting(nodes, pairs, directed, sparse, data):
    pairs = [(a % nodes, b % nodes) for a, b in pairs]
    columns = data.draw(st.integers(0, 3))
    values = data.draw(
        st.lists(
            st.lists(st.sampled_from([0.0, 1.0, -2.0]), min_size=columns, max_size=columns),
            min_size=nodes,
            max_size=nodes,
        )
    )
    x = np.array(values, dtype=np.float32).reshape(nodes, columns)
    graph = Graph.from_edges(
        [a for a, _ in pairs],
        [b for _, b in pairs],
        num_nodes=nodes,
        features=sp.csr_array(x) if sparse and columns else x,
        direction="keep" if directed else "symmetrize",
    )
    found = summarise_graph(graph)
    twin = nx.Graph()
    twin.add_nodes_from(range(nodes))
    twin.add_edges_from((a, b) for a, b in pairs if a != b)
    parts = sorted(map(len, nx.connected_components(twin)), reverse=True)
    degrees = [d for _, d in twin.degree()]
    assert found.nodes == nodes
    assert found.edges == (len({p for p in pairs if p[0] != p[1]}) if directed else twin.number_of_edges())
    assert (found.components, found.component_sizes) == (len(parts), tuple(parts[:5]))
    assert found.isolated_nodes == degrees.count(0)
    assert found.max_degree == max(degrees)
    assert found.mean_degree == pytest.approx(np.mean(degrees))
    assert found.hub_edge_share == pytest.approx(max(degrees) / sum(degrees) if sum(degrees) else 0)
    assert found.zero_rows == sum(not row.any() for row in x)
    assert found.constant_columns == sum(len(set(column.tolist())) == 1 for column in x.T)
    if columns:
        assert found.feature_density == pytest.approx(np.count_nonzero(x) / x.size)


def test_explicit_zeros_do_not_change_the_facts():
    x = np.array([[0, 1, 5], [0, 1, 0], [0, 1, 2]], dtype=np.float32)
    stored = sp.csr_array((x.ravel(), np.tile([0, 1, 2], 3), [0, 3, 6, 9]), shape=(3, 3))
    edges = ([0, 1], [1, 2])
    dense = summarise_graph(Graph.from_edges(*edges, features=x))
    sparse = summarise_graph(Graph.from_edges(*edges, features=stored))
    assert (sparse.constant_columns, sparse.zero_rows, sparse.feature_density) == (2, 0, 5 / 9)
    assert (dense.constant_columns, dense.zero_rows, dense.feature_density) == (2, 0, 5 / 9)
    assert sparse.sparse_features
    assert not dense.sparse_features
