"""Files that are self-consistent and wrong end in a clear error; so do absurd sizes and deleted folders."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from tests.interrupted import interrupted_after

from nodejepa.errors import CheckpointError, ConfigError, NodeJEPAError, TrainingError
from nodejepa.files import atomic_path, parse_json
from nodejepa.methods import load_method, make_method
from nodejepa.training.logger import Logging
from nodejepa.training.run import Run, load_tensors, save_tensors

SMALL = {"encoder.hidden": 8, "predictor.hidden": 8, "epochs": 3}


def fitted(graph, folder, **options):
    return make_method("nodejepa", preset="paper", settings=SMALL).fit(graph, out=folder, **options)


@pytest.fixture(scope="module")
def model(toy_graph, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    fitted(toy_graph, folder)
    return folder / "model.safetensors"


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[" * 5000 + "]" * 5000,
        "9" * 5000,
        "NaN",
        '"\\ud800"',
        "{",
        b"\xff\xfe\xfa",
    ],
    ids=lambda text: str(text[:10]),
)
def test_json_that_others_could_not_read_is_refused_in_one_way(text):
    with pytest.raises(ValueError, match=r".+"):
        parse_json(text)


def test_json_that_is_fine_stays_what_it_is():
    value = {"a": [1, -(1 << 63), (1 << 64) - 1, 1.5, None, True, "é \U0001f600"]}
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.parametrize(
    "change",
    [
        {"seed": "x"},
        {"seed": None},
        {"in_dim": 10**12},
        {"in_dim": -1},
        {"in_dim": 0},
        {"in_dim": []},
        {"history": None},
        {"history": [1]},
        {"history": [{"epoch": 1, "seconds": "long", "peak_memory_mb": 1}]},
        {"config": None},
        {"config": []},
        {"config": {"encoder": {"hidden": 10**11}}},
        {"config": {"encoder": {"layers": 10**5}}},
        {"config": {"encoder": {"hidden": 60_000}}},
        {"method": None},
        {"method": 7},
        {"method": {}},
    ],
    ids=str,
)
def test_a_model_with_wrong_facts_under_a_right_digest_is_refused(model, tmp_path, change):
    tensors, facts = load_tensors(model)
    save_tensors(tmp_path / "model.safetensors", tensors, facts | change)
    with pytest.raises(NodeJEPAError):
        load_method(tmp_path)


def test_facts_that_are_no_object_are_refused(model, tmp_path, monkeypatch):
    tensors, _ = load_tensors(model)
    with monkeypatch.context() as patch:
        patch.setattr("nodejepa.training.run.dict", lambda _: ["deep", 1], raising=False)
        save_tensors(tmp_path / "a.safetensors", tensors, {})
    with pytest.raises(CheckpointError, match="must be a table"):
        load_tensors(tmp_path / "a.safetensors")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int32])
def test_weights_of_another_type_are_not_converted_silently(model, tmp_path, dtype):
    tensors, facts = load_tensors(model)
    name = next(iter(tensors))
    save_tensors(tmp_path / "model.safetensors", tensors | {name: tensors[name].to(dtype)}, facts)
    with pytest.raises(CheckpointError, match="another one"):
        load_method(tmp_path)


@pytest.fixture(scope="module")
def stopped(toy_graph, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stopped")
    with interrupted_after(3):
        fitted(toy_graph, folder, logging=Logging(checkpoint_epochs=1))
    return folder


@pytest.fixture
def checkpoint(stopped, tmp_path):
    """A run that was stopped in its third epoch."""
    return shutil.copytree(stopped, tmp_path / "run") / "checkpoint.safetensors"


WOUNDS = {  # of tensors and facts; ``state`` is the name of a tensor of the optimiser
    "no history": lambda tensors, facts, state: facts.pop("history"),  # noqa: ARG005
    "no loss": lambda tensors, facts, state: facts["history"][-1].pop("loss"),  # noqa: ARG005
    "history of text": lambda tensors, facts, state: facts.update(history="none"),  # noqa: ARG005
    "optimiser of another": lambda tensors, facts, state: tensors.update({state: torch.zeros(3, 5, 7)}),  # noqa: ARG005
    "optimiser without number": lambda tensors, *more: tensors.update({"optimiser.x": tensors.pop(more[1])}),
    "optimiser with a gap": lambda tensors, facts, state: tensors.pop(state),  # noqa: ARG005
    "wrong type": lambda tensors, *_: tensors.update({"task.token": tensors["task.token"].double()}),
}


@pytest.mark.parametrize("wound", WOUNDS)
def test_a_checkpoint_with_a_wrong_state_is_refused(checkpoint, toy_graph, wound):
    tensors, facts = load_tensors(checkpoint)
    state = next(name for name in tensors if name.startswith("optimiser.") and tensors[name].ndim)
    WOUNDS[wound](tensors, facts, state)
    save_tensors(checkpoint, tensors, facts)
    with pytest.raises(CheckpointError):
        fitted(toy_graph, checkpoint.parent, resume=True)


def test_leftovers_of_a_kill_are_removed(checkpoint, toy_graph):
    half = checkpoint.with_name(".checkpoint.safetensors.abcd1234.safetensors")
    mine = checkpoint.with_name(".checkpoint.safetensors.bak")
    for path in (half, mine):
        path.write_bytes(b"half")
    fitted(toy_graph, checkpoint.parent, resume=True)
    assert not half.exists()
    assert mine.exists()


def test_a_folder_deleted_under_a_run_ends_badly(toy_graph, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    monkeypatch.setattr(Run, "append", lambda *_: shutil.rmtree(folder, ignore_errors=True))
    for epochs in (1, 100):  # between checkpoints at once, or at the very end
        with pytest.raises(TrainingError, match="deleted or emptied"):
            fitted(toy_graph, folder, logging=Logging(checkpoint_epochs=epochs))
        assert not (folder / "model.safetensors").exists()


@pytest.mark.parametrize(
    "setting",
    ["encoder.hidden=99999999999", "encoder.layers=100000", "predictor.spectral_dim=100000"],
)
def test_absurd_sizes_are_refused_before_any_work(setting):
    name, _, value = setting.partition("=")
    with pytest.raises(ConfigError, match=f"{name} is '{value}'.*at most"):
        make_method("nodejepa", preset="paper", settings={name: value})


def test_atomic_names_are_what_leftovers_are_looked_for_by(tmp_path):
    with atomic_path(tmp_path / "a[1].json") as temporary:
        temporary.write_text("{}")
        assert temporary in tmp_path.glob(".a[[]1].json.????????.json")
