"""The demo: scores, files and their report; and the scoring behind it."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow.parquet as pq
import pytest

import nodejepa.demo as demo_module
from nodejepa.data import Dataset, load_dataset
from nodejepa.demo import DEMO_METHODS, SHOTS, compare_with_floors, run_demo, write_as_csv
from nodejepa.evaluation.probe import ProbeResult, SplitScore
from nodejepa.evaluation.scoring import score_method
from nodejepa.methods import METHODS, UNTRAINED
from nodejepa.report import maps
from nodejepa.tables import read_graph


@pytest.mark.slow
def test_demo_scores_every_method_and_writes_its_files(tmp_path, monkeypatch):
    monkeypatch.setattr(maps, "MAX_NEIGHBOUR_POINTS", 50)
    demo = run_demo(tmp_path, methods=("raw", "sgc"), draws=1)
    raw, sgc = demo.rows
    for shots in SHOTS:
        assert sgc.few_shot[shots].test_accuracy_mean > raw.few_shot[shots].test_accuracy_mean > 50
    table = pq.read_table(sgc.path)
    assert table.column_names == ["id", *(f"z{j}" for j in range(64))]
    np.testing.assert_array_equal(table["z0"].to_numpy(), sgc.embeddings[:, 0])
    page = demo.report.read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert [chapter["title"] for chapter in data["chapters"]] == ["Scores", "raw", "sgc"]
    kinds = [[section["kind"] for section in chapter["sections"]] for chapter in data["chapters"]]
    assert kinds == [["text", "dots", "table"], *2 * [["text", "map", "text"]]]
    table, drawn = data["chapters"][0]["sections"][2], data["chapters"][2]["sections"][1]
    assert table["rows"][1][2][0] == f"{sgc.few_shot[SHOTS[0]].test_accuracy_mean:.1f} (1)"
    assert len(drawn["ids"]) == demo.dataset.graph.num_nodes
    predicted, labels = np.array(drawn["predicted"]), np.array(drawn["labels"])
    tested = predicted >= 0
    right = 100 * np.mean(predicted[tested] == labels[tested])
    assert right == pytest.approx(sgc.few_shot[20].scores[0].test_accuracy)


def test_the_demo_compares_a_learned_method_with_floors():
    learned = {name for name in DEMO_METHODS if METHODS[name].trained}
    assert learned == {"linear-jepa", "nodejepa", "patchjepa"}
    assert set(DEMO_METHODS) - learned <= set(UNTRAINED)


@pytest.mark.slow
def test_the_demo_shows_training_and_the_mask_of_a_step(tmp_path, monkeypatch):
    monkeypatch.setattr(maps, "MAX_NEIGHBOUR_POINTS", 50)
    monkeypatch.setattr(demo_module, "_EPOCHS", {"nodejepa": 2, "patchjepa": 2})
    demo = run_demo(tmp_path, methods=("nodejepa", "patchjepa", "sgc"), draws=1)
    page = demo.report.read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    _, node, patch, _ = data["chapters"]
    assert (node["title"], patch["title"]) == ("nodejepa, 2 of 300 epochs", "patchjepa, 2 of 300 epochs")
    assert [section["kind"] for section in node["sections"]] == ["text", "map", "curves", "map", "text"]
    assert [section["kind"] for section in patch["sections"]] == ["text", "map", "curves", "text"]
    mask = node["sections"][3]
    assert "mask of one training step" in mask["title"]
    assert sum(mask["labels"]) == round(0.5 * demo.dataset.graph.num_nodes)


@pytest.mark.slow
def test_the_demo_graph_comes_back_from_its_files(tmp_path):
    digits = load_dataset("digits")
    edges, nodes = write_as_csv(digits, tmp_path)
    loaded = read_graph(edges, nodes=nodes, labels="label")
    assert loaded.graph.node_ids[17] == "digits-0017"
    assert (loaded.graph.adjacency != digits.graph.adjacency).nnz == 0
    assert loaded.class_names == tuple("0123456789")
    np.testing.assert_array_equal(loaded.labels, digits.labels)


def scores(mean: float, spread: float) -> ProbeResult:
    """Two draws with this mean and standard deviation."""
    half = spread / 2**0.5
    values = (mean - half, mean + half)
    rows = (SplitScore("5-0", 0, "", None, v, "none", 1.0, True, v, v, None) for v in values)
    return ProbeResult("fair", tuple(rows))


@pytest.mark.parametrize(
    ("gains", "says", "shows"),
    [
        (
            (-0.7, 0.2),
            "0.7 points below random-gcn with 5 labels per class (within its standard deviation "
            "over draws) and 0.2 points above sgc with 20 labels per class (within its standard deviation",
            False,
        ),
        ((3.0, 0.2), "3.0 points above random-gcn with 5 labels per class (more than its", True),
        ((-3.0, -0.2), "3.0 points below random-gcn with 5 labels per class (more than its", False),
    ],
)
def test_the_demo_says_whether_training_beat_the_floors(gains, says, shows):
    results = {
        "nodejepa": {5: scores(90 + gains[0], 2), 20: scores(95 + gains[1], 2)},
        "sgc": {5: scores(89, 1), 20: scores(95, 1)},
        "random-gcn": {5: scores(90, 1), 20: scores(94, 1)},
    }
    text = compare_with_floors(results)
    assert says in text
    assert ("does not show that learning helps" in text) == (not shows)
    assert compare_with_floors({"sgc": results["sgc"]}) == ""


@pytest.mark.parametrize(("method", "fits"), [("sgc", 1), ("random-gcn", 2)])
def test_only_methods_with_a_seed_are_embedded_again(method, fits, toy_graph, monkeypatch):
    floor, seen = METHODS[method], []
    fit = floor.fit
    monkeypatch.setattr(
        floor, "fit", lambda self, *given, **named: seen.append(self) or fit(self, *given, **named)
    )
    dataset = Dataset("toy", toy_graph, np.repeat([0, 1], 30))
    assert len(score_method(dataset, method, [1, 2], split="5-5").result.scores) == 2
    assert len(seen) == fits


@pytest.mark.slow
def test_a_score_is_reproducible(toy_graph):
    dataset = Dataset("toy", toy_graph, np.repeat([0, 1], 30))
    one, other = (score_method(dataset, "random-gcn", [3, 4], split="5-5").to_dict() for _ in range(2))
    assert one["scores"] == other["scores"]
    assert one["diagnostics"] == other["diagnostics"]
    assert [score["seed"] for score in one["scores"]] == [3, 4]
