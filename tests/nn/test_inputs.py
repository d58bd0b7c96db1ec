"""Parts and views of a graph as a network reads them."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from nodejepa.graph import Graph
from nodejepa.masking.augment import drop_edges
from nodejepa.masking.khop import khop_mask
from nodejepa.nn.encoders import make_encoder
from nodejepa.nn.inputs import WholeGraph
from nodejepa.nn.sparse import SparseOperator, csr_product, make_operator, restrict
from nodejepa.nn.workspace import Workspace, mapped
from reference.encoders import assert_same_gradients
from reference.matrices import COLUMNS, dense, graph_with

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


# ---------------------------------------------------------------- arrays for columns


def test_a_file_is_read_and_never_written(tmp_path):
    path = tmp_path / "numbers"
    np.arange(6, dtype=np.float32).tofile(path)
    with path.open("rb") as file:
        seen = mapped(file, torch.float32)
    seen[0] = 7
    assert seen.tolist() == [7, 1, 2, 3, 4, 5]
    assert np.fromfile(path, dtype=np.float32)[0] == 0


def test_a_file_may_be_larger_than_memory(tmp_path):
    path = tmp_path / "zeros"
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with path.open("wb") as file:
        file.truncate(4 * machine)  # takes no room on disk
    with path.open("rb") as file:
        seen = mapped(file, torch.float32)
    assert len(seen) == machine
    assert seen[-1] == 0


def test_blocks_are_written_where_they_stay_also_in_a_file(tmp_path):
    """Into what is given, else into memory or into a file without a name, as there is room."""
    spans = [(0, 3), (3, 7), (7, 8)]

    def write(low, high, rows):
        rows[:] = torch.arange(low, high)[:, None]

    wanted = torch.arange(8.0)[:, None].expand(8, 5)
    for memory in (1 << 20, 1):
        space = Workspace(8, lambda: iter(spans), tmp_path, memory=memory)
        given = torch.full((8, 5), -1.0)
        assert space.fill_in_place(5, write, given).data_ptr() == given.data_ptr()
        assert given.equal(wanted)
        found = space.fill_in_place(5, write)
        assert found.equal(wanted)
        assert (str(tmp_path) in Path("/proc/self/maps").read_text()) == (memory == 1)
        assert not [*tmp_path.iterdir()]
        del found


# ---------------------------------------------------------------- products


def random_matrix(rows, columns, seed, symmetric=False):
    matrix = sp.random_array((rows, columns), density=0.2, rng=np.random.default_rng(seed), dtype=np.float32)
    return sp.csr_array(matrix + matrix.T) if symmetric else sp.csr_array(matrix)


@pytest.mark.parametrize("symmetric", [False, True])
def test_product_and_gradient_equal_the_dense_ones(symmetric):
    matrix = random_matrix(12, 12 if symmetric else 7, 0, symmetric)
    x = torch.randn(matrix.shape[1], 5, requires_grad=True)
    out = SparseOperator(matrix, symmetric=symmetric)(x)
    weights = torch.randn_like(out)
    (gradient,) = torch.autograd.grad((out * weights).sum(), x)
    dense = torch.from_numpy(matrix.toarray())
    torch.testing.assert_close(out, dense @ x)
    torch.testing.assert_close(gradient, dense.T @ weights)


@pytest.mark.parametrize("symmetric", [False, True])
def test_blocks_equal_dense_indexing(symmetric):
    matrix = random_matrix(15, 15, 1, symmetric)
    operator = SparseOperator(matrix, symmetric=symmetric)
    rng = np.random.default_rng(2)
    some, others = rng.random(15) < 0.5, rng.random(15) < 0.4
    dense = matrix.toarray()
    for rows, columns in ((some, others), (some, some), (some, None), (None, others), (None, None)):
        block = restrict(operator, rows, columns)
        wanted = dense[slice(None) if rows is None else rows][:, slice(None) if columns is None else columns]
        np.testing.assert_array_equal(block.matrix.toarray(), wanted)
        np.testing.assert_array_equal(block.transposed.to_dense(), wanted.T)


def test_an_empty_block_gives_zeros():
    operator = SparseOperator(random_matrix(6, 6, 3, symmetric=True), symmetric=True)
    nothing = np.zeros(6, dtype=bool)
    assert restrict(operator, ~nothing, nothing)(torch.zeros(0, 4)).equal(torch.zeros(6, 4))
    assert restrict(operator, nothing, ~nothing)(torch.randn(6, 4)).shape == (0, 4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 5, 256])
def test_threads_change_no_bit_of_a_product(dtype, width, monkeypatch):
    monkeypatch.setattr("nodejepa.nn.sparse._WORK_OF_A_THREAD", 100)
    matrix = random_matrix(40, 70, 4)
    matrix.data[matrix.indptr[7] : matrix.indptr[9]] = 0
    matrix.eliminate_zeros()  # rows without an entry
    operator = SparseOperator(matrix.astype(np.float64 if dtype == torch.float64 else np.float32))
    x = torch.randn(70, width, dtype=dtype)
    products = []
    for threads in (1, 2, 3, 7):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        products.append(csr_product(operator.tensor, x))
    torch.testing.assert_close(products[0], torch.from_numpy(operator.matrix.toarray()) @ x)
    assert all(product.equal(products[0]) for product in products)


def test_a_product_takes_any_layout_and_a_matrix_without_entries():
    matrix = random_matrix(9, 6, 5)
    x = torch.randn(4, 6).T
    torch.testing.assert_close(
        csr_product(SparseOperator(matrix).tensor, x), torch.from_numpy(matrix.toarray()) @ x
    )
    empty = SparseOperator(sp.csr_array((3, 6), dtype=np.float32)).tensor
    assert csr_product(empty, x).equal(torch.zeros(3, 4))
