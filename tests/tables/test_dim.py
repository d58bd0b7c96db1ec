"""Fewer columns, groups and maps of embeddings that nobody holds: as of the graph in memory."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from nodejepa import diagnostics
from nodejepa.diagnostics import PrincipalAxes, mean_and_std
from nodejepa.errors import ConfigError
from nodejepa.methods import load_method, make_method
from nodejepa.tables import read_embeddings
from nodejepa.workflow import embed_graph

SMALL = {"encoder.hidden": 8, "predictor.hidden": 8, "epochs": 1, "training.parts": 4}


class Rows:
    """An array that is only read by rows, and remembers how many at a time."""

    def __init__(self, array):
        self.array, self.shape, self.most = array, array.shape, 0

    def __getitem__(self, rows):
        found = self.array[rows]
        self.most = max(self.most, len(found))
        return found


def groups(count=4, size=250, columns=24, spread=0.25, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat(np.arange(count), size))
    centres = np.linalg.qr(rng.normal(size=(columns, columns)))[0][:count]
    return (centres[truth] + spread * rng.normal(size=(len(truth), columns))).astype(np.float32)


@pytest.fixture
def few_at_a_time(monkeypatch):
    monkeypatch.setattr(diagnostics, "_BLOCK_ELEMENTS", 24 * 30)
    monkeypatch.setattr(diagnostics, "_READ_ELEMENTS", 24 * 100)


@pytest.mark.usefixtures("few_at_a_time")
def test_axes_of_rows_on_disk_have_the_bits_of_those_in_memory():
    z = groups()
    tall = Rows(z)
    for ours, theirs in zip(mean_and_std(tall), mean_and_std(z), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    ours, theirs = PrincipalAxes.of(tall, 5), PrincipalAxes.of(z, 5)
    np.testing.assert_array_equal(ours.axes, theirs.axes)
    assert tall.most == 90, "whole blocks of 30 rows"
    # a naive twin: singular vectors of the whole
    wanted = np.linalg.svd(z - z.mean(axis=0, dtype=np.float64), full_matrices=False)[2][:5].T
    np.testing.assert_allclose(abs(np.sum(wanted * ours.axes, axis=0)), 1, atol=1e-6)


def test_axes_of_more_columns_than_a_covariance_may_have(monkeypatch):
    z = groups()
    wanted = PrincipalAxes.of(z, 3)
    monkeypatch.setattr(diagnostics, "_MAX_COVARIANCE", 10)
    for rows in (z, sp.csr_array(z), Rows(z)):
        np.testing.assert_allclose(PrincipalAxes.of(rows, 3).axes, wanted.axes, atol=1e-6)
    # of many rows on disk a sample is enough
    monkeypatch.setattr(diagnostics, "_SAMPLED_ROWS", 640)
    few = Rows(z)
    across = wanted.axes.T @ PrincipalAxes.of(few, 3).axes
    assert np.linalg.svd(across, compute_uv=False) == pytest.approx(1, abs=0.02)
    assert few.most == 640


@pytest.mark.slow
@pytest.mark.parametrize("method", ["raw", "walk", "random-gcn", "linear-jepa", "nodejepa"])
@pytest.mark.usefixtures("small_blocks")
def test_a_model_of_fewer_columns(make_graph, tmp_path, method):
    graph, store = make_graph()
    settings = SMALL if method == "nodejepa" else {}
    made = make_method(method, settings=settings)
    made.max_columns = 3
    z = made.fit(store, out=tmp_path / "run").transform(store)
    assert z.shape == (700, 3)
    whole = make_method(method, settings=settings).fit(store).transform(store)[:]
    wanted = PrincipalAxes.of(whole, 3).project(whole)
    np.testing.assert_allclose(z[:], wanted, atol=1e-5 * abs(wanted).max())
    np.testing.assert_allclose(z[200:300], wanted[200:300], atol=1e-5 * abs(wanted).max())
    np.testing.assert_allclose(z[np.array([3, 99])], wanted[[3, 99]], atol=1e-5 * abs(wanted).max())
    # what was saved gives the same columns, on disk and in memory
    again = load_method(tmp_path / "run")
    np.testing.assert_array_equal(again.transform(store)[:], z[:])
    np.testing.assert_allclose(again.transform(graph), wanted, atol=1e-4 * abs(wanted).max())


@pytest.mark.slow
def test_a_model_of_fewer_columns_that_was_made_in_memory_keeps_them_on_a_store(make_graph):
    graph, store = make_graph()
    made = make_method("linear-jepa")
    made.max_columns = 5
    z = made.fit(graph).transform(graph)
    np.testing.assert_allclose(made.transform(store)[:], z, atol=1e-6 * abs(z).max())


@pytest.mark.slow
def test_embed_graph_of_a_store_with_dim_is_that_of_its_files(run, make_graph, tmp_path):
    _, store = make_graph()
    files = [store.folder.parent / name for name in ("e.parquet", "n.parquet")]
    as_a_store = {"dim": 4, "method": "sgc-1", "use": "columns"}
    theirs = embed_graph(*files, out=tmp_path / "m.parquet", report=False, **as_a_store)
    asked = ("--edges", store.folder, "--out", tmp_path / "z.parquet", "--dim", "4", "--method", "sgc-1")
    run.ok("embed-graph", *asked, "--no-report")
    ours, table = json.loads((tmp_path / "z.json").read_text()), pq.read_table(tmp_path / "z.parquet")
    assert table.column_names == pq.read_table(tmp_path / "m.parquet").column_names
    assert ours["dim"] == 4
    z = read_embeddings(tmp_path / "z.parquet").matrix
    np.testing.assert_allclose(z, theirs.embeddings, atol=1e-5 * abs(z).max())


def test_what_cannot_be_is_refused_before_the_work(make_graph, tmp_path):
    _, store = make_graph()
    with pytest.raises(ConfigError, match="dim is 0"):
        embed_graph(store.folder, out=tmp_path / "z.parquet", dim=0)
    assert [*tmp_path.iterdir()] == []
