"""A run that is broken off after any epoch ends in the bits of an undisturbed one."""

import json

import numpy as np
import pytest
from tests.interrupted import interrupted_after

from nodejepa.data import per_class_split
from nodejepa.methods import load_method, make_method
from nodejepa.training.logger import Logging

LABELS = np.repeat([0, 1], 30)  # the communities of toy_graph
BATCH = {"encoder.out_dim": 8, "predictor.hidden": 8}
RUNS = {
    "nodejepa": ("nodejepa", "paper", {"predictor.hidden": 8}),
    "from the closed form": ("nodejepa", "linear-start", {"predictor.hidden": 8, "lr": 0.01}),
    "patchjepa": ("patchjepa", "paper", {"predictor.hidden": 8, "patches.count": 6}),
    "batch normalisation": ("bgrl", "official", BATCH),
    "supervised": ("supervised-gcn", "paper", {"head.feature_dropout": 0.3, "lr": 0.05}),
    "supervised, batch": ("supervised-gcn", "paper", {"norm": "batch", "lr": 0.05}),
}


@pytest.mark.slow
@pytest.mark.parametrize("stop", [1, 4])
@pytest.mark.parametrize("run", RUNS)
def test_it_ends_in_the_same_bits(toy_graph, tmp_path, run, stop):
    name, preset, settings = RUNS[run]
    labels = {"labels": LABELS, "split": per_class_split(LABELS, train=5, val=5, seed=0)}
    given = {"logging": Logging(checkpoint_epochs=1)} | (labels if name == "supervised-gcn" else {})

    def fit(**options):
        small = {"encoder.hidden": 8, "epochs": 6} | settings
        return make_method(name, preset=preset, seed=3, settings=small).fit(toy_graph, **given, **options)

    whole = fit()
    with interrupted_after(stop):
        fit(out=tmp_path)
    assert not (tmp_path / "model.safetensors").exists()
    again = fit(out=tmp_path, resume=True)
    for model in (again, load_method(tmp_path)):
        np.testing.assert_array_equal(model.transform(toy_graph), whole.transform(toy_graph))
    told = [json.loads(line) for line in (tmp_path / "history.jsonl").read_text().splitlines()]
    assert [record["epoch"] for record in told] == list(range(1, 7))
    for figure in {"loss", "val_loss"} & whole.history_[0].keys():
        assert [r[figure] for r in again.history_] == [r[figure] for r in whole.history_]
