"""The supervised GCN's table in docs/log.md is its committed records, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodejepa.methods import SupervisedGCN
from nodejepa.methods.migrations import config_of_today
from nodejepa.study.records import read_records

ROOT = Path(__file__).parents[2]
LOG = (ROOT / "docs" / "log.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("dataset", ["photo", "computers"])
def test_the_supervised_row_is_its_record(dataset):
    path = ROOT / "studies" / "official" / f"supervised-gcn-{dataset}.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    head = found["head"]
    val = f"{head['val_accuracy_mean']:.2f} ± {head['val_accuracy_std']:.2f}"
    test = f"{head['test_accuracy_mean']:.2f} ± {head['test_accuracy_std']:.2f}"
    assert f"| {dataset} | {val} | {test} | {head['test_accuracy_connected_mean']:.2f} |" in LOG
    assert [score["seed"] for score in head["scores"]] == found["seeds"] == [42, 43, 44, 45, 46]
    today = config_of_today("supervised-gcn", SupervisedGCN.config_class, found["config"])
    assert today == SupervisedGCN.preset("official", dataset)
    measured_again = {
        record["seed"]: record["head_test_accuracy"]
        for record in read_records(path.parent)
        if (record["method"], record["dataset"]) == ("supervised-gcn", dataset)
    }
    assert measured_again == {score["seed"]: score["test_accuracy"] for score in head["scores"]}
