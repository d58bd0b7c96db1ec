"""Losses of the baselines: equal to their naive twins, finite where it is easy not to be, downhill."""

import pytest
import torch

import reference.objectives as reference
from nodejepa.objectives.bootstrap import bootstrap_loss
from nodejepa.objectives.cca import cca_terms, standardise
from nodejepa.objectives.infomax import infomax_loss
from nodejepa.objectives.scaled_cosine import linear_scaled_cosine_error, scaled_cosine_error
from reference.gradients import assert_a_step_lowers, assert_same_gradients


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


@pytest.mark.parametrize("name", ["infomax", "bootstrap", "scaled cosine", "cca"])
def test_one_gradient_step_lowers_the_loss(views, name):
    z, other, y1, y2 = views
    z = (z + 2 * z[:, :1]).requires_grad_()
    weight = torch.eye(6, dtype=torch.float64)
    loss = {
        "infomax": lambda: infomax_loss(z, other, weight),
        "bootstrap": lambda: bootstrap_loss((z, other), (y1, y2)),
        "scaled cosine": lambda: scaled_cosine_error(y1, z),
        "cca": lambda: sum(cca_terms(z, other)),
    }[name]
    assert_a_step_lowers(loss, [z], 0.1)
