"""Encoders against naive dense twins, and the blocks they are made of."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import reference.predictors as reference
from nodejepa.errors import ConfigError, GraphError
from nodejepa.graph import Graph
from nodejepa.methods.blocks import ema_update, frozen_copy
from nodejepa.nn.attention import AttentionEdges, attend, attention_edges, edge_attention
from nodejepa.nn.encoders import make_encoder
from nodejepa.nn.inputs import WholeGraph
from nodejepa.nn.predictors import AttentionPredictor, MessagePassingPredictor, PatchPredictor
from reference.encoders import assert_same_gradients, encode_graph
from reference.matrices import COLUMNS, graph_with, propagation_tensor

KINDS = ["gcn", "sage", "gin", "gat", "mlp"]


def encoder(kind, graph, seed=0, **settings):
    """An encoder none of whose parameters is zero: biases and eps count."""
    torch.manual_seed(seed)
    model = make_encoder(kind, graph.num_features, **({"hidden": 16} | settings))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def assert_same_values_and_gradients(mine, wanted, leaves):
    torch.testing.assert_close(mine, wanted, atol=2e-5, rtol=1e-4)
    probe = torch.randn_like(wanted)
    assert_same_gradients((mine * probe).sum(), (wanted * probe).sum(), leaves, atol=2e-4, rtol=1e-3)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("layout", COLUMNS)
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_dense_formula_with_gradients(kind, layers, layout, directed):
    graph = graph_with(layout, directed=directed)
    model, inputs = encoder(kind, graph, layers=layers), WholeGraph(graph)
    token = torch.randn(graph.num_features, requires_grad=True)
    hidden = torch.rand(graph.num_nodes) < 0.4
    rows = np.random.default_rng(1).random(graph.num_nodes) < 0.3
    wanted = encode_graph(model, graph, hidden, token)
    leaves = [*model.parameters(), token]
    assert_same_values_and_gradients(model(inputs.masked(hidden, token)), wanted, leaves)
    wanted = encode_graph(model, graph, hidden, token)[torch.from_numpy(rows)]
    assert_same_values_and_gradients(model(inputs.masked(hidden, token), rows=rows), wanted, leaves)
    torch.testing.assert_close(model(inputs), encode_graph(model, graph), atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_the_whole(kind, layers):
    graph = graph_with()
    model, inputs = encoder(kind, graph, layers=layers), WholeGraph(graph)
    whole = model(inputs)
    nothing = np.zeros(graph.num_nodes, dtype=bool)
    assert model(inputs, rows=nothing).shape == (0, 16)
    for rows in (~nothing, np.arange(graph.num_nodes) % 3 == 0):
        torch.testing.assert_close(model(inputs, rows=rows), whole[torch.from_numpy(rows)])


@pytest.mark.parametrize("kind", KINDS)
def test_same_bits_every_time(kind):
    graph = graph_with("sparse")

    def values_and_gradients():
        model = encoder(kind, graph, seed=3)
        out = model(WholeGraph(graph), rows=np.arange(graph.num_nodes) % 2 == 0)
        return [out, *torch.autograd.grad(out.square().sum(), [*model.parameters()])]

    for a, b in zip(values_and_gradients(), values_and_gradients(), strict=True):
        assert a.equal(b)


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_works_in_training_only(kind):
    graph = graph_with()
    model, inputs = encoder(kind, graph, dropout=0.5), WholeGraph(graph)
    assert not model(inputs).equal(model(inputs))
    model.eval()
    assert model(inputs).equal(model(inputs))


@pytest.mark.parametrize("kind", KINDS)
def test_ends_follow_the_settings(kind):
    graph = graph_with()
    inputs = WholeGraph(graph)
    z = encoder(kind, graph, layers=2, out_dim=8, activate_last=True)(inputs)
    assert z.shape == (40, 8)
    assert z.min() == 0
    plain = encoder(kind, graph, layers=2, norm_last=False)
    assert isinstance(plain.norms[-1], torch.nn.Identity)
    torch.testing.assert_close(plain(inputs), encode_graph(plain, graph), atol=2e-5, rtol=1e-4)


# ------------------------------------------------------------------ against PyG, one layer


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("kind", ["gcn", "sage", "gin", "gat"])
def test_layer_equals_pyg(kind, directed):
    pyg = pytest.importorskip("torch_geometric.nn")
    graph = graph_with(directed=directed, weighted=False)
    model = encoder(kind, graph, layers=1, norm="none")
    x = torch.from_numpy(graph.features.copy())
    if kind == "gcn":
        conv = pyg.GCNConv(graph.num_features, 16)
        weights = {"lin.weight": model.first.weight.T, "bias": model.biases[0]}
    elif kind == "sage":
        conv = pyg.SAGEConv(graph.num_features, 16)
        weights = {
            "lin_r.weight": model.first_own.weight.T,
            "lin_l.weight": model.first_neighbours.weight.T,
            "lin_l.bias": model.biases[0],
        }
    elif kind == "gin":
        first = torch.nn.Linear(graph.num_features, 16)
        mlp = torch.nn.Sequential(first, torch.nn.ReLU(), torch.nn.Linear(16, 16))
        conv = pyg.GINConv(mlp, train_eps=True)
        weights = {
            "eps": model.eps,
            "nn.0.weight": model.first.weight.T,
            "nn.0.bias": model.biases[0],
            "nn.2.weight": model.inner[0][2].weight,
            "nn.2.bias": model.inner[0][2].bias,
        }
    else:
        conv = pyg.GATConv(graph.num_features, 4, heads=4)
        layer = model.attentions[0]
        weights = {
            "lin.weight": model.first.weight.T,
            "att_src": layer.source[None],
            "att_dst": layer.target[None],
            "bias": layer.bias,
        }
    conv.load_state_dict({name: value.detach().clone() for name, value in weights.items()})
    source, target, _ = (torch.from_numpy(a) for a in graph.edge_arrays())
    theirs = conv(x, torch.stack([source, target]))
    torch.testing.assert_close(model(WholeGraph(graph)), theirs, atol=2e-5, rtol=1e-4)


# ------------------------------------------------------------------ attention


def random_edges(rows=7, columns=5, seed=0):
    filled = np.random.default_rng(seed).random((rows, columns)) < 0.4
    filled[np.arange(rows), np.arange(rows) % (columns - 1)] = True  # no empty row; a column may be empty
    filled[:, -1] = False
    return AttentionEdges(sp.csr_array(filled.astype(np.float32)))


@pytest.mark.slow
def test_attention_gradients_equal_finite_differences():
    edges = random_edges()
    source, target = (torch.randn(2, n, dtype=torch.float64, requires_grad=True) for n in (5, 7))
    z = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s, t: edge_attention(s, t, edges), (source, target))
    attention = torch.rand(2, len(edges.sources), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, x: attend(a, x, edges), (attention, z))


def test_attention_adds_up_to_one_however_large_the_scores():
    edges = random_edges()
    attention = edge_attention(torch.full((1, 5), 300.0), torch.randn(1, 7), edges)
    torch.testing.assert_close(edges.by_target(attention[0], "sum"), torch.ones(len(edges.targets)))


def test_edges_of_an_operator_are_made_once():
    inputs = WholeGraph(graph_with())
    assert attention_edges(inputs.propagation) is attention_edges(inputs.propagation)


def test_edge_weights_do_not_count_in_gat():
    weighted, plain = graph_with(), graph_with(weighted=False)
    model = encoder("gat", plain)
    assert model(WholeGraph(weighted)).equal(model(WholeGraph(plain)))


def test_mistakes_are_explained():
    with pytest.raises(ConfigError, match="4 attention heads do not fill a layer of width 30"):
        make_encoder("gat", 3, hidden=30)


def test_a_graph_without_features_is_explained():
    with pytest.raises(GraphError, match="no node features"):
        WholeGraph(Graph.from_edges([0], [1]))


@pytest.mark.parametrize("norm", ["layer", "batch", "graph"])
def test_embeddings_are_those_of_the_forward_pass_without_gradients(norm):
    inputs = WholeGraph(graph_with())
    model = encoder("gcn", inputs.graph, norm=norm).eval()
    rows = np.arange(inputs.num_nodes) % 3 == 1
    assert not model.embed(inputs).requires_grad
    assert model.embed(inputs).equal(model(inputs))
    torch.testing.assert_close(model.embed(inputs, rows), model(inputs)[torch.from_numpy(rows)])


# ---------------------------------------------------------------- predictors


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
