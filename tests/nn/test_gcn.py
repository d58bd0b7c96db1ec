"""The GCN equals a dense twin whatever the layout of the features and whichever rows are asked for."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from nodejepa.errors import ConfigError, GraphError
from nodejepa.graph import Graph
from nodejepa.nn.gcn import GCN
from nodejepa.nn.inputs import GraphInputs


def graph_with(layout, seed=0, directed=False):
    rng = np.random.default_rng(seed)
    size, columns = 40, {"narrow": 6, "wide": 30, "sparse": 50}[layout]
    x = rng.normal(size=(size, columns)).astype(np.float32)
    features = sp.csr_array(x * (rng.random(x.shape) < 0.1)) if layout == "sparse" else x
    return Graph.from_edges(
        rng.integers(0, size, 90),
        rng.integers(0, size, 90),
        features=features,
        num_nodes=size,
        weights=rng.random(90) + 0.1,
        direction="keep" if directed else "symmetrize",
    )


def dense_gcn(model, graph, hidden=None, token=None):
    """The textbook formula with dense matrices."""
    s = torch.from_numpy(graph.normalized_adjacency.toarray())
    x = graph.features.toarray() if sp.issparse(graph.features) else graph.features
    h = torch.from_numpy(np.array(x))
    if hidden is not None:
        h = torch.where(hidden[:, None], token, h)
    for i, weight in enumerate([model.first.weight, *model.weights]):
        h = s @ h @ weight + model.biases[i]
        h = torch.nn.functional.layer_norm(h, h.shape[1:], model.norms[i].weight, model.norms[i].bias)
        h = torch.relu(h) if i < len(model.weights) else h
    return h


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("layout", ["narrow", "wide", "sparse"])
@pytest.mark.parametrize("layers", [1, 3])
def test_gcn_equals_the_dense_formula_with_gradients(layout, directed, layers):
    torch.manual_seed(0)
    graph = graph_with(layout, directed=directed)
    model = GCN(graph.num_features, hidden=16, layers=layers)
    token = torch.randn(graph.num_features, requires_grad=True)
    hidden = torch.rand(graph.num_nodes) < 0.4
    out = model(GraphInputs(graph), hidden, token)
    wanted = dense_gcn(model, graph, hidden, token)
    torch.testing.assert_close(out, wanted, atol=1e-5, rtol=1e-4)
    probe = torch.randn_like(out)
    leaves = [*model.parameters(), token]
    mine = torch.autograd.grad((out * probe).sum(), leaves)
    theirs = torch.autograd.grad((wanted * probe).sum(), leaves)
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(model(GraphInputs(graph)), dense_gcn(model, graph), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("layers", [1, 3])
def test_asking_for_some_rows_gives_those_rows(layers):
    graph = graph_with("wide")
    model = GCN(graph.num_features, hidden=16, layers=layers)
    rows = np.random.default_rng(0).random(graph.num_nodes) < 0.3
    inputs = GraphInputs(graph)
    torch.testing.assert_close(model(inputs, rows=rows), model(inputs)[torch.from_numpy(rows)])


def test_layer_equals_pyg():
    nn = pytest.importorskip("torch_geometric.nn")
    graph = graph_with("wide")
    model = GCN(graph.num_features, hidden=16, layers=1, norm="none")
    conv = nn.GCNConv(graph.num_features, 16)
    conv.lin.weight.data = model.first.weight.data.T.clone()
    conv.bias.data = model.biases[0].data.clone()
    source, target, weight = (torch.from_numpy(a) for a in graph.edge_arrays())
    theirs = conv(torch.from_numpy(graph.features.copy()), torch.stack([source, target]), weight)
    torch.testing.assert_close(model(GraphInputs(graph)), theirs, atol=1e-5, rtol=1e-4)


def test_permuting_the_nodes_permutes_the_embeddings():
    graph = graph_with("wide")
    order = np.random.default_rng(1).permutation(graph.num_nodes)
    shuffled = Graph.from_scipy(graph.adjacency[order][:, order], graph.features[order])
    model = GCN(graph.num_features, hidden=16)
    torch.testing.assert_close(
        model(GraphInputs(shuffled)), model(GraphInputs(graph))[torch.from_numpy(order)], atol=1e-5, rtol=1e-4
    )


def test_a_graph_without_features_and_an_unknown_activation_are_explained():
    with pytest.raises(GraphError, match="no node features"):
        GraphInputs(Graph.from_edges([0], [1]))
    with pytest.raises(ConfigError, match="activation 'tan' is unknown"):
        GCN(3, activation="tan")
