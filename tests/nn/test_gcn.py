"""The GCN's layer is PyG's, edge weights included. What every encoder must do is in ``test_encoders.py``."""

import pytest
import torch

from nodejepa.errors import ConfigError, GraphError
from nodejepa.graph import Graph
from nodejepa.nn.gcn import GCN
from nodejepa.nn.inputs import WholeGraph
from reference.samples import graph_with


def test_layer_equals_pyg():
    nn = pytest.importorskip("torch_geometric.nn")
    graph = graph_with("wide")
    model = GCN(graph.num_features, hidden=16, layers=1, norm="none")
    conv = nn.GCNConv(graph.num_features, 16)
    conv.lin.weight.data = model.first.weight.data.T.clone()
    conv.bias.data = model.biases[0].data.clone()
    source, target, weight = (torch.from_numpy(a) for a in graph.edge_arrays())
    theirs = conv(torch.from_numpy(graph.features.copy()), torch.stack([source, target]), weight)
    torch.testing.assert_close(model(WholeGraph(graph)), theirs, atol=1e-5, rtol=1e-4)


def test_a_graph_without_features_and_an_unknown_activation_are_explained():
    with pytest.raises(GraphError, match="no node features"):
        WholeGraph(Graph.from_edges([0], [1]))
    with pytest.raises(ConfigError, match="activation 'tan' is unknown"):
        GCN(3, activation="tan")
