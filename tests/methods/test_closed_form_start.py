"""NodeJEPA from the closed form on: without epochs LinearJEPA to the bit, with some trained on from there."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from nodejepa.data import per_class_split
from nodejepa.errors import CheckpointError, ConfigError
from nodejepa.evaluation import finetune
from nodejepa.graph import Graph
from nodejepa.masking.khop import khop_mask
from nodejepa.methods import LinearJEPA, NodeJEPA, linear_jepa, load_method, make_method
from nodejepa.nn.inputs import WholeGraph
from nodejepa.nn.sparse import to_dense
from nodejepa.objectives.latent import covariance_loss, variance_loss
from nodejepa.training.task import StepContext, seeded
from nodejepa.workflow.plan import Workload, budget
from reference.encoders import assert_a_step_lowers

SMALL = {"encoder.hidden": 16, "predictor.hidden": 16, "predictor.layers": 2, "predictor.spectral_dim": 2}
TRAINED = SMALL | {"epochs": 3, "lr": 0.01}


def started(**settings):
    """NodeJEPA that starts at the closed form, and stays there unless epochs are asked for."""
    return NodeJEPA(preset="linear-start", **({"epochs": 0} | settings))


@pytest.fixture(scope="module")
def wide():
    """More columns than are kept side by side, sparse: two communities with words of their own."""
    rng = np.random.default_rng(3)
    community = np.repeat([0, 1], 45)
    chance = np.where(community[:, None] == community[None, :], 0.2, 0.02)
    source, target = np.nonzero(np.triu(rng.random((90, 90)) < chance, k=1))
    often = 0.05 + 0.3 * (rng.random((2, 80)) < 0.3)
    x = sp.csr_array((rng.random((90, 80)) < often[community]) * 1.0)
    return Graph.from_edges(source, target, features=x, num_nodes=90)


@pytest.fixture(params=["few columns", "wide"])
def graph(request, toy_graph, wide):
    """Both ways to the closed form."""
    return toy_graph if request.param == "few columns" else wide


def test_without_epochs_it_is_linear_jepa_to_the_bit(graph):
    linear, method = LinearJEPA().fit(graph), started().fit(graph)
    np.testing.assert_array_equal(method.transform(graph), linear.transform(graph))
    assert method.describe() == linear.describe()
    assert method.spectrum() == linear.spectrum() != ()
    assert not any("loss" in record for record in method.history_)


def test_hidden_is_the_number_of_columns(graph):
    method = started(**SMALL)
    wanted = LinearJEPA(dim=16).fit_transform(graph)
    np.testing.assert_array_equal(method.fit_transform(graph), wanted)
    assert method.width(graph) == LinearJEPA(dim=16).width(graph) == 16


@pytest.mark.parametrize("changes", [SMALL, TRAINED, TRAINED | {"start": "random-hops"}])
def test_what_was_saved_is_what_is_loaded(graph, tmp_path, changes):
    method = started(**changes).fit(graph, out=tmp_path)
    again = load_method(tmp_path)
    np.testing.assert_array_equal(again.transform(graph), method.transform(graph))
    assert (again.describe(), again.spectrum()) == (method.describe(), method.spectrum())


@pytest.mark.slow
def test_training_goes_on_from_the_start_and_is_the_same_for_the_same_seed(graph):
    start = started(**SMALL).fit_transform(graph)
    trained = started(seed=1, **TRAINED).fit(graph)
    z = trained.transform(graph)
    moved = np.linalg.norm(z - start) / np.linalg.norm(start)
    assert 0 < moved < 0.2
    np.testing.assert_array_equal(started(seed=1, **TRAINED).fit_transform(graph), z)
    assert 0 < trained.history_[-1]["prediction_share"] < 1
    unpredicted = started(seed=1, **(TRAINED | {"loss.prediction_weight": 0})).fit_transform(graph)
    assert not np.array_equal(unpredicted, z)


def started_task(graph, **changes):
    method = started(device="cpu", **(TRAINED | changes))
    inputs = WholeGraph(graph, torch.device("cpu"))
    with seeded(0, "init"):
        return method.make_task(inputs), inputs


def test_a_step_predicts_and_guards_latents_before_propagation(graph):
    task, inputs = started_task(graph)
    context = StepContext(0, 0, 0, 0.0)
    terms = task.losses(inputs, context)
    targets = khop_mask(inputs, *task.config.masking.at(0), context.numpy("mask"))
    x = torch.from_numpy(to_dense(graph.features)).float()
    s, encoder = torch.from_numpy(inputs.propagation.matrix.toarray()), task.encoder
    weight = encoder.weight * encoder.unit
    z = x @ weight - encoder.shift
    mean, spread = z.mean(dim=0), z.std(dim=0, correction=0)
    guarded = ((z - mean) / spread)[~targets]
    covariance = torch.cov(guarded.T)
    torch.testing.assert_close(terms["variance"], variance_loss(covariance), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(
        terms["covariance"], covariance_loss(covariance, "dimensions"), rtol=1e-3, atol=1e-5
    )
    seen = torch.where(torch.from_numpy(targets)[:, None], torch.zeros_like(x), x) @ weight - encoder.shift
    hops = [seen]
    for _ in range(encoder.mix.shape[1] - 1):
        hops.append(s @ hops[-1])
    h = torch.cat([sum(m * hop for m, hop in zip(mix, hops, strict=True)) for mix in encoder.mix], dim=1)
    if encoder.equal_rows:
        h = h / h.norm(dim=1, keepdim=True) * h.shape[1] ** 0.5
    guess = task.predictor(h[~targets], inputs.propagation, targets, task.descriptors)
    wanted = (z - mean)[targets] / spread.square().mean().sqrt()
    torch.testing.assert_close(terms["prediction"], (guess - wanted).square().mean(), rtol=1e-4, atol=1e-5)


def test_one_step_lowers_the_loss(graph):
    task, inputs = started_task(graph)
    leaves = [p for p in task.parameters() if p.requires_grad]
    assert any(leaf is task.encoder.weight for leaf in leaves)
    assert_a_step_lowers(lambda: task.losses(inputs, StepContext(0, 0, 0, 0.0))["loss"], leaves, 1e-3)


def test_a_random_start_is_as_loud_as_the_closed_form(graph):
    start = started(**SMALL).fit(graph)
    drawn = started(start="random-hops", **SMALL).fit(graph)
    mine, theirs = drawn.transform(graph), start.transform(graph)
    torch.testing.assert_close(drawn.encoder_.mix, start.encoder_.mix)
    lengths = [m.encoder_.weight.norm(dim=0) for m in (drawn, start)]
    torch.testing.assert_close(*lengths, rtol=0.5, atol=0)
    assert mine.shape == theirs.shape
    assert not np.allclose(mine, theirs, atol=0.1 * np.abs(theirs).max())
    other = started(start="random-hops", seed=1, **SMALL).fit_transform(graph)
    assert not np.array_equal(other, mine)


@pytest.mark.parametrize(
    ("name", "value"),
    [("encoder.kind", "gat"), ("encoder.layers", 2), ("encoder.norm", "batch")],
)
def test_settings_of_a_network_are_refused_where_there_is_none(name, value):
    with pytest.raises(ConfigError, match=rf"{name}.*start=closed-form.*preset paper"):
        started(**{name: value})
    started(start="random", **{name: value})


def test_widths_that_the_closed_form_cannot_have_are_refused():
    with pytest.raises(ConfigError, match=r"encoder.hidden is 30.*multiple of 4"):
        started(**{"encoder.hidden": 30})


def test_without_epochs_it_costs_what_linear_jepa_costs():
    work = Workload(20_000, 200_000, 500, 10_000_000, True)

    def cost(method):
        return budget(method, work, operations_per_second=1e10)

    linear = cost(make_method("linear-jepa"))
    assert cost(started()) == linear
    assert cost(started(epochs=10)).seconds > linear.seconds
    assert cost(started(epochs=10)).peak_bytes >= linear.peak_bytes


@pytest.mark.slow
def test_it_is_trained_in_parts(graph):
    z = started(**TRAINED, parts=4, parts_per_step=2, micro_batches=2).fit_transform(graph)
    assert np.isfinite(z).all()


def test_it_has_no_network_to_be_tuned(toy_graph):
    labels = np.repeat([0, 1], 30)
    method = started(**TRAINED).fit(toy_graph)
    with pytest.raises(ConfigError, match="only a fitted method whose encoder is trained"):
        finetune(method, toy_graph, labels, per_class_split(labels, train=5, val=5, seed=0))


def test_guards_see_latents_apart_and_what_is_kept_is_turned(wide):
    """At the start the guarded latents are nearly uncorrelated: turned ones would ask for whitening."""
    task, inputs = started_task(wide)
    guarded = task.latents.guarded(task.encoder, inputs, np.ones(90, dtype=bool))
    off = torch.corrcoef(guarded.T) - torch.eye(guarded.shape[1])
    assert off.abs().mean() < 0.15
    method = started(device="cpu", **(TRAINED | {"lr": 1e-12, "training.lr_end": 0.0})).fit(wide)
    np.testing.assert_allclose(method.transform(wide), LinearJEPA(dim=16).fit_transform(wide), atol=1e-4)


@pytest.mark.parametrize("name", ["linear-jepa", "nodejepa"])
def test_a_model_of_an_older_recipe_is_refused(name, wide, tmp_path, monkeypatch):
    monkeypatch.setattr(linear_jepa, "_RECIPE", 2)
    method = started(**{"encoder.hidden": 16}) if name == "nodejepa" else make_method(name)
    method.fit(wide).save(tmp_path)
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match="older recipe"):
        load_method(tmp_path)
