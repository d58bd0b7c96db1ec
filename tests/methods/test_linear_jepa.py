"""LinearJEPA equals its equations, has no seed, and treats odd graphs rightly or says what is wrong."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from nodejepa.errors import ConfigError, GraphError
from nodejepa.graph import Graph
from nodejepa.methods import closed_form
from nodejepa.methods.closed_form import Spectrum, second_moments
from nodejepa.methods.linear_jepa import Findings, LinearJEPA, hartley
from nodejepa.nn.inputs import WholeGraph
from reference.objectives import dense_hartley, dense_linear_jepa, dense_moments, generalised


def community_graph(columns=90, nodes=150, *, sparse=False, directed=False, seed=0):
    """Three communities, features that lean on them, five isolated nodes, weighted edges."""
    rng = np.random.default_rng(seed)
    community = rng.integers(0, 3, nodes)
    source, target = rng.integers(0, nodes - 5, (2, 8 * nodes))
    alike = (community[source] == community[target]) | (rng.random(8 * nodes) < 0.2)
    x = (rng.random((nodes, columns)) < 0.1 + 0.3 * (rng.random((3, columns)) < 0.3)[community]) * 1.0
    x = x * rng.integers(1, 4, x.shape)
    return Graph.from_edges(
        source[alike],
        target[alike],
        features=sp.csr_array(x) if sparse else x,
        num_nodes=nodes,
        weights=rng.random(alike.sum()) + 0.5,
        direction="keep" if directed else "symmetrize",
    )


def test_an_eigensolver_that_gives_up_is_replaced(monkeypatch):
    """It happened with 60 nodes and 1,027 columns of hashed text."""
    expected = LinearJEPA().fit(community_graph())

    def gives_up(_):
        raise torch.linalg.LinAlgError("failed to converge")

    monkeypatch.setattr(torch.linalg, "eigh", gives_up)
    found = LinearJEPA().fit(community_graph())
    np.testing.assert_allclose(found.spectrum(), expected.spectrum(), atol=1e-5)


def test_fewer_columns_than_asked_are_said_before_and_after_it_is_solved(capsys):
    """Few columns are known before; few directions of many columns only when it is solved."""
    few = community_graph(columns=20)
    z = LinearJEPA().fit_transform(few)
    said = capsys.readouterr().err
    assert "at most 80 columns, because there are 20 features" in said
    assert f"the embeddings have {z.shape[1]} columns, not 256" in said
    repeated = few.with_features(np.tile(few.features, (1, 15)))
    z = LinearJEPA().fit_transform(repeated)
    said = capsys.readouterr().err
    assert "at most" not in said
    assert f"the embeddings have {z.shape[1]} columns, not 256, because the features have" in said
    assert "columns" not in (LinearJEPA(dim=8).fit(few), capsys.readouterr().err)[1]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_it_is_the_solution_of_the_dense_equations(sparse, directed):
    graph = community_graph(sparse=sparse, directed=directed)
    model = LinearJEPA(shrinkage=0.03).fit(graph)
    wanted, rho, agreement = dense_linear_jepa(graph, shrinkage=0.03)
    np.testing.assert_allclose(model.findings_.rho, rho, atol=1e-6)
    assert model.findings_.agreement == pytest.approx(agreement, abs=1e-6)
    np.testing.assert_allclose(model.transform(graph), wanted, atol=1e-3)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_road_for_wide_features_gives_the_same(sparse, monkeypatch):
    graph = community_graph(sparse=sparse)
    c, d, *_ = dense_moments(graph)
    rho, _ = generalised(c, d, 0.03 * np.trace(c), 20)
    monkeypatch.setattr(closed_form, "WHOLE_UP_TO", 10)
    wide = Spectrum(second_moments(WholeGraph(graph), basis=90)).solve(0.03 * np.trace(c), 20)
    np.testing.assert_allclose(wide[1], rho, atol=1e-6)
    few = Spectrum(second_moments(WholeGraph(graph), basis=60))
    assert len(few.moments.second) == 60
    top = np.sort(np.linalg.eigvalsh(c))[::-1][:60]
    np.testing.assert_allclose(few.moments.second.diagonal(), top, rtol=1e-3)


def test_solutions_are_isotropic_and_solve_the_equation():
    graph = community_graph()
    c, d, *_ = dense_moments(graph)
    spectrum = Spectrum(second_moments(WholeGraph(graph), basis=768))
    v, rho = (part.numpy() for part in spectrum.solve(0.05 * np.trace(c), 12))
    a = c + 0.05 * np.trace(c) * np.eye(len(c))
    np.testing.assert_allclose(v.T @ a @ v, np.eye(12), atol=1e-4)
    np.testing.assert_allclose(d @ v, a @ v * rho, atol=1e-5)


def test_shrinkage_lets_in_what_is_asked_for():
    spectrum = Spectrum(second_moments(WholeGraph(community_graph()), basis=768))
    for wanted in (1.0, 2.0, 3.0):
        eps = spectrum.trace * spectrum.shrinkage_for(wanted, 64)
        found = float(spectrum.rho(eps, 64).abs().sum())
        assert wanted / 1.3 < found < wanted * 1.3
    assert spectrum.shrinkage_for(1e-9, 64) == 1.0
    assert spectrum.shrinkage_for(1e9, 64) == 2.0**-10


@pytest.mark.parametrize("bare", [False, True])
def test_no_seed_no_order_of_nodes_also_without_features(bare):
    graph = community_graph()
    graph = graph.with_features(np.zeros((graph.num_nodes, 0))) if bare else graph
    one = LinearJEPA(seed=1).fit_transform(graph)
    np.testing.assert_array_equal(one, LinearJEPA(seed=2).fit_transform(graph))
    order = np.random.default_rng(3).permutation(graph.num_nodes)
    moved = LinearJEPA().fit_transform(Graph(graph.adjacency[order][:, order], graph.features[order]))
    assert np.abs(moved - one[order]).max() < 2e-3 * max(1, np.abs(one).max())


def test_few_columns_keep_the_hops_apart():
    graph = community_graph(columns=6)
    model = LinearJEPA().fit(graph)
    z = model.transform(graph)
    assert z.shape == (150, 24)
    assert np.mean(z[:145, :6] ** 2) == pytest.approx(1, rel=1e-4)  # of those with neighbours
    for hop in range(3):
        here, there = z[:, 6 * hop : 6 * hop + 6], z[:, 6 * hop + 6 : 6 * hop + 12]
        np.testing.assert_allclose(there, graph.normalized_adjacency @ here, atol=1e-5)


def test_the_latents_stand_beside_the_walk_only_where_neighbours_disagree():
    graph = community_graph(columns=300, nodes=400)
    alike = LinearJEPA(dim=128, agreement=0.5).fit(graph)
    differ = LinearJEPA(dim=128, agreement=0.49).fit(graph)
    assert (len(alike.findings_.rho), len(differ.findings_.rho)) == (128, 64)
    assert alike.transform(graph).shape == differ.transform(graph).shape


@pytest.mark.parametrize("size", [1, 2, 7, 128, 256])
def test_the_rotation_is_orthogonal_and_the_formula(size):
    turn = hartley(size).numpy()
    np.testing.assert_allclose(turn, dense_hartley(size), atol=1e-12)
    np.testing.assert_allclose(turn @ turn.T, np.eye(size), atol=1e-12)


def test_standardising_columns_scales_no_noise_up():
    """Columns are of about equal scale, and rotated back they are the latents that were found."""
    graph = community_graph(columns=300, nodes=400)
    plain = LinearJEPA(agreement=1.0, rotated=False, equal_rows=False).fit(graph)
    rotated = LinearJEPA(agreement=1.0, equal_rows=False).fit(graph)
    z, latents = rotated.transform(graph), plain.transform(graph)
    np.testing.assert_allclose(z @ hartley(z.shape[1]).numpy().T, latents, atol=1e-3)
    spread = [part.std(axis=0).max() / part.std(axis=0).min() for part in (z, latents)]
    assert spread[0] < 5 < 10 < spread[1]


def test_rows_are_as_long_as_each_other_but_for_those_of_nothing():
    graph = community_graph()
    x = graph.features.copy()
    x[-1] = 0  # isolated, and without features
    z = LinearJEPA(mean_kept=1.0).fit(graph.with_features(x)).transform(graph.with_features(x))
    assert not z[-1].any()
    np.testing.assert_allclose(np.linalg.norm(z[:-1], axis=1), z.shape[1] ** 0.5, rtol=1e-5)


@pytest.mark.parametrize(
    "columns",
    [
        np.ones((150, 3)),
        np.repeat(np.eye(150)[:, :40], 3, axis=1),
        np.eye(150),
        np.random.default_rng(0).random((150, 400)),
    ],
    ids=["constant", "duplicates", "more-than-informative", "more-than-nodes"],
)
def test_odd_features(columns):
    z = LinearJEPA().fit_transform(community_graph().with_features(columns))
    assert z.dtype == np.float32
    assert np.isfinite(z).all()
    assert np.ptp(z) > 0


def test_what_cannot_be_predicted_is_said():
    alone = Graph.from_edges([], [], features=np.ones((4, 2)), num_nodes=4)
    with pytest.raises(GraphError, match="no edges"):
        LinearJEPA().fit(alone)
    with pytest.raises(GraphError, match="all features are 0"):
        LinearJEPA().fit(community_graph().with_features(np.zeros((150, 2))))
    with pytest.raises(ConfigError, match="preset"):
        LinearJEPA(preset="paper")


@pytest.mark.parametrize(
    ("sign", "words"), [(1, "neighbours are alike"), (-1, "hardly more alike than random pairs")]
)
def test_it_says_whether_neighbours_are_alike(sign, words):
    """On a bipartite graph whose two sides carry opposite features every neighbour differs."""
    rng = np.random.default_rng(0)
    side = np.repeat([0, 1], 40)
    left, right = rng.integers(0, 40, 300), rng.integers(0, 40, 300)
    edges = (left, right + 40) if sign < 0 else (np.r_[left, left + 40], np.r_[right, right + 40])
    x = np.where(side, 1.0, -1.0)[:, None] + 0.1 * rng.normal(size=(80, 3))
    found = LinearJEPA().fit(Graph.from_edges(*edges, features=x, num_nodes=80)).findings_
    assert np.sign(found.rho[0]) == sign
    assert words in found.describe()


def test_what_is_shown_as_a_correlation_is_one():
    found = Findings((2.03, -1.5, 0.25), 0.1, 1.0, 1.0, 3, 1)
    assert found.correlations == (1.0, -1.0, 0.25)
    assert "the best: 1.00" in found.describe()
