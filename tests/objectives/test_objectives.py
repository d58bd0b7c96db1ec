"""Each objective equals its naive twin and one gradient step moves it the right way."""

import math

import pytest
import torch

import reference.objectives as reference
from nodejepa.nn.sparse import SparseOperator
from nodejepa.objectives.baselines import (
    bootstrap_loss,
    cca_terms,
    infomax_loss,
    linear_scaled_cosine_error,
    scaled_cosine_error,
    standardise,
)
from nodejepa.objectives.latent import (
    cosine_distance,
    covariance_loss,
    covariance_matrix,
    hyperbola_distance,
    l2_distance,
    laplacian_energy,
    variance_loss,
)
from nodejepa.objectives.sigreg import sigreg
from reference.encoders import assert_a_step_lowers, assert_same_gradients
from reference.matrices import propagation_tensor


@pytest.fixture
def pair():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(30, 6, generator=generator), torch.randn(30, 6, generator=generator)


def test_prediction_losses_by_hand(pair):
    guess, wanted = pair
    assert float(cosine_distance(guess, wanted)) == pytest.approx(
        float(reference.cosine_distance(guess, wanted)), abs=1e-6
    )
    assert float(l2_distance(guess, wanted)) == pytest.approx(float((guess - wanted).pow(2).mean()), abs=1e-6)
    assert float(cosine_distance(wanted * 3, wanted)) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("over", ["pairs", "dimensions"])
def test_vicreg_terms_by_hand(pair, over):
    z = pair[0] * torch.tensor([0.1, 0.5, 1, 2, 0, 1.0])
    variance, covariance = reference.vicreg(z, over=over)
    matrix = covariance_matrix(z)
    assert float(variance_loss(matrix)) == pytest.approx(float(variance), rel=1e-5)
    assert float(covariance_loss(matrix, over)) == pytest.approx(float(covariance), rel=1e-4)


def test_covariance_gradient_equals_autograd(pair):
    z, weights = pair[0].double(), pair[1].double()
    one, two = z.clone().requires_grad_(), z.clone().requires_grad_()
    factor = weights.T @ weights + torch.arange(36).reshape(6, 6)  # not symmetric
    (covariance_matrix(one) * factor).sum().backward()
    (torch.cov(two.T) * factor).sum().backward()
    torch.testing.assert_close(one.grad, two.grad)


@pytest.mark.parametrize(
    ("nodes", "max_nodes", "times_n"), [(50, None, False), (400, None, True), (400, 300, False)]
)
def test_sigreg_and_its_gradient_equal_the_naive_formula(nodes, max_nodes, times_n):
    z = torch.randn(nodes, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 1.7 + 0.3
    mine, theirs = z.clone().requires_grad_(), z.clone().requires_grad_()
    one = sigreg(mine, torch.Generator().manual_seed(2), slices=256, max_nodes=max_nodes, times_n=times_n)
    two = reference.sigreg(theirs, torch.Generator().manual_seed(2), 256, max_nodes, times_n)
    torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-12)
    one.backward()
    two.backward()
    torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-8, atol=1e-12)


def test_sigreg_prefers_a_standard_normal():
    generator = torch.Generator().manual_seed(3)
    normal = torch.randn(4000, 8, generator=generator)
    scores = [
        float(sigreg(z, torch.Generator().manual_seed(4)))
        for z in (normal, normal * 0.2, normal * 3, normal + 1, normal * 0)
    ]
    assert scores[0] == min(scores)
    assert scores[4] == pytest.approx(0.4, abs=0.02)  # the integral of phi (1 - phi)^2


def test_hyperbola_by_hand():
    guess, wanted = torch.tensor([[1.0, 3.0]]), torch.tensor([[0.0, 0.0]])
    points = [(math.cosh(2), math.sinh(2)), (1, 0)]
    gaps = [abs(a - b) for a, b in zip(*points, strict=True)]
    assert float(hyperbola_distance(guess, wanted)) == pytest.approx(sum(g - 0.5 for g in gaps) / 2, rel=1e-6)
    assert torch.isfinite(hyperbola_distance(guess * 1e6, wanted))


def test_laplacian_energy_is_the_sum_over_edges(toy_graph):
    z = torch.randn(toy_graph.num_nodes, 4)
    s = propagation_tensor(toy_graph.adjacency)
    wanted = torch.trace(z.T @ (torch.eye(len(s)) - s) @ z) / z.numel()
    torch.testing.assert_close(laplacian_energy(z, SparseOperator(toy_graph.normalized_adjacency)), wanted)


LOSSES = {
    "cosine": lambda z, other, s: cosine_distance(z, other),  # noqa: ARG005
    "l2": lambda z, other, s: l2_distance(z, other),  # noqa: ARG005
    "variance": lambda z, *_: variance_loss(covariance_matrix(z)),
    "covariance": lambda z, *_: covariance_loss(covariance_matrix(z)),
    "sigreg": lambda z, *_: sigreg(z, torch.Generator().manual_seed(0)),
    "hyperbola": lambda z, other, s: hyperbola_distance(z, other),  # noqa: ARG005
    "laplacian": lambda z, other, s: laplacian_energy(z, s),  # noqa: ARG005
    "infomax": lambda z, other, s: infomax_loss(z, other, torch.eye(6)),  # noqa: ARG005
    "bootstrap": lambda z, other, s: bootstrap_loss((z, other), (other, other + 1)),  # noqa: ARG005
    "scaled cosine": lambda z, other, s: scaled_cosine_error(other, z),  # noqa: ARG005
    "cca": lambda z, other, s: sum(cca_terms(z, other)),  # noqa: ARG005
}


