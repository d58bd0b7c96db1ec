"""NodeJEPA and PatchJEPA: the algorithms as written, no leaks, no gradient into the target."""

import dataclasses

import numpy as np
import pytest
import torch

import reference.objectives as reference
from nodejepa.config import override
from nodejepa.masking.khop import khop_mask
from nodejepa.methods.nodejepa import NodeJEPA, NodeJEPAConfig, NodeJEPATask
from nodejepa.methods.patchjepa import PatchJEPAConfig, PatchJEPATask
from nodejepa.nn.inputs import WholeGraph
from nodejepa.training.logger import Logging, PredictionShare
from nodejepa.training.task import StepContext
from reference.encoders import assert_same_gradients, encode
from reference.matrices import features, propagation_tensor
from reference.predictors import message_passing

SMALL = {"encoder.hidden": 8, "predictor.hidden": 8}
CONTEXT = StepContext(seed=0, epoch=60, step=0, progress=0.2)


def on_graph(graph, seed, kind, config):
    """A task, and beside it the graph that its steps are handed here."""
    torch.manual_seed(seed)
    inputs = WholeGraph(graph)
    task = kind(inputs, config)
    task.inputs = inputs
    return task


def node_task(graph, seed=0, **changes):
    return on_graph(graph, seed, NodeJEPATask, override(NodeJEPAConfig(), SMALL | changes))


def patch_task(graph, seed=0, **changes):
    config = override(PatchJEPAConfig(), SMALL | {"patches.count": 6} | changes)
    return on_graph(graph, seed, PatchJEPATask, config)


def predictions(task, monkeypatch, context=CONTEXT):
    """What the predictor says in one step."""
    seen = []
    original = type(task.predictor).forward
    monkeypatch.setattr(type(task.predictor), "forward", lambda *a: seen.append(original(*a)) or seen[-1])
    task.losses(task.inputs, context)
    monkeypatch.undo()
    return seen[0].detach()


@pytest.mark.parametrize("kind", ["message-passing", "attention"])
@pytest.mark.parametrize("isolation", [True, False])
def test_perturbing_targets_changes_no_prediction(toy_graph, monkeypatch, kind, isolation):
    targets = khop_mask(toy_graph, 0.5, 2, CONTEXT.numpy("mask"))
    perturbed = toy_graph.features.copy()
    perturbed[targets] += 10
    changes = {"predictor.kind": kind, "masking.isolation": isolation}
    one = predictions(node_task(toy_graph, **changes), monkeypatch)
    two = predictions(node_task(toy_graph.with_features(perturbed), **changes), monkeypatch)
    assert one.shape[0] == targets.sum()
    assert torch.equal(one, two) == isolation  # without isolation (ablation E) the encoder does see them


def naive_losses(task, context):
    """Algorithm 1 with dense matrices and loops over all nodes."""
    graph, config = task.inputs.graph, task.config
    s = propagation_tensor(graph.adjacency)
    ratio, hops = task.config.masking.at(context.epoch)
    masked = torch.from_numpy(khop_mask(graph, ratio, hops, context.numpy("mask")))
    x = features(graph)

    encoded = encode(task.encoder, torch.where(masked[:, None], task.token, x), graph.adjacency)
    wanted = encode(task.target_encoder, x, graph.adjacency).detach()[masked]
    guess = message_passing(task.predictor, encoded[~masked], s, masked, task.descriptors)
    regularised = encoded[~masked] if config.loss.regularised == "visible" else encoded
    variance, covariance = reference.vicreg(regularised)
    terms = {
        "prediction": reference.cosine_distance(guess, wanted),
        "variance": variance,
        "covariance": covariance,
        "sigreg": reference.sigreg(regularised, context.torch("noise"), times_n=False),
    }
    weights = {"prediction": 1, "variance": 0.2, "covariance": 0.2, "sigreg": 0.02}
    assert config.masking.isolation
    return {"loss": sum(weights[k] * v for k, v in terms.items())} | terms


@pytest.mark.parametrize("regularised", ["all", "visible"])
def test_a_step_of_nodejepa_equals_the_dense_algorithm_with_gradients(toy_graph, regularised):
    task = node_task(toy_graph, **{"loss.regularised": regularised})
    with torch.no_grad():
        task.token += 0.5
    mine, naive = task.losses(task.inputs, CONTEXT), naive_losses(task, CONTEXT)
    assert mine.keys() == naive.keys()
    for name in mine:
        torch.testing.assert_close(mine[name], naive[name], atol=1e-5, rtol=1e-4)
    leaves = [p for p in task.parameters() if p.requires_grad]
    assert_same_gradients(mine["loss"], naive["loss"], leaves, atol=1e-5, rtol=1e-3)


