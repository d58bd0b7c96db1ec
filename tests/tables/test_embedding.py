"""Fitting and embedding on disk equals fitting and embedding in memory."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from nodejepa.errors import DataError, GraphError
from nodejepa.graph_checks import read_features
from nodejepa.methods import UNTRAINED, LinearJEPA, make_method
from nodejepa.methods.closed_form import Sums, second_moments
from nodejepa.nn.encoders import make_encoder
from nodejepa.nn.inputs import WholeGraph
from nodejepa.nn.stored_inputs import StoredInputs
from nodejepa.structure.partition import random_parts
from nodejepa.tables import StoredGraph, read_graph
from nodejepa.tables import table as io_table
from nodejepa.tables.ordered import ordered_by_part
from nodejepa.tables.prepare import prepare_store
from nodejepa.tables.store import DENSE, SPARSE
from reference.matrices import dense

BOTH = pytest.mark.parametrize(
    ("columns", "directed"),
    [(20, False), (70, True), ("sparse", False)],
    ids=["narrow", "directed", "sparse"],
)


@BOTH
def test_linear_jepa_of_one_block_has_the_bits_of_the_graph_in_memory(make_graph, columns, directed):
    graph, store = make_graph(columns, directed, directed)
    ours, theirs = LinearJEPA().fit(store), LinearJEPA().fit(graph)
    assert ours.findings_ == theirs.findings_
    for name, value in theirs.encoder_.state_dict().items():
        assert torch.equal(ours.encoder_.state_dict()[name], value), name
    np.testing.assert_array_equal(ours.transform(store)[:], theirs.transform(graph))


@BOTH
@pytest.mark.usefixtures("small_blocks")
def test_sums_over_blocks_are_those_over_all_rows(make_graph, columns, directed):
    graph, store = make_graph(columns, directed, directed)
    ours, theirs = Sums(StoredInputs(store)), Sums(WholeGraph(graph))
    assert len(ours.spans) > 3
    v = torch.eye(graph.num_features)
    for name in ("second", "cross"):
        wanted = getattr(theirs, name)(v)
        found = getattr(ours, name)(v).float()
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5 * float(wanted.abs().max()))
    for mine, wanted in zip(ours.means(), theirs.means(), strict=True):
        torch.testing.assert_close(mine.float(), wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
def test_linear_jepa_by_blocks_and_groups_of_columns(make_graph):
    graph, store = make_graph()
    theirs = LinearJEPA().fit(graph)
    z = theirs.transform(graph)
    # the same encoder, by groups of columns
    np.testing.assert_allclose(theirs.transform(store)[:], z, rtol=1e-5, atol=1e-6 * abs(z).max())
    ours = LinearJEPA().fit(store)
    found, wanted = ours.findings_, theirs.findings_
    np.testing.assert_allclose(found.rho, wanted.rho, atol=1e-5)
    assert (found.shrinkage, found.blocks) == (wanted.shrinkage, wanted.blocks)
    # directions that are equally loud may be turned among themselves: distances between nodes may not change
    mine = ours.transform(store)[:]
    np.testing.assert_allclose(mine @ mine.T, z @ z.T, atol=1e-4 * abs(z @ z.T).max())


@pytest.mark.parametrize("kind", ["gcn", "sage", "gin", "gat", "mlp"])
@pytest.mark.parametrize("row_normalise", [False, True])
@BOTH
@pytest.mark.usefixtures("small_blocks")
def test_layers_by_blocks_are_those_of_the_whole_graph(
    make_graph, tmp_path, kind, row_normalise, columns, directed
):
    graph, store = make_graph(columns, directed, directed)
    torch.manual_seed(0)
    encoder = make_encoder(kind, graph.num_features, hidden=64, layers=3, row_normalise=row_normalise).eval()
    inputs = StoredInputs(store, tmp_path)
    with torch.no_grad():
        ours = encoder.embed(inputs).numpy()
        z = encoder.embed(WholeGraph(graph)).numpy()
    assert ours.shape == z.shape
    if kind == "gcn":
        np.testing.assert_array_equal(ours[:], z)
    np.testing.assert_allclose(ours[:], z, rtol=1e-4, atol=1e-6 * abs(z).max())
    np.testing.assert_array_equal(ours[40:60], ours[:][40:60])
    assert not [*tmp_path.glob(".*")], "files that a killed process would leave"


@pytest.mark.parametrize("name", UNTRAINED)
@BOTH
@pytest.mark.usefixtures("small_blocks")
def test_baselines_by_blocks_have_the_bits_of_the_whole_graph(make_graph, tmp_path, name, columns, directed):
    graph, store = make_graph(columns, directed, directed)
    z = dense(make_method(name, seed=3).fit(graph).transform(graph))
    ours = make_method(name, seed=3).fit(store).transform(store, scratch=tmp_path)
    if (name, columns) == ("equal-hops", "sparse"):  # the scale of a hop is summed in another order
        np.testing.assert_allclose(ours[:], z, rtol=1e-6)
    else:
        np.testing.assert_array_equal(ours[:], z)
    some = np.array([0, 3, 149, 150, 600, 699])
    assert sp.issparse(ours[some]) == (name == "raw" and columns == "sparse"), "scored rows stay sparse"
    np.testing.assert_array_equal(dense(ours[some]), ours[:][some])


def test_fewer_arrays_at_a_time_are_wider_and_groups_of_columns_even(make_graph):
    _, store = make_graph()
    inputs = StoredInputs(store, memory=700 * 4 * 5 * 20)

    def widths(width):
        return [group.stop - group.start for group in inputs.workspace.column_groups(width)]

    assert widths(128) == [16] * 8
    with inputs.workspace.holding(3):
        assert widths(128) == [32] * 4
        with inputs.workspace.holding(1):
            assert widths(128) == [64, 64], "not 96 and 32"
            assert widths(100) == [64, 36]
        assert widths(70) == [32, 32, 6]
    assert widths(128) == [16] * 8
    assert [*StoredInputs(store, memory=1).workspace.column_groups(3)] == [slice(i, i + 1) for i in range(3)]


def test_rows_of_an_operator_are_made_once(make_graph, monkeypatch):
    graph, store = make_graph(70, True, True)
    made, spans = [], [*StoredGraph.spans(store, 150)]
    monkeypatch.setattr(StoredGraph, "spans", lambda _: iter(spans))
    rows = StoredInputs.operator_rows
    monkeypatch.setattr(
        StoredInputs, "operator_rows", lambda self, *asked: made.append(asked) or rows(self, *asked)
    )
    inputs, x = StoredInputs(store), torch.randn(700, 5, generator=torch.Generator().manual_seed(0))
    wanted = WholeGraph(graph).propagation
    assert torch.equal(inputs.propagation(inputs.propagation(x)), wanted(wanted(x)))
    assert made == [("propagation", *span) for span in spans]
    assert len(made) > 3


def test_moments_refuse_a_graph_without_edges(tmp_path):
    (tmp_path / "e.csv").write_text("source,target\na,a\n")
    (tmp_path / "n.csv").write_text("id,x,y\na,1,2\nb,2,7\n")
    store = prepare_store(tmp_path / "e.csv", tmp_path / "n.csv", out=tmp_path / "g.store")
    with pytest.raises(Exception, match="no edges"):
        second_moments(StoredInputs(store), basis=4)


# ---------------------------------------------------------------- wide features of mostly zeros


@pytest.mark.parametrize(
    ("numbers", "categories", "filled"),
    [(0, 60, "all"), (3, 30, "all"), (40, 60, "all"), (60, 60, "first"), (60, 60, "last")],
    ids=["sparse", "some-numbers", "dense", "dense-at-first", "sparse-at-first"],
)
def test_the_form_is_that_in_memory_whatever_the_first_rows_look_like(
    tmp_path, monkeypatch, write_sparse, numbers, categories, filled
):
    monkeypatch.setattr(io_table, "_BATCH_CELLS", 1024)
    files = write_sparse(tmp_path, numbers=numbers, categories=categories, filled=filled)
    options = {"scale": "none"}  # so that one batch or many make no difference
    graph = read_graph(*files, **options).graph
    store = prepare_store(*files, out=tmp_path / "g.store", **options)
    assert store.content_hash == graph.content_hash
    assert (store.manifest.feature_entries is not None) == sp.issparse(graph.features)
    names = {path.name for path in store.folder.iterdir()}
    assert names & {DENSE, *SPARSE} == (set(SPARSE) if sp.issparse(graph.features) else {DENSE})


@pytest.mark.usefixtures("small_blocks")
def test_a_part_is_one_stretch_of_the_copy(make_graph):
    graph, store = make_graph("sparse")
    part = random_parts(graph, 5)
    mine, wanted = ordered_by_part(store, part), np.argsort(part, kind="stable")
    assert mine.sparse_features
    assert (mine.features(0, graph.num_nodes) != graph.features[wanted]).nnz == 0


@pytest.mark.usefixtures("small_blocks")
def test_nobody_reads_all_of_it(make_graph, monkeypatch):
    _, store = make_graph("sparse")
    read = StoredGraph.feature_rows

    def some(self, low, high):
        assert high - low <= 200
        return read(self, low, high)

    monkeypatch.setattr(StoredGraph, "feature_rows", some)
    model = LinearJEPA().fit(store)
    assert model.transform(store).shape == (700, model.encoder_.out_dim)


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
def test_rows_of_a_batch_are_counted_from_the_first_of_all(form):
    with pytest.raises(GraphError, match="row 11, column 1 is inf"):
        read_features(form([[1.0, 0.0], [0.0, np.inf]]), 10)


def test_flipped_columns_are_found(tmp_path, write_sparse):
    store = prepare_store(*write_sparse(tmp_path), out=tmp_path / "g.store")
    path = store.folder / SPARSE[1]
    columns = np.fromfile(path, dtype=np.int32)
    columns[100] = 1 << 30
    columns.tofile(path)
    with pytest.raises(DataError, match="of no column"):
        StoredGraph(store.folder).feature_rows(0, 700)
    pointers = np.fromfile(store.folder / SPARSE[0], dtype=np.int64)
    pointers[5] = 0
    pointers.tofile(store.folder / SPARSE[0])
    with pytest.raises(DataError, match="where the next begins"):
        StoredGraph(store.folder)
