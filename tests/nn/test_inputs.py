"""Parts and views of a graph as a network reads them."""

import numpy as np
import pytest
import torch

from nodejepa.graph import Graph
from nodejepa.masking.augment import drop_edges
from nodejepa.masking.khop import khop_mask
from nodejepa.nn.encoders import make_encoder
from nodejepa.nn.inputs import WholeGraph
from nodejepa.nn.sparse import SparseOperator, make_operator
from reference.gradients import assert_same_gradients
from reference.matrices import dense, edge_index, features
from reference.samples import COLUMNS, graph_with

KINDS = ["gcn", "sage", "gin", "gat", "mlp"]
LISTS = [np.array([0, 3, 7, 8, 20], dtype=np.int32), np.array([3, 5, 36], dtype=np.int32)]


def matrix(values):
    return values.matrix.toarray() if isinstance(values, SparseOperator) else values.numpy()


def by_hand(whole, lists):
    """Blocks of a dense matrix along the diagonal."""
    size = sum(map(len, lists))
    out, start = np.zeros((size, size), dtype=np.float32), 0
    for nodes in lists:
        end = start + len(nodes)
        out[start:end, start:end] = whole[np.ix_(nodes, nodes)]
        start = end
    return out


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("layout", COLUMNS)
def test_a_part_is_cut_out_of_the_whole(layout, directed):
    whole = WholeGraph(graph_with(layout, directed=directed))
    part, rows = whole.induced(LISTS), np.concatenate(LISTS)
    assert (part.num_nodes, part.num_features, part.directed) == (8, COLUMNS[layout], directed)
    np.testing.assert_array_equal(part.nodes, rows)
    np.testing.assert_array_equal(part.adjacency.toarray(), by_hand(whole.adjacency.toarray(), LISTS))
    for name in ("propagation", "neighbour_sum", "neighbour_mean"):
        np.testing.assert_array_equal(
            matrix(getattr(part, name)), by_hand(matrix(getattr(whole, name)), LISTS)
        )
    np.testing.assert_array_equal(matrix(part.features), matrix(whole.features)[rows])
    constant = torch.randn(40, 3)
    assert part.take(constant).equal(constant[torch.from_numpy(rows)])
    assert whole.take(constant) is constant


@pytest.mark.parametrize("layout", COLUMNS)
@pytest.mark.parametrize("kind", KINDS)
def test_all_nodes_are_the_whole(kind, layout):
    whole = WholeGraph(graph_with(layout))
    everything = whole.induced([np.arange(40, dtype=np.int32)])
    torch.manual_seed(0)
    model = make_encoder(kind, whole.num_features, hidden=16)
    assert model(everything).equal(model(whole))
    masks = [khop_mask(graph, 0.4, 2, np.random.default_rng(0)) for graph in (whole, everything)]
    np.testing.assert_array_equal(*masks)


@pytest.mark.parametrize("layout", COLUMNS)
def test_a_part_of_a_part_is_a_part(layout):
    whole = WholeGraph(graph_with(layout))
    again = whole.induced(LISTS).induced(
        [np.array([1, 2, 4], dtype=np.int32), np.array([5, 6], dtype=np.int32)]
    )
    once = whole.induced([np.array([3, 7, 20], dtype=np.int32), np.array([3, 5], dtype=np.int32)])
    np.testing.assert_array_equal(again.nodes, once.nodes)
    np.testing.assert_array_equal(matrix(again.propagation), matrix(once.propagation))
    np.testing.assert_array_equal(matrix(again.features), matrix(once.features))
    constant = torch.randn(40)
    assert again.take(constant).equal(once.take(constant))


@pytest.mark.parametrize("layout", COLUMNS)
@pytest.mark.parametrize("kind", KINDS)
def test_views_of_a_part_are_those_of_a_graph_of_its_own(kind, layout):
    graph = graph_with(layout)
    nodes = np.arange(0, 40, 2, dtype=np.int32)
    part = WholeGraph(graph).induced([nodes])
    keep = np.random.default_rng(4).random(graph.num_features) < 0.6
    edges = drop_edges(part.adjacency, 0.3, np.random.default_rng(1))
    torch.manual_seed(0)
    model = make_encoder(kind, graph.num_features, hidden=16, layers=2)
    own = Graph(edges, dense(graph.features)[nodes] * keep)
    view = part.view(adjacency=edges, keep_columns=keep)
    torch.testing.assert_close(model(view), model(WholeGraph(own)), atol=1e-5, rtol=1e-4)
    constant = torch.randn(40)
    assert view.take(constant).equal(constant[::2])
    order = torch.randperm(20)
    plain, shuffled = part.shuffled(order)
    assert model(plain).equal(model(part))
    own = Graph(edges, dense(graph.features)[nodes][order.numpy()])
    torch.testing.assert_close(
        model(shuffled.view(adjacency=edges)), model(WholeGraph(own)), atol=1e-5, rtol=1e-4
    )


def encoder(kind, graph, **settings):
    torch.manual_seed(0)
    return make_encoder(kind, graph.num_features, hidden=8, layers=2, activation="elu", **settings)


