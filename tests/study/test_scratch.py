"""A network from random weights is trained once for all methods that share it; it scores as finetune says."""

from dataclasses import asdict
from pathlib import Path

import pytest

from nodejepa.data import load_dataset, make_split
from nodejepa.evaluation import FinetuneConfig, finetune
from nodejepa.methods import make_estimator
from nodejepa.study import measure as encoder_store
from nodejepa.study.measure import network_hash, scratch_score
from nodejepa.training.task import TrainingConfig

SHORT = FinetuneConfig(training=TrainingConfig(epochs=4))
DATASET = load_dataset("digits")
SPLIT = make_split("20-30", DATASET.labels, seed=42)


def fitted(method: str, **settings: object):
    overrides = {"training.epochs": 1, **settings}
    return make_estimator(method, preset="paper", settings=overrides, seed=42).fit(DATASET.graph)


@pytest.mark.slow
def test_the_score_is_that_of_finetune_and_is_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_store, "FinetuneConfig", lambda: SHORT)
    dgi, patchjepa = fitted("dgi"), fitted("patchjepa")
    score = scratch_score(dgi, DATASET, SPLIT, 42, tmp_path)
    whole = finetune(patchjepa, DATASET.graph, DATASET.labels, SPLIT, config=SHORT, seed=42)
    expected = (whole.scratch_test_accuracy, whole.scratch_val_accuracy, whole.scratch_epochs)
    assert tuple(asdict(score).values()) == expected

    def trained_again(*_: object, **__: object) -> None:
        raise AssertionError("it is there already")

    monkeypatch.setattr(encoder_store, "tuning", trained_again)
    assert scratch_score(patchjepa, DATASET, SPLIT, 42, tmp_path) == score
    for other in (make_split("20-30", DATASET.labels, seed=43), make_split("5-30", DATASET.labels, seed=42)):
        with pytest.raises(AssertionError):
            scratch_score(patchjepa, DATASET, other, 42, tmp_path)
    with pytest.raises(AssertionError):
        scratch_score(patchjepa, DATASET, SPLIT, 43, tmp_path)


@pytest.mark.slow
def test_every_setting_of_a_network_tells() -> None:
    def of(**settings: object) -> str:
        return network_hash(encoder_store.fresh_encoder(fitted("dgi", **settings), 42))

    hashes = [
        of(),
        of(**{"encoder.hidden": 32}),
        of(**{"encoder.row_normalise": True}),
        of(**{"encoder.activation": "elu"}),
        of(**{"encoder.norm": "batch"}),
    ]
    assert len(set(hashes)) == len(hashes)
    assert of() == hashes[0]
