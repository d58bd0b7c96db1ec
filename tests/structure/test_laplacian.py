import networkx as nx
import numpy as np
import pytest

import nodejepa.structure.eigensolver as eigensolver
from nodejepa.errors import ConfigError
from nodejepa.graph import Graph
from nodejepa.structure import spectral_coordinates
from reference.matrices import normalised_without_loops


def of_networkx(twin: nx.Graph) -> Graph:
    return Graph.from_scipy(nx.to_scipy_sparse_array(twin, weight=None))


def permuted(graph: Graph, order: np.ndarray) -> Graph:
    return Graph.from_scipy(graph.adjacency[order][:, order])


@pytest.fixture
def force_iterative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eigensolver, "DENSE_UP_TO", 0)


def irregular_graph() -> Graph:
    rng = np.random.default_rng(1)
    twin = nx.barabasi_albert_graph(400, 3, seed=2)
    source, target = np.array(twin.edges).T
    return Graph.from_edges(source, target, weights=rng.uniform(0.5, 2, source.size))


def check_against_dense(graph: Graph, dim: int) -> None:
    values, vectors = np.linalg.eigh(normalised_without_loops(graph.adjacency))
    values, vectors = values[::-1][1 : dim + 1], vectors[:, ::-1][:, 1 : dim + 1]
    coordinates = spectral_coordinates(graph, dim)
    np.testing.assert_allclose(np.sqrt(np.mean(coordinates**2, axis=0)), 1)
    for k in range(dim):
        same = vectors[:, k] * np.sqrt(graph.num_nodes)
        same *= np.sign(np.sum(same**3))
        np.testing.assert_allclose(coordinates[:, k], same, atol=1e-4)
    assert np.all(np.diff(values) < -1e-5), "this comparison needs eigenvalues that differ"


def test_equals_dense_numpy() -> None:
    check_against_dense(irregular_graph(), 6)


@pytest.mark.usefixtures("force_iterative")
def test_iterative_equals_dense_numpy() -> None:
    check_against_dense(irregular_graph(), 6)


@pytest.mark.usefixtures("force_iterative")
@pytest.mark.parametrize(
    "twin",
    [
        nx.grid_2d_graph(14, 14),
        nx.grid_2d_graph(14, 14, periodic=True),
        nx.cycle_graph(200),
        nx.star_graph(200),
        nx.complete_graph(150),
        nx.complete_bipartite_graph(80, 80),
    ],
    ids=["grid", "torus", "ring", "star", "complete", "bipartite"],
)
def test_iterative_finds_every_copy_of_repeated_eigenvalues(twin: nx.Graph) -> None:
    graph = of_networkx(twin)
    matrix, dim = normalised_without_loops(graph.adjacency), 7
    unit = spectral_coordinates(graph, dim) / np.sqrt(graph.num_nodes)
    np.testing.assert_allclose(unit.T @ unit, np.eye(dim), atol=1e-6)
    expected = np.linalg.eigvalsh(matrix)[::-1][1 : dim + 1]
    np.testing.assert_allclose(np.diag(unit.T @ matrix @ unit), expected, atol=1e-6)
    np.testing.assert_allclose(matrix @ unit, unit * expected, atol=1e-4)


@pytest.mark.parametrize("dense_up_to", [0, 1000])
def test_permuting_nodes_permutes_rows(monkeypatch: pytest.MonkeyPatch, dense_up_to: int) -> None:
    monkeypatch.setattr(eigensolver, "DENSE_UP_TO", dense_up_to)
    graph = irregular_graph()
    order = np.random.default_rng(5).permutation(graph.num_nodes)
    there = spectral_coordinates(permuted(graph, order), 5)
    np.testing.assert_allclose(there, spectral_coordinates(graph, 5)[order], atol=1e-4)