def test_the_mask_token_starts_with_the_spread_that_the_setting_says(toy_graph):
    wide = toy_graph.with_features(np.ones((toy_graph.num_nodes, 4000), np.float32))
    tokens = [node_task(wide, **{"masking.token_std": std}).token for std in (0.0, 0.02, 1.0)]
    assert [token.std().item() for token in tokens] == pytest.approx([0.0, 0.02, 1.0], rel=0.05)
    assert all(token.requires_grad for token in tokens)


def test_targets_are_drawn_anew_at_every_step(toy_graph, monkeypatch):
    task, hidden = node_task(toy_graph), []
    original = task.encoder.forward
    monkeypatch.setattr(
        task.encoder, "forward", lambda seen: hidden.append(seen.mask[0].tolist()) or original(seen)
    )
    for epoch, step in ((60, 0), (60, 1), (61, 0)):
        task.losses(task.inputs, dataclasses.replace(CONTEXT, epoch=epoch, step=step))
    first, second, third = hidden
    assert sum(first) == sum(second) == sum(third)
    assert first != second != third != first


def pooled_by_hand(task, x, s, patches, encode_all):
    """Node embeddings of each expanded patch: of the whole graph, or of the patch as a graph of its own."""
    everything = np.arange(len(x))

    def embeddings(encoder, nodes):
        h, block = x[nodes], s[np.ix_(nodes, nodes)]
        for i, weight in enumerate([encoder.first.weight, *encoder.weights]):
            h = encoder.norms[i](block @ h @ weight + encoder.biases[i])
            h = torch.relu(h) if i < len(encoder.weights) else h
        return h

    def of(encoder):
        lists = [task.patches.expanded(int(p)) for p in patches]
        if encode_all:
            h = embeddings(encoder, everything)
            return h, [h[nodes] for nodes in lists]
        return None, [embeddings(encoder, nodes) for nodes in lists]

    return of


@pytest.mark.parametrize(
    ("encode", "sigreg_on"),
    [
        *[("graph", on) for on in ("patches", "nodes", "context", "pooled-context")],
        *[("patch", on) for on in ("context", "pooled-context")],
    ],
)
def test_a_step_of_patchjepa_equals_the_dense_algorithm_with_gradients(toy_graph, encode, sigreg_on):
    task = patch_task(toy_graph, **{"patches.encode": encode, "loss.sigreg_on": sigreg_on})
    s, x = propagation_tensor(toy_graph.adjacency), features(toy_graph)
    (context,), targets = task.patches.sample(CONTEXT.numpy("mask"), 1, 4)

    whole, parts = pooled_by_hand(task, x, s, range(len(task.patches)), encode == "graph")(task.encoder)
    _, others = pooled_by_hand(task, x, s, targets, encode == "graph")(task.target_encoder)
    wanted = torch.stack([h.mean(dim=0) for h in others]).detach()
    means = torch.stack([h.mean(dim=0) for h in parts])
    guarded = {"patches": means, "pooled-context": means[[context]], "nodes": whole}.get(
        sigreg_on, parts[context]
    )
    pooled = parts[context].mean(dim=0).expand(4, -1)
    guess = task.predictor.mlp(torch.cat([pooled, task.descriptors[targets]], dim=1))
    points = [torch.stack([torch.cosh(v), torch.sinh(v)]) for v in (z.mean(dim=1) for z in (guess, wanted))]
    naive = {
        "prediction": reference.cosine_distance(guess, wanted),
        "hyperbola": torch.nn.functional.smooth_l1_loss(*points),
        "sigreg": reference.sigreg(guarded, CONTEXT.torch("noise"), times_n=False),
    }
    naive["loss"] = naive["prediction"] + naive["hyperbola"] + 0.02 * naive["sigreg"]
    mine = task.losses(task.inputs, CONTEXT)
    assert mine.keys() == naive.keys()
    for name in mine:
        torch.testing.assert_close(mine[name], naive[name], atol=1e-5, rtol=1e-4)
    leaves = [p for p in task.parameters() if p.requires_grad]
    assert_same_gradients(mine["loss"], naive["loss"], leaves, atol=1e-5, rtol=1e-3)


