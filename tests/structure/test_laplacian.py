import networkx as nx
import numpy as np
import pytest

import nodejepa.structure.laplacian as eigensolver
from nodejepa.errors import ConfigError
from nodejepa.graph import Graph
from nodejepa.machine import Room, TooLarge
from nodejepa.structure import adjacency_coordinates, node_adjacency, spectral_coordinates
from reference.matrices import normalised_without_loops


def of_networkx(twin):
    return Graph.from_scipy(nx.to_scipy_sparse_array(twin, weight=None))


def permuted(graph, order):
    return Graph.from_scipy(graph.adjacency[order][:, order])


@pytest.fixture
def force_iterative(monkeypatch):
    monkeypatch.setattr(eigensolver, "DENSE_UP_TO", 0)


@pytest.fixture(params=[0, 1000], ids=["iterative", "dense"])
def either_solver(request, monkeypatch):
    monkeypatch.setattr(eigensolver, "DENSE_UP_TO", request.param)


def irregular_graph():
    rng = np.random.default_rng(1)
    twin = nx.barabasi_albert_graph(400, 3, seed=2)
    source, target = np.array(twin.edges).T
    return Graph.from_edges(source, target, weights=rng.uniform(0.5, 2, source.size))


@pytest.mark.usefixtures("either_solver")
def test_equals_dense_numpy():
    graph, dim = irregular_graph(), 6
    values, vectors = np.linalg.eigh(normalised_without_loops(graph.adjacency))
    values, vectors = values[::-1][1 : dim + 1], vectors[:, ::-1][:, 1 : dim + 1]
    coordinates = spectral_coordinates(graph, dim)
    np.testing.assert_allclose(np.sqrt(np.mean(coordinates**2, axis=0)), 1)
    for k in range(dim):
        same = vectors[:, k] * np.sqrt(graph.num_nodes)
        same *= np.sign(np.sum(same**3))
        np.testing.assert_allclose(coordinates[:, k], same, atol=1e-4)
    assert np.all(np.diff(values) < -1e-5), "this comparison needs eigenvalues that differ"


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
def test_iterative_finds_every_copy_of_repeated_eigenvalues(twin):
    graph = of_networkx(twin)
    matrix, dim = normalised_without_loops(graph.adjacency), 7
    unit = spectral_coordinates(graph, dim) / np.sqrt(graph.num_nodes)
    np.testing.assert_allclose(unit.T @ unit, np.eye(dim), atol=1e-6)
    expected = np.linalg.eigvalsh(matrix)[::-1][1 : dim + 1]
    np.testing.assert_allclose(np.diag(unit.T @ matrix @ unit), expected, atol=1e-6)
    np.testing.assert_allclose(matrix @ unit, unit * expected, atol=1e-4)


@pytest.mark.usefixtures("either_solver")
def test_permuting_nodes_permutes_rows():
    graph = irregular_graph()
    order = np.random.default_rng(5).permutation(graph.num_nodes)
    there = spectral_coordinates(permuted(graph, order), 5)
    np.testing.assert_allclose(there, spectral_coordinates(graph, 5)[order], atol=1e-4)


def hubs_with_twin_cliques():
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


@pytest.mark.usefixtures("either_solver")
def test_basis_of_a_repeated_eigenvalue_is_canonical():
    graph, dim = hubs_with_twin_cliques(), 6
    values = np.linalg.eigvalsh(normalised_without_loops(graph.adjacency))[::-1][1 : dim + 1]
    assert np.count_nonzero(np.abs(np.diff(values)) < 1e-9) == 2
    here = spectral_coordinates(graph, dim)
    order = np.random.default_rng(8).permutation(graph.num_nodes)
    there = spectral_coordinates(permuted(graph, order), dim)
    # exchanging equal cliques flips a vector's sign, so only that may follow node order
    np.testing.assert_allclose(np.abs(there), np.abs(here[order]), atol=1e-4)


def test_only_the_largest_component_has_coordinates():
    alone = spectral_coordinates(of_networkx(nx.path_graph(9)), 3)
    graph = Graph.from_edges([*range(8), 9, 11], [*range(1, 9), 10, 12], num_nodes=15)
    both = spectral_coordinates(graph, 3)
    np.testing.assert_allclose(both[:9], alone)
    assert not both[9:].any()


def test_a_component_with_fewer_nodes_than_columns_leaves_zeros():
    coordinates = spectral_coordinates(Graph.from_edges([0, 1], [1, 2], num_nodes=5), 6)
    assert coordinates.shape == (5, 6)
    assert coordinates[:3, :2].any(axis=0).all()
    assert not coordinates[:, 2:].any()
    assert not spectral_coordinates(Graph.from_edges([], [], num_nodes=3), 2).any()
    assert spectral_coordinates(Graph.from_edges([0], [1]), 0).shape == (2, 0)


