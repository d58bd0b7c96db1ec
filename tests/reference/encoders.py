"""Encoders layer by layer with dense matrices, and the GCN with PyG's layer."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from nodejepa.nn.encoders import GAT, GCN, GIN, MLP, GraphSAGE
from reference.matrices import features, propagation_tensor


def weight_of(model, i):
    return model.first.weight if i == 0 else model.weights[i - 1]


def gcn_layer(model, i, h, a):
    return propagation_tensor(a.T.numpy()) @ h @ weight_of(model, i) + model.biases[i]


def sage_layer(model, i, h, a):
    own = model.first_own.weight if i == 0 else model.own[i - 1]
    neighbours = model.first_neighbours.weight if i == 0 else model.neighbours[i - 1]
    total = a.sum(1, keepdim=True)
    return h @ own + a / torch.where(total > 0, total, 1) @ h @ neighbours + model.biases[i]


def gin_layer(model, i, h, a):
    summed = (1 + model.eps[i]) * h + a @ h
    return model.inner[i](summed @ weight_of(model, i) + model.biases[i])


def gat_layer(model, i, h, a):
    return attention(model.attentions[i], h @ weight_of(model, i), a)


def mlp_layer(model, i, h, _):
    return h @ weight_of(model, i) + model.biases[i]


LAYERS = {GCN: gcn_layer, GraphSAGE: sage_layer, GIN: gin_layer, GAT: gat_layer, MLP: mlp_layer}


def attention(layer, z, incoming):
    """Graph attention of every node over the nodes that point at it and over itself."""
    seen = (incoming + torch.eye(len(incoming))) > 0
    heads = []
    for k, zk in enumerate(z.chunk(layer.heads, dim=1)):
        score = functional.leaky_relu((zk @ layer.target[k])[:, None] + (zk @ layer.source[k])[None, :], 0.2)
        heads.append(score.masked_fill(~seen, -torch.inf).softmax(dim=1) @ zk)
    return torch.cat(heads, dim=1) + layer.bias


def encode(model, x, adjacency):
    """The embeddings of nodes with features ``x``."""
    incoming = torch.from_numpy(adjacency.T.toarray())
    for i, (norm, activation) in enumerate(zip(model.norms, model.activations, strict=True)):
        x = activation(norm(LAYERS[type(model)](model, i, x, incoming)))
    return x


def encode_graph(model, graph, hidden=None, token=None):
    """The embeddings of a graph; the rows of hidden nodes are overwritten with the token."""
    x = features(graph)
    return encode(model, x if hidden is None else torch.where(hidden[:, None], token, x), graph.adjacency)


def pyg_gcn(model, x, edges):
    """The embeddings by PyG's ``GCNConv``, on an ``edge_index`` of edges without weights."""
    conv = pytest.importorskip("torch_geometric.nn").GCNConv
    for i in range(len(model.norms)):
        own = {"lin.weight": weight_of(model, i).T, "bias": model.biases[i]}
        x = torch.func.functional_call(conv(*weight_of(model, i).shape), own, (x, edges))
        x = model.activations[i](model.norms[i](x))
    return x


# ---------------------------------------------------------------- gradients


def assert_same_gradients(mine, wanted, leaves, *, atol, rtol):
    """Two scalars have the same gradient in every leaf."""
    for a, b in zip(torch.autograd.grad(mine, leaves), torch.autograd.grad(wanted, leaves), strict=True):
        torch.testing.assert_close(a, b, atol=atol, rtol=rtol)


def assert_a_step_lowers(loss, leaves, length):
    """A step of ``length`` against the gradient lowers what ``loss()`` gives."""
    before = loss()
    gradients = torch.autograd.grad(before, leaves, allow_unused=True)
    norm = torch.stack([g.norm() for g in gradients if g is not None]).norm()
    assert norm > 0
    with torch.no_grad():
        for leaf, gradient in zip(leaves, gradients, strict=True):
            if gradient is not None:
                leaf -= length * gradient / norm
    assert loss().item() < before.item()