def test_pooled_patches_of_a_part_are_means_over_the_nodes_that_are_there(toy_graph):
    task = patch_task(toy_graph)
    nodes = np.arange(0, toy_graph.num_nodes, 2, dtype=np.int32)
    patches = np.array([0, 3])
    pooling = task.patches.pooling_over(patches, nodes).toarray()
    for row, patch in zip(pooling, patches, strict=True):
        inside = np.isin(nodes, task.patches.expanded(int(patch)))
        np.testing.assert_allclose(row, inside / inside.sum(), rtol=1e-6)


@pytest.mark.parametrize("make", [node_task, patch_task])
def test_the_target_never_receives_gradient_and_follows_the_context(toy_graph, make):
    task = make(toy_graph)
    task.losses(task.inputs, CONTEXT)["loss"].backward()
    assert all(p.grad is None for p in task.target_encoder.parameters())
    assert all(p.grad is not None for p in task.encoder.parameters())
    with torch.no_grad():
        for p in task.encoder.parameters():
            p += 1
    before = [p.clone() for p in task.target_encoder.parameters()]
    task.after_step(1.0)
    momentum = 0.999 if make is node_task else 0.996
    for old, new in zip(before, task.target_encoder.parameters(), strict=True):
        torch.testing.assert_close(new - old, torch.full_like(old, 1 - momentum), atol=1e-5, rtol=1e-2)


@pytest.mark.parametrize(
    ("make", "changes"),
    [
        (node_task, {}),
        (node_task, {"loss.prediction": "l2"}),
        (patch_task, {}),
        (patch_task, {"loss.hyperbola": 0.0}),
    ],
)
def test_the_share_of_prediction_is_that_of_two_gradients_taken_apart(toy_graph, make, changes):
    task = make(toy_graph, **changes)
    terms = task.losses(task.inputs, CONTEXT)
    share = PredictionShare(task, terms)
    terms["loss"].backward()
    found = share.found()["prediction_share"]

    def gradient(loss):
        parts = torch.autograd.grad(
            loss, list(task.encoder.parameters()), retain_graph=True, allow_unused=True
        )
        return torch.cat([part.flatten() for part in parts if part is not None]).norm().item()

    again = task.losses(task.inputs, CONTEXT)
    hyperbola = task.config.loss.hyperbola * again["hyperbola"] if "hyperbola" in again else 0.0
    mine = gradient(again["prediction"] + hyperbola)
    rest = gradient(again["loss"] - again["prediction"] - hyperbola)
    assert found == pytest.approx(mine / (mine + rest), rel=1e-4)
    assert 0 < found < 1


def test_the_share_is_in_every_epoch_and_changes_no_bit(toy_graph):
    settings = {"epochs": 4, "encoder.hidden": 8, "predictor.hidden": 8}
    looked = NodeJEPA(preset="paper", **settings).fit(toy_graph)
    seldom = NodeJEPA(preset="paper", **settings).fit(toy_graph, logging=Logging(share_epochs=3))
    assert all("prediction_share" in epoch for epoch in looked.history_)
    assert ["prediction_share" in epoch for epoch in seldom.history_] == [True, False, True, True]
    np.testing.assert_array_equal(looked.transform(toy_graph), seldom.transform(toy_graph))


def test_without_prediction_the_encoder_gets_no_gradient_from_it(toy_graph):
    task = node_task(toy_graph, **{"loss.prediction_weight": 0.0})
    terms = task.losses(task.inputs, CONTEXT)
    share = PredictionShare(task, terms)
    terms["loss"].backward()
    assert share.found() == {"prediction_share": 0.0}
    assert all(p.grad is None or not p.grad.any() for p in task.predictor.parameters())
    assert any(p.grad.any() for p in task.encoder.parameters())


def test_the_target_encoder_normalises_with_the_statistics_of_the_context_encoder(toy_graph):
    task = node_task(toy_graph, **{"encoder.norm": "batch"})
    task.train()
    for step in range(3):
        task.losses(task.inputs, StepContext(0, 60, step, 0.2))
        task.after_step(0.2)
    assert next(iter(task.encoder.buffers())).any()
    for mine, theirs in zip(task.target_encoder.buffers(), task.encoder.buffers(), strict=True):
        assert torch.equal(mine, theirs)