def same(model, inputs, graph, mask=None):
    """Embeddings and gradients of a view equal those of a graph of its own, also with hidden nodes."""
    both = inputs, WholeGraph(graph)
    mine, wanted = (model(given.masked(*mask) if mask else given) for given in both)
    torch.testing.assert_close(mine, wanted, atol=1e-5, rtol=1e-4)
    leaves = [p for p in model.parameters() if p.requires_grad]
    weights = torch.randn(mine.shape, generator=torch.Generator().manual_seed(1))
    assert_same_gradients((mine * weights).sum(), (wanted * weights).sum(), leaves, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("layout", COLUMNS)
@pytest.mark.parametrize("kind", KINDS)
def test_dropped_edges_and_columns(kind, layout, directed):
    graph = graph_with(layout, directed=directed)
    adjacency = drop_edges(graph.adjacency, 0.4, np.random.default_rng(3))
    keep = np.random.default_rng(4).random(graph.num_features) < 0.6
    inputs = WholeGraph(graph)
    by_hand = Graph(adjacency, dense(graph.features) * keep, directed=directed)
    model = encoder(kind, graph)
    same(model, inputs.view(adjacency=adjacency, keep_columns=keep), by_hand)
    same(model, inputs.view(keep_columns=keep), Graph(graph.adjacency, by_hand.features, directed=directed))
    mask = torch.arange(40) % 3 == 0, torch.ones(graph.num_features)
    edges_only = Graph(adjacency, graph.features, directed=directed)
    same(model, inputs.view(adjacency=adjacency), edges_only, mask)


@pytest.mark.parametrize("directed", [False, True])
def test_the_compiled_propagation_is_that_of_the_graph(directed):
    graph = graph_with(directed=directed)
    for p in (0.0, 0.5, 1.0):
        adjacency = drop_edges(graph.adjacency, p, np.random.default_rng(0))
        mine = make_operator("propagation", adjacency, directed=directed)
        wanted = Graph(adjacency, graph.features, directed=directed).normalized_adjacency
        np.testing.assert_array_equal(mine.matrix.indices, wanted.indices)
        np.testing.assert_array_equal(mine.matrix.indptr, wanted.indptr)
        np.testing.assert_allclose(mine.matrix.data, wanted.data, rtol=1e-6)
        assert mine.symmetric != directed


def test_it_is_gcnconv_on_the_dropped_edges():
    pyg = pytest.importorskip("torch_geometric.nn")
    graph = graph_with()
    adjacency = drop_edges(graph.adjacency, 0.5, np.random.default_rng(0))
    conv, x = pyg.GCNConv(30, 8), features(graph)
    wanted = conv(x, edge_index(adjacency), torch.from_numpy(adjacency.tocoo().data))
    mine = make_operator("propagation", adjacency, directed=False)(conv.lin(x)) + conv.bias
    torch.testing.assert_close(mine, wanted, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("layout", COLUMNS)
@pytest.mark.parametrize("kind", KINDS)
def test_shuffled_features_share_the_product(kind, layout, monkeypatch):
    graph = graph_with(layout)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(2))
    inputs, model = WholeGraph(graph), encoder(kind, graph)
    same(model, inputs.shuffled(order)[0], graph)
    same(model, inputs.shuffled(order)[1], graph.with_features(graph.features[order.numpy()]))
    if layout == "sparse":
        calls = []
        original = SparseOperator.__call__

        def count(self, x):
            calls.append(self.shape)
            return original(self, x)

        monkeypatch.setattr(SparseOperator, "__call__", count)
        real, corrupted = inputs.shuffled(order)
        model(real)
        first = calls.count((40, 60))
        model(corrupted)
        assert calls.count((40, 60)) == first  # X W was not computed again


@pytest.mark.parametrize("layout", COLUMNS)
@pytest.mark.parametrize("kind", KINDS)
def test_row_normalised_inputs(kind, layout):
    graph = graph_with(layout)
    x = dense(graph.features)
    total = np.abs(x).sum(axis=1, keepdims=True)
    by_hand = graph.with_features(x / np.where(total > 0, total, 1))
    inputs, plain = WholeGraph(graph), encoder(kind, graph)
    normalising = encoder(kind, graph, row_normalise=True)
    same(plain, inputs.row_normalised, by_hand)
    torch.testing.assert_close(normalising(inputs), plain(WholeGraph(by_hand)), atol=1e-5, rtol=1e-4)
    assert torch.equal(normalising(inputs), normalising(inputs.row_normalised))  # once is enough
    keep = np.random.default_rng(4).random(graph.num_features) < 0.6
    dropped = Graph(graph.adjacency, dense(by_hand.features) * keep)
    for view in (inputs.row_normalised.view(keep_columns=keep), inputs.view(keep_columns=keep)):
        torch.testing.assert_close(normalising(view), plain(WholeGraph(dropped)), atol=1e-5, rtol=1e-4)
    nodes = [np.array([0, 3, 7], dtype=np.int32), np.array([1, 3], dtype=np.int32)]
    torch.testing.assert_close(
        normalising(inputs.induced(nodes)), plain(WholeGraph(by_hand).induced(nodes)), atol=1e-5, rtol=1e-4
    )
    if layout == "sparse":
        assert isinstance(inputs.row_normalised.features, SparseOperator)
