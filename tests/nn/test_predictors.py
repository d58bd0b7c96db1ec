"""Predictors equal dense twins and read nothing of a target but its descriptor."""

import numpy as np
import pytest
import torch

import reference.predictors as reference
from nodejepa.methods.blocks import ema_update, frozen_copy
from nodejepa.nn.inputs import WholeGraph
from nodejepa.nn.predictors import AttentionPredictor, MessagePassingPredictor, PatchPredictor
from reference.matrices import propagation_tensor


def masks(graph, seed=0):
    targets = np.random.default_rng(seed).random(graph.num_nodes) < 0.4
    return targets, torch.from_numpy(targets)


@pytest.mark.parametrize("descriptor_dim", [0, 3])
def test_message_passing_equals_the_dense_formula(toy_graph, descriptor_dim):
    torch.manual_seed(0)
    targets, masked = masks(toy_graph)
    model = MessagePassingPredictor(8, descriptor_dim, hidden=12)
    context = torch.randn(int((~masked).sum()), 8)
    descriptors = torch.randn(toy_graph.num_nodes, descriptor_dim)
    s = propagation_tensor(toy_graph.adjacency)
    out = model(context, WholeGraph(toy_graph).propagation, targets, descriptors)
    torch.testing.assert_close(
        out, reference.message_passing(model, context, s, masked, descriptors), atol=1e-5, rtol=1e-4
    )


def test_attention_equals_the_dense_formula(toy_graph):
    torch.manual_seed(0)
    targets, masked = masks(toy_graph)
    model = AttentionPredictor(8, 3, hidden=12, heads=2)
    context, descriptors = torch.randn(int((~masked).sum()), 8), torch.randn(toy_graph.num_nodes, 3)
    wanted = reference.attention(model, context, masked, descriptors, heads=2)
    out = model(context, WholeGraph(toy_graph).propagation, targets, descriptors)
    torch.testing.assert_close(out, wanted, atol=1e-5, rtol=1e-4)


def test_patch_predictor_reads_context_and_descriptor():
    model = PatchPredictor(8, 4, hidden=12)
    context, descriptors = torch.randn(5, 8), torch.randn(5, 4)
    out = model(context, descriptors)
    assert out.shape == (5, 8)
    assert not torch.allclose(out, model(context + 1, descriptors))
    assert not torch.allclose(out, model(context, descriptors + 1))


def test_ema_moves_parameters_copies_statistics_and_takes_no_gradient():
    source = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    target = frozen_copy(source)
    assert not any(p.requires_grad for p in target.parameters())
    before = {k: v.clone() for k, v in target.state_dict().items()}
    with torch.no_grad():
        for value in source.state_dict().values():
            value += 1
    ema_update(target, source, 0.9)
    buffers = dict(source.named_buffers())
    for name, value in target.state_dict().items():
        torch.testing.assert_close(value, before[name] + (1 if name in buffers else 0.1))