def hubs_with_twin_cliques() -> Graph:
    """Three nodes of different degree, each carrying two equal cliques: one eigenvalue, three vectors."""
    twin = nx.random_regular_graph(12, 40, seed=0)
    twin.add_edges_from((1, other) for other in range(20, 26))
    twin.add_edges_from((2, other) for other in range(26, 38))
    for hub in (0, 1, 2):
        for _ in range(2):
            first = twin.number_of_nodes()
            twin.add_edges_from((i, j) for i in range(first, first + 6) for j in range(first, i))
            twin.add_edge(hub, first)
    return of_networkx(nx.convert_node_labels_to_integers(twin, ordering="sorted"))


@pytest.mark.parametrize("dense_up_to", [0, 1000])
def test_basis_of_a_repeated_eigenvalue_is_canonical(
    monkeypatch: pytest.MonkeyPatch, dense_up_to: int
) -> None:
    graph, dim = hubs_with_twin_cliques(), 6
    values = np.linalg.eigvalsh(normalised_without_loops(graph.adjacency))[::-1][1 : dim + 1]
    assert np.count_nonzero(np.abs(np.diff(values)) < 1e-9) == 2
    monkeypatch.setattr(eigensolver, "DENSE_UP_TO", dense_up_to)
    here = spectral_coordinates(graph, dim)
    order = np.random.default_rng(8).permutation(graph.num_nodes)
    there = spectral_coordinates(permuted(graph, order), dim)
    # exchanging equal cliques flips a vector's sign, so only that may follow node order
    np.testing.assert_allclose(np.abs(there), np.abs(here[order]), atol=1e-4)


def test_only_the_largest_component_has_coordinates() -> None:
    alone = spectral_coordinates(of_networkx(nx.path_graph(9)), 3)
    graph = Graph.from_edges([*range(8), 9, 11], [*range(1, 9), 10, 12], num_nodes=15)
    both = spectral_coordinates(graph, 3)
    np.testing.assert_allclose(both[:9], alone)
    assert not both[9:].any()


def test_a_component_with_fewer_nodes_than_columns_leaves_zeros() -> None:
    coordinates = spectral_coordinates(Graph.from_edges([0, 1], [1, 2], num_nodes=5), 6)
    assert coordinates.shape == (5, 6)
    assert coordinates[:3, :2].any(axis=0).all()
    assert not coordinates[:, 2:].any()
    assert not spectral_coordinates(Graph.from_edges([], [], num_nodes=3), 2).any()
    assert spectral_coordinates(Graph.from_edges([0], [1]), 0).shape == (2, 0)


def test_directions_do_not_matter() -> None:
    source, target = [0, 1, 2, 3, 0], [1, 2, 3, 4, 2]
    directed = Graph.from_edges(source, target, direction="keep")
    symmetric = Graph.from_edges(source, target)
    np.testing.assert_array_equal(spectral_coordinates(directed, 3), spectral_coordinates(symmetric, 3))


@pytest.mark.usefixtures("force_iterative")
def test_same_bits_on_every_call() -> None:
    graph = irregular_graph()
    np.testing.assert_array_equal(spectral_coordinates(graph, 4), spectral_coordinates(graph, 4))


@pytest.mark.usefixtures("force_iterative")
def test_a_graph_that_does_not_converge_gets_smooth_vectors_and_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(eigensolver, "_RESTARTS", (1, 1))
    graph = of_networkx(nx.path_graph(3000))
    with pytest.warns(UserWarning, match="converge very slowly"):
        coordinates = spectral_coordinates(graph, 4)
    np.testing.assert_allclose(np.mean(coordinates**2, axis=0), 1)
    roughness = np.mean(np.diff(coordinates, axis=0) ** 2, axis=0)  # 2 for noise
    assert roughness.max() < 0.05


def test_refuses_a_negative_number_of_columns() -> None:
    with pytest.raises(ConfigError, match="dim is -1"):
        spectral_coordinates(Graph.from_edges([0], [1]), -1)
