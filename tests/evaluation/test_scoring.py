"""Scores of a supervised method: trained anew on each split, its own head beside the probe."""

import json

import numpy as np
import pytest

from nodejepa.data import Dataset, Split
from nodejepa.errors import EvaluationError
from nodejepa.evaluation.scoring import HeadResult, HeadScore, score_head, score_method, score_run
from nodejepa.graph import Graph
from nodejepa.methods import METHODS, SupervisedGCN

SMALL = {"encoder.hidden": 8, "training.epochs": 3}


@pytest.fixture(scope="module")
def dataset(toy_graph):
    return Dataset("toy", toy_graph, np.repeat([0, 1], 30))


@pytest.mark.slow
def test_every_seed_trains_on_its_own_split(dataset):
    score = score_method(dataset, "supervised-gcn", [3, 4], settings=SMALL, split="5-5")
    written = json.loads(json.dumps(score.to_dict()))
    assert [row["seed"] for row in written["head"]["scores"]] == [3, 4]
    for row in written["head"]["scores"]:
        split = dataset.split("5-5", seed=row["seed"])
        made = SupervisedGCN(seed=row["seed"], **SMALL).fit(dataset.graph, labels=dataset.labels, split=split)
        right = made.predict(dataset.graph) == dataset.labels
        assert row["test_accuracy"] == pytest.approx(100 * right[split.test].mean())
        assert row["val_accuracy"] == pytest.approx(100 * right[split.val].mean())
        assert row["epochs"] == 3
    assert written["config"]["training"]["epochs"] == 3


def test_other_methods_have_no_head(dataset):
    assert "head" not in score_method(dataset, "sgc", [3], split="5-5").to_dict()


def test_mean_and_spread_of_heads():
    one, other = HeadScore(1, 90.0, 80.0, 81.0, 5), HeadScore(2, 92.0, 84.0, 86.0, 6)
    assert HeadResult((one, other)).mean_std("test") == pytest.approx((82.0, 8**0.5))
    assert HeadResult((one, other)).mean_std("val") == pytest.approx((91.0, 2**0.5))
    assert HeadResult((one, other)).to_dict()["test_accuracy_connected_mean"] == 83.5
    assert HeadResult((one,)).to_dict()["test_accuracy_std"] is None


def test_a_run_trained_with_labels_is_not_probed_on_other_splits(dataset, tmp_path):
    split = dataset.split("5-5", seed=0)
    SupervisedGCN(**SMALL).fit(dataset.graph, labels=dataset.labels, split=split, out=tmp_path)
    with pytest.raises(EvaluationError, match=r'test labels of other splits.*method="supervised-gcn"'):
        score_run(dataset, tmp_path, [1], split="5-5")


def test_the_largest_component_is_scored_apart():
    graph = Graph.from_edges([0, 1, 2, 4], [1, 2, 3, 5], features=np.eye(8), num_nodes=8)
    labels = np.array([0, 1, 0, 1, 0, 1, 0, 1])

    class Alternating:
        history_ = (1, 2)

        def predict(self, _):
            return np.array([0, 1, 0, 0, 1, 0, 0, 1])  # wrong: 3, 4, 5

    split = Split("x", 7, train=[0], val=[1], test=[2, 3, 4, 5, 6])
    score = score_head(Alternating(), Dataset("x", graph, labels), split)
    assert score == HeadScore(7, 100.0, 40.0, 50.0, 2)
    outside = Split("x", 7, train=[0], val=[1], test=[5, 6])
    assert score_head(Alternating(), Dataset("x", graph, labels), outside).test_accuracy_connected is None


@pytest.mark.parametrize(("method", "fits"), [("sgc", 1), ("random-gcn", 2)])
def test_only_methods_with_a_seed_are_embedded_again(method, fits, dataset, monkeypatch):
    baseline, seen = METHODS[method], []
    fit = baseline.fit
    monkeypatch.setattr(
        baseline, "fit", lambda self, *given, **named: seen.append(self) or fit(self, *given, **named)
    )
    assert len(score_method(dataset, method, [1, 2], split="5-5").result.scores) == 2
    assert len(seen) == fits


@pytest.mark.slow
def test_a_score_is_reproducible(dataset):
    one, other = (score_method(dataset, "random-gcn", [3, 4], split="5-5").to_dict() for _ in range(2))
    assert one["scores"] == other["scores"]
    assert one["diagnostics"] == other["diagnostics"]
    assert [score["seed"] for score in one["scores"]] == [3, 4]
