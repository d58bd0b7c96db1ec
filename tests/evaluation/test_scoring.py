"""Scores of a supervised method: trained anew on each split, its own head beside the probe."""

import json

import numpy as np
import pytest

from nodejepa.data import Dataset
from nodejepa.errors import EvaluationError
from nodejepa.evaluation.scoring import score_method, score_run
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
    tests = [row["test_accuracy"] for row in written["head"]["scores"]]
    assert written["head"]["test_accuracy_mean"] == pytest.approx(np.mean(tests))
    assert written["head"]["test_accuracy_std"] == pytest.approx(np.std(tests, ddof=1))
    assert written["config"]["training"]["epochs"] == 3


def test_other_methods_have_no_head(dataset):
    assert "head" not in score_method(dataset, "sgc", [3], split="5-5").to_dict()


def test_a_run_trained_with_labels_is_not_probed_on_other_splits(dataset, tmp_path):
    split = dataset.split("5-5", seed=0)
    SupervisedGCN(**SMALL).fit(dataset.graph, labels=dataset.labels, split=split, out=tmp_path)
    with pytest.raises(EvaluationError, match=r'test labels of other splits.*method="supervised-gcn"'):
        score_run(dataset, tmp_path, [1], split="5-5")


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