def test_directions_do_not_matter():
    source, target = [0, 1, 2, 3, 0], [1, 2, 3, 4, 2]
    directed = Graph.from_edges(source, target, direction="keep")
    symmetric = Graph.from_edges(source, target)
    np.testing.assert_array_equal(spectral_coordinates(directed, 3), spectral_coordinates(symmetric, 3))


@pytest.mark.usefixtures("force_iterative")
def test_same_bits_on_every_call():
    graph = irregular_graph()
    np.testing.assert_array_equal(spectral_coordinates(graph, 4), spectral_coordinates(graph, 4))


@pytest.mark.usefixtures("force_iterative")
@pytest.mark.parametrize("kind", ["spectral", "adjacency"])
def test_a_graph_that_does_not_converge_gets_smooth_vectors_and_a_warning(monkeypatch, kind):
    monkeypatch.setattr(eigensolver, "_RESTARTS", (1, 1))
    coordinates_of = {"spectral": spectral_coordinates, "adjacency": adjacency_coordinates}[kind]
    with pytest.warns(UserWarning, match=f"{kind} coordinates of this graph .* very slowly.*'{kind}'"):
        coordinates = coordinates_of(of_networkx(nx.path_graph(2000)), 4)
    if kind == "spectral":
        np.testing.assert_allclose(np.mean(coordinates**2, axis=0), 1)
    roughness = np.mean(np.diff(coordinates, axis=0) ** 2, axis=0)
    assert (roughness < 0.05 * np.mean(coordinates**2, axis=0)).all(), "2 for noise"


def test_refuses_a_negative_number_of_columns():
    with pytest.raises(ConfigError, match="dim is -1"):
        spectral_coordinates(Graph.from_edges([0], [1]), -1)


def adjacency_twin(graph: Graph, dim: int) -> np.ndarray:
    """The leading eigenvectors of the regularised adjacency, dense: a signed logarithm, times lambda^2."""
    dense = graph.adjacency.toarray().astype(np.float64)
    scale = 1 / np.sqrt(dense.sum(axis=1) + dense.sum(axis=1).mean())
    matrix = scale[:, None] * dense * scale
    values, vectors = np.linalg.eigh(matrix)
    unit = vectors[:, ::-1][:, :dim] * np.sqrt(graph.num_nodes)
    unit = unit * np.sign(np.sum(unit**3, axis=0))
    return np.sign(unit) * np.log(1 + np.abs(unit)) * values[::-1][:dim].clip(0) ** 2


@pytest.mark.usefixtures("either_solver")
def test_adjacency_equals_its_dense_twin():
    graph = irregular_graph()
    np.testing.assert_allclose(adjacency_coordinates(graph, 30), adjacency_twin(graph, 30), atol=1e-6)
    order = np.random.default_rng(5).permutation(graph.num_nodes)
    there = adjacency_coordinates(permuted(graph, order), 30)
    np.testing.assert_allclose(there, adjacency_coordinates(graph, 30)[order], atol=1e-6)
    np.testing.assert_array_equal(there, adjacency_coordinates(permuted(graph, order), 30))


def test_small_pieces_do_not_fill_the_leading_columns_of_the_adjacency():
    pieces = nx.disjoint_union_all([nx.barabasi_albert_graph(300, 4, seed=1), *[nx.path_graph(2)] * 50])
    coordinates = adjacency_coordinates(of_networkx(pieces), 10)
    assert coordinates[:300].any(axis=0).all()
    assert np.abs(coordinates[300:]).max() < 1e-9


@pytest.mark.usefixtures("force_iterative")
@pytest.mark.parametrize(
    "pieces", [[nx.star_graph(400)], [nx.complete_graph(3)] * 150, [nx.path_graph(2)] * 200]
)
def test_adjacency_is_the_same_on_every_call_where_krylov_spaces_end_early(pieces):
    whole = nx.disjoint_union_all([*pieces, nx.empty_graph(30)])
    coordinates = adjacency_coordinates(of_networkx(whole), 6)
    assert np.isfinite(coordinates).all()
    assert coordinates[:, 0].any()
    assert np.abs(coordinates[-30:]).max() < 1e-9
    np.testing.assert_array_equal(coordinates, adjacency_coordinates(of_networkx(whole), 6))


def test_adjacency_without_room_is_refused_before_the_work():
    graph = irregular_graph()
    room = Room(held=1_000_000_000, limit=1_000_500_000, given=True)
    with pytest.raises(TooLarge, match=r'coordinates of the adjacency of .* were allowed.*structural="all"'):
        node_adjacency(graph, 128, room, cache=False)


def test_adjacency_of_few_nodes_or_no_edges_leaves_zeros():
    coordinates = adjacency_coordinates(Graph.from_edges([0, 1], [1, 2], num_nodes=5), 8)
    assert coordinates.shape == (5, 8)
    assert coordinates[:3, 0].all()
    assert not coordinates[:, 1:].any()
    assert not adjacency_coordinates(Graph.from_edges([], [], num_nodes=3), 2).any()
