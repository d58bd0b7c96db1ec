"""The demo: the built-in graph as files, and a comparison of methods on them."""

from __future__ import annotations

import numpy as np
import pytest

from nodejepa.data import load_dataset
from nodejepa.demo import DEMO_METHODS, run_demo, write_as_csv
from nodejepa.methods import METHODS, UNTRAINED
from nodejepa.tables import read_embeddings, read_graph


@pytest.mark.slow
def test_the_demo_leaves_a_graph_its_embeddings_and_a_page(tmp_path, monkeypatch, small_digits):
    monkeypatch.setattr("nodejepa.demo.load_dataset", lambda _: small_digits)
    (tmp_path / "report.html").write_text("of the last time")
    found = run_demo(tmp_path, methods=("raw", "nodejepa"), epochs=1)
    assert [row.method for row in found.rows] == ["linear-jepa", "raw", "nodejepa", "edges-only"]
    assert found.recommendation.by_labels
    assert "1 of its 300 epochs" in found.notes[0]
    loaded = read_graph(tmp_path / "edges.csv", nodes=tmp_path / "nodes.csv", labels="label")
    stored = read_embeddings(tmp_path / "embeddings.parquet")
    assert stored.ids.tolist() == loaded.graph.node_ids.tolist()
    page = (tmp_path / "report.html").read_text()
    for shown in (
        "1 of its 300 epochs",
        "How NodeJEPA was trained",
        "loss and its terms",
        "The mask of one training step",
    ):
        assert shown in page


def test_the_demo_compares_learned_methods_with_untrained_ones():
    learned = {name for name in DEMO_METHODS if METHODS[name].trained}
    assert learned == {"linear-jepa", "nodejepa", "patchjepa"}
    assert set(DEMO_METHODS) - learned <= set(UNTRAINED)


@pytest.mark.slow
def test_the_demo_graph_comes_back_from_its_files(tmp_path):
    digits = load_dataset("digits")
    edges, nodes = write_as_csv(digits, tmp_path)
    loaded = read_graph(edges, nodes=nodes, labels="label")
    assert loaded.graph.node_ids[17] == "digits-0017"
    assert (loaded.graph.adjacency != digits.graph.adjacency).nnz == 0
    assert loaded.class_names == tuple("0123456789")
    np.testing.assert_array_equal(loaded.labels, digits.labels)
