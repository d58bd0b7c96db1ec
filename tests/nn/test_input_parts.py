"""A part knows its own size, nodes and edges; parts and views of parts are what one would build by hand."""

import numpy as np
import pytest
import torch

from nodejepa.graph import Graph
from nodejepa.masking.augment import drop_edges
from nodejepa.masking.khop import khop_mask
from nodejepa.nn.encoders import make_encoder
from nodejepa.nn.inputs import WholeGraph
from nodejepa.nn.sparse import SparseOperator
from reference.matrices import dense
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