@pytest.mark.parametrize("name", LOSSES)
def test_one_gradient_step_lowers_the_loss(name, toy_graph):
    torch.manual_seed(0)
    size = toy_graph.num_nodes
    low_rank = torch.randn(size, 3) @ torch.randn(3, 6) * 0.3  # and narrow, off centre
    z, other = (low_rank + 0.5).requires_grad_(), torch.randn(size, 6)
    operator = SparseOperator(toy_graph.normalized_adjacency, symmetric=True)
    assert_a_step_lowers(lambda: LOSSES[name](z, other, operator), [z], 0.1)


@pytest.fixture
def views():
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(30, 6, generator=generator, dtype=torch.float64) for _ in range(4)]


def test_infomax_equals_deep_graph_infomax_of_pyg(views):
    pyg = pytest.importorskip("torch_geometric.nn")
    real, corrupted = (z.float().requires_grad_() for z in views[:2])
    theirs = pyg.DeepGraphInfomax(
        6, encoder=torch.nn.Identity(), summary=lambda z, *_: z.mean(dim=0).sigmoid(), corruption=None
    )
    summary = theirs.summary(real)
    mine = infomax_loss(real, corrupted, theirs.weight)
    wanted = theirs.loss(real, corrupted, summary) / 2  # PyG adds the two halves, the paper takes the mean
    torch.testing.assert_close(mine, wanted)
    leaves = [real, corrupted, theirs.weight]
    assert_same_gradients(mine, wanted, leaves, atol=1e-6, rtol=1e-4)


def test_infomax_stays_finite_when_the_discriminator_is_sure(views):
    assert torch.isfinite(infomax_loss(views[0] * 1e4, views[1] * 1e4, torch.eye(6, dtype=torch.float64)))


def test_bootstrap_by_hand_and_no_gradient_into_the_targets(views):
    for z in views:
        z.requires_grad_()
    q1, q2, y1, y2 = views
    loss = bootstrap_loss((q1, q2), (y1, y2))
    torch.testing.assert_close(loss, reference.bootstrap((q1, q2), (y1, y2)))
    loss.backward()
    assert y1.grad is None
    assert y2.grad is None
    assert q1.grad.norm() > 0
    assert q2.grad.norm() > 0


@pytest.mark.parametrize("alpha", [1.0, 2.0, 3.0, 1.5])
def test_scaled_cosine_error_by_hand(views, alpha):
    x, guess = views[:2]
    torch.testing.assert_close(
        scaled_cosine_error(x, guess, alpha), reference.cosine_distance(guess, x, alpha)
    )
    exact = x.clone().requires_grad_()
    loss = scaled_cosine_error(x, exact, alpha)
    loss.backward()
    assert loss.item() == pytest.approx(0, abs=1e-12)
    assert torch.isfinite(exact.grad).all()


def test_scaled_cosine_error_of_linear_guesses_never_needs_them(views):
    x = torch.randn(30, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    x[3] = 0
    weight = torch.randn(6, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    codes = views[0]
    codes[5] = 0
    leaves = [codes.requires_grad_(), weight.requires_grad_()]
    mine = linear_scaled_cosine_error(x @ weight.T, x.square().sum(dim=1), codes, weight)
    naive = scaled_cosine_error(x, codes @ weight)
    torch.testing.assert_close(mine, naive)
    for a, b in zip(torch.autograd.grad(mine, leaves), torch.autograd.grad(naive, leaves), strict=True):
        assert torch.isfinite(a).all()
        torch.testing.assert_close(a, b)


def test_a_guess_without_direction_counts_as_cosine_0_and_has_no_gradient(views):
    x, guess = views[0], torch.zeros(30, 6, dtype=torch.float64, requires_grad=True)
    loss = scaled_cosine_error(x, guess)
    assert loss.item() == 1
    loss.backward()
    assert guess.grad.abs().max() == 0


def test_cca_terms_by_hand(views):
    one, two = views[0] * 3 + 1, views[0] + 0.3 * views[1]
    invariance, decorrelation = reference.cca(one, two)
    mine = cca_terms(one, two)
    assert mine[0].item() == pytest.approx(invariance.item())
    assert mine[1].item() == pytest.approx(decorrelation.item())


@pytest.mark.parametrize("value", [0.0, 5.1])
def test_a_dead_column_gives_no_nan(views, value):
    one, two = (z.float() for z in views[:2])
    one[:, 2] = value
    one.requires_grad_()
    invariance, decorrelation = cca_terms(one, two)
    (invariance + decorrelation).backward()
    assert torch.isfinite(invariance)
    assert torch.isfinite(decorrelation)
    assert torch.isfinite(one.grad).all()
    assert standardise(one)[:, 2].abs().max() == 0
    assert torch.isfinite(torch.stack(cca_terms(torch.ones(1, 3), torch.ones(1, 3)))).all()
