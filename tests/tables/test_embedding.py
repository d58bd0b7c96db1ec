"""Fitting and embedding on disk equals fitting and embedding in memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nodejepa.methods import UNTRAINED, LinearJEPA, make_method
from nodejepa.methods.closed_form import Sums, second_moments
from nodejepa.nn.encoders import make_encoder
from nodejepa.nn.inputs import WholeGraph
from nodejepa.nn.stored_inputs import StoredInputs
from nodejepa.tables import StoredGraph
from nodejepa.tables.prepare import prepare_store


@pytest.mark.slow
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("columns", [20, 70])
def test_linear_jepa_of_one_block_has_the_bits_of_the_graph_in_memory(make_graph, directed, columns):
    graph, store = make_graph(columns, directed, directed)
    ours, theirs = LinearJEPA().fit(store), LinearJEPA().fit(graph)
    assert ours.findings_ == theirs.findings_
    for name, value in theirs.encoder_.state_dict().items():
        assert torch.equal(ours.encoder_.state_dict()[name], value), name
    np.testing.assert_array_equal(ours.transform(store)[:], theirs.transform(graph))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.usefixtures("small_blocks")
def test_sums_over_blocks_are_those_over_all_rows(make_graph, directed):
    graph, store = make_graph(70, directed, True)
    ours, theirs = Sums(StoredInputs(store)), Sums(WholeGraph(graph))
    assert len(ours.spans) > 3
    v = torch.eye(70)
    for name in ("second", "cross"):
        wanted = getattr(theirs, name)(v)
        assert torch.allclose(
            getattr(ours, name)(v).float(), wanted, rtol=1e-5, atol=1e-5 * wanted.abs().max()
        )
    for mine, wanted in zip(ours.means(), theirs.means(), strict=True):
        assert torch.allclose(mine.float(), wanted, rtol=1e-5, atol=1e-3)


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
@pytest.mark.parametrize(("columns", "row_normalise"), [(20, False), (70, True)])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.usefixtures("small_blocks")
def test_layers_by_blocks_are_those_of_the_whole_graph(
    make_graph, tmp_path, kind, columns, row_normalise, directed
):
    graph, store = make_graph(columns, directed, directed)
    torch.manual_seed(0)
    encoder = make_encoder(kind, columns, hidden=64, layers=3, row_normalise=row_normalise).eval()
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
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.usefixtures("small_blocks")
def test_floors_by_blocks_have_the_bits_of_the_whole_graph(make_graph, tmp_path, name, directed):
    graph, store = make_graph(70, directed, directed)
    z = make_method(name, seed=3).fit(graph).transform(graph)
    ours = make_method(name, seed=3).fit(store).transform(store, scratch=tmp_path)
    np.testing.assert_array_equal(ours[:], z)


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
