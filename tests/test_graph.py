"""Properties of Graph, each against a dense twin written from its definition."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, replace
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from nodejepa.errors import GraphError
from nodejepa.graph import Graph
from reference.matrices import propagation


class Edges(NamedTuple):
    size: int
    source: list[int]
    target: list[int]
    weights: list[float] | None

    def graph(self, direction: str = "symmetrize", **more) -> Graph:
        return Graph.from_edges(
            self.source, self.target, num_nodes=self.size, weights=self.weights, direction=direction, **more
        )


@st.composite
def edge_lists(draw) -> Edges:
    """Any edges: repeated, reversed, self-loops, isolated nodes, zero weights."""
    size = draw(st.integers(1, 8))
    pairs = draw(st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=25))
    weight = st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0, 3.0])  # exact in float32, also when added up
    weights = draw(st.none() | st.lists(weight, min_size=len(pairs), max_size=len(pairs)))
    return Edges(size, [i for i, _ in pairs], [j for _, j in pairs], weights)


def dense_adjacency(edges: Edges, *, directed: bool) -> np.ndarray:
    """The merge rule of from_edges, edge by edge."""
    matrix = np.zeros((edges.size, edges.size))
    for k, (i, j) in enumerate(zip(edges.source, edges.target, strict=True)):
        if i == j:
            continue
        if edges.weights is None:
            matrix[i, j] = 1
        else:
            matrix[i, j] += edges.weights[k]
    return matrix if directed else np.maximum(matrix, matrix.T)


@given(edge_lists(), st.booleans())
def test_adjacency_follows_the_merge_rule(edges, directed):
    graph = edges.graph("keep" if directed else "symmetrize")
    expected = dense_adjacency(edges, directed=directed)
    np.testing.assert_array_equal(graph.adjacency.toarray(), expected)
    assert graph.num_nodes == edges.size
    assert graph.num_edges == np.count_nonzero(expected)
    assert graph.directed is directed
    assert graph.is_weighted == bool(np.any((expected != 0) & (expected != 1)))
    np.testing.assert_allclose(graph.degrees, expected.sum(axis=1))


@given(edge_lists())
def test_adjacency_is_canonical(edges):
    matrix = edges.graph().adjacency
    assert matrix.has_canonical_format  # sorted, no duplicates
    assert matrix.dtype == np.float32
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
    assert not matrix.diagonal().any()
    assert np.all(matrix.data > 0)
    assert abs(matrix - matrix.T).nnz == 0


@given(edge_lists(), st.booleans())
def test_normalized_adjacency_equals_the_dense_formula(edges, directed):
    graph = edges.graph("keep" if directed else "symmetrize")
    expected = propagation(dense_adjacency(edges, directed=directed))
    np.testing.assert_allclose(graph.normalized_adjacency.toarray(), expected, atol=1e-6)
    if not directed:
        assert abs(graph.normalized_adjacency - graph.normalized_adjacency.T).nnz == 0


@pytest.mark.slow
@given(edge_lists(), edge_lists())
def test_hash_is_equal_exactly_when_structure_is(one, other):
    same = one.size == other.size and np.array_equal(
        dense_adjacency(one, directed=False), dense_adjacency(other, directed=False)
    )
    assert (one.graph().structure_hash == other.graph().structure_hash) == same


def test_hash_is_stable_over_releases():
    """Caches on disk are keyed by it: a change must be deliberate."""
    graph = Graph.from_edges([0, 1], [1, 2], features=np.eye(3))
    assert graph.structure_hash.startswith("4da16648c144fa16")
    assert graph.content_hash.startswith("479aadfb29c49b38")


def test_hashes_tell_structure_from_features():
    graph = Graph.from_edges([0, 1], [1, 2], features=np.eye(3))
    other = graph.with_features(2 * np.eye(3))
    assert graph.structure_hash == other.structure_hash
    assert graph.content_hash != other.content_hash
    reshaped = [graph.with_features(np.zeros((3, width))).content_hash for width in (0, 1, 2)]
    assert len(set(reshaped)) == 3
    both_ways = Graph.from_edges([0, 1, 1, 2], [1, 0, 2, 1], direction="keep")
    assert both_ways.structure_hash != graph.structure_hash  # a directed graph is another thing


@pytest.mark.slow
@given(edge_lists(), st.booleans())
def test_edge_arrays_and_scipy_give_the_graph_back(edges, directed):
    direction = "keep" if directed else "check"
    graph = edges.graph("keep" if directed else "symmetrize")
    source, target, weight = graph.edge_arrays()
    again = Graph.from_edges(source, target, weights=weight, num_nodes=graph.num_nodes, direction=direction)
    through_scipy = Graph.from_scipy(graph.adjacency.copy(), direction=direction)
    assert again.structure_hash == graph.structure_hash == through_scipy.structure_hash


@pytest.mark.parametrize("kind", ["coo", "csr", "csc", "lil", "dok", "bsr"])
@pytest.mark.parametrize("container", [sp.coo_array, sp.coo_matrix])
def test_from_scipy_takes_every_format(kind, container):
    matrix = container(np.array([[0, 1, 0], [1, 0, 2], [0, 2, 0]])).asformat(kind)
    assert Graph.from_scipy(matrix).adjacency.toarray().tolist() == [[0, 1, 0], [1, 0, 2], [0, 2, 0]]


def test_check_forgives_rounding_but_stores_a_symmetric_matrix():
    matrix = Graph.from_edges(
        [0, 1], [1, 0], weights=[1 / 3, float(np.float32(1 / 3)) * (1 + 2e-7)], direction="check"
    ).adjacency
    assert matrix[0, 1] == matrix[1, 0]


def test_check_refuses_a_light_one_way_edge_beside_a_heavy_edge():
    with pytest.raises(GraphError, match="1 -> 2 and 2 -> 1 differ"):
        Graph.from_edges([0, 1, 1], [1, 0, 2], weights=[1e9, 1e9, 1], direction="check")


def test_sparse_features_stay_sparse_and_equal_the_dense_ones():
    dense = np.array([[0, 1.5], [0, 0], [2, 0]])
    graph = Graph.from_edges([0], [1], features=sp.coo_array(dense))
    assert sp.issparse(graph.features)
    assert graph.features.dtype == np.float32
    np.testing.assert_array_equal(graph.features.toarray(), dense)
    with_zeros = sp.csr_array(([1.5, 0, 2], [1, 0, 0], [0, 2, 2, 3]), shape=(3, 2))  # an explicit zero
    assert graph.with_features(with_zeros).content_hash == graph.content_hash


def test_number_of_nodes_comes_from_whatever_knows_it():
    assert Graph.from_edges([0], [1]).num_nodes == 2
    assert Graph.from_edges([0], [1], features=np.zeros((5, 1))).num_nodes == 5
    assert Graph.from_edges([0], [1], node_ids=["a", "b", "c"]).num_nodes == 3
    assert Graph.from_edges([], [], num_nodes=np.int32(4)).num_nodes == 4


def test_a_graph_without_edges_propagates_nothing():
    graph = Graph.from_edges([], [], num_nodes=3)
    np.testing.assert_array_equal(graph.normalized_adjacency.toarray(), np.eye(3))
    assert graph.degrees.tolist() == [0, 0, 0]
    assert not graph.is_weighted


@pytest.mark.parametrize(
    "node_ids",
    [
        ["b", "a"],
        [2**62, -1],
        ["a\0", "a"],
        [("x", 1), ("y", 2)],
        ["<script>", "../../etc"],
        [1, "one"],
        np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
        np.array([2**64 - 1, 0], dtype=np.uint64),
    ],
)
def test_node_ids_are_kept_as_they_are(node_ids):
    kept = Graph.from_edges([0], [1], node_ids=node_ids).node_ids
    expected = node_ids.tolist() if isinstance(node_ids, np.ndarray) else node_ids
    assert kept.tolist() == expected


def test_one_long_name_does_not_make_every_name_long():
    names = ["x" * 100_000, *map(str, range(99))]
    assert Graph.from_edges([], [], node_ids=names).node_ids.nbytes < 10_000


def writable_graph_parts(graph: Graph) -> list[np.ndarray]:
    arrays = [graph.degrees, graph.node_ids]
    for matrix in (graph.adjacency, graph.normalized_adjacency, graph.features):
        arrays += [matrix] if isinstance(matrix, np.ndarray) else [matrix.data, matrix.indices, matrix.indptr]
    return [array for array in arrays if array.flags.writeable]


def unpickled(graph: Graph) -> Graph:
    return pickle.loads(pickle.dumps(graph))


@pytest.mark.parametrize("features", [np.eye(3), sp.eye_array(3)])
@pytest.mark.parametrize("travel", [copy.copy, copy.deepcopy, unpickled, lambda graph: graph])
def test_a_graph_cannot_be_changed(features, travel):
    graph = travel(Graph.from_edges([0, 1], [1, 2], features=features, node_ids=[7, 8, 9]))
    assert writable_graph_parts(graph) == []
    with pytest.raises(ValueError, match="read-only"):
        graph.adjacency[0, 1] = 5
    with pytest.raises(ValueError, match="read-only"):
        graph.node_ids[0] = 0
    with pytest.raises(FrozenInstanceError):
        graph.directed = True


@pytest.mark.parametrize("travel", [copy.copy, copy.deepcopy, unpickled])
def test_copies_know_whether_features_are_of_this_graph_alone(travel):
    graph = Graph.from_edges([0, 1], [1, 2], features=np.eye(3))
    assert travel(replace(graph, incomparable=True)).incomparable
    assert not travel(graph).incomparable
    assert not replace(graph, incomparable=True).with_features(np.ones((3, 1))).incomparable


def test_a_graph_owns_its_arrays():
    source, features, ids = np.array([0, 1]), np.eye(3, dtype=np.float32), np.array([7, 8, 9])
    graph = Graph.from_edges(source, [1, 2], features=features, node_ids=ids)
    source[:], features[:], ids[:] = 2, 5, 0
    assert graph.adjacency.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    np.testing.assert_array_equal(graph.features, np.eye(3))
    assert graph.node_ids.tolist() == [7, 8, 9]
    graph.adjacency.copy().setdiag(1)
    assert graph.num_edges == 4


def test_derived_matrices_are_computed_once():
    graph = Graph.from_edges([0], [1])
    assert graph.normalized_adjacency is graph.normalized_adjacency
    assert graph.degrees is graph.degrees


def test_heavy_weights_do_not_overflow():
    graph = Graph.from_edges([0, 1], [1, 2], weights=[5e37, 5e37])
    assert np.isfinite(graph.degrees).all()
    assert np.isfinite(graph.normalized_adjacency.data).all()
    with pytest.raises(GraphError, match="add up"):
        Graph.from_edges([0, 0], [1, 1], weights=[3e38, 3e38])


def test_weights_below_float32_are_no_edges():
    assert Graph.from_edges([0, 1], [1, 2], weights=[1e-60, 1]).num_edges == 2
