"""The loop: direction, schedules, exact resume, damaged files, collapse and non-finite losses."""

import json
import math
import signal
import warnings

import numpy as np
import pytest
import torch
from tests.forked import Forked
from tests.interrupted import interrupted_after

from nodejepa.errors import CheckpointError, TrainingError
from nodejepa.graph import Graph
from nodejepa.methods.nodejepa import NodeJEPA
from nodejepa.methods.patchjepa import PatchJEPA
from nodejepa.nn.inputs import WholeGraph
from nodejepa.training.logger import CollapseWarning, Logging
from nodejepa.training.loop import train
from nodejepa.training.run import Run, load_tensors, save_tensors
from nodejepa.training.task import Source, Task, TrainingConfig, cosine_rate, linear

POINTS = Source(WholeGraph(Graph.from_edges([], [], features=np.ones((20, 1)), num_nodes=20)))
OFTEN = Logging(checkpoint_epochs=1)
TINY = {"encoder.hidden": 8, "predictor.hidden": 8, "epochs": 6}


class Quadratic(Task):
    """Pulls a matrix towards a constant: everything about it is known."""

    def __init__(self, fail_at=None, constant=False):
        super().__init__()
        self.z = torch.nn.Parameter(torch.randn(20, 6, generator=torch.Generator().manual_seed(0)))
        self.fail_at, self.constant, self.seen = fail_at, constant, []

    def losses(self, inputs, context):
        assert inputs is POINTS.whole
        self.seen.append(context)
        loss = (self.z - 1).square().mean()
        return {"loss": loss * (math.nan if context.epoch == self.fail_at else 1)}

    def embed(self, inputs, rows=None):  # noqa: ARG002
        return torch.ones(20, 6) if self.constant else self.z


def test_training_lowers_the_loss_and_tells_what_happened():
    task = Quadratic()
    history = train(task, POINTS, TrainingConfig(epochs=20, lr=0.1), seed=0)
    assert history[-1]["loss"] < history[0]["loss"] / 2
    assert [r["epoch"] for r in history] == list(range(1, 21))
    assert {"gradient_norm", "seconds", "peak_memory_mb", "lr"} <= history[0].keys()
    assert {"effective_rank", "mean_std"} <= history[-1].keys()
    assert [m.progress for m in task.seen] == [i / 20 for i in range(20)]


def test_schedules_meet_their_ends():
    assert cosine_rate(0, 1e-3, 1e-6) == 1e-3
    assert cosine_rate(1, 1e-3, 1e-6) == pytest.approx(1e-6)
    assert cosine_rate(0.5, 1.0, 0.0) == pytest.approx(0.5)
    assert cosine_rate(0.05, 1.0, 0.0, warmup=0.1) == pytest.approx(0.5)
    assert cosine_rate(0.1, 1.0, 0.0, warmup=0.1) == 1.0
    assert linear(0.5, 0.996, 0.999) == pytest.approx(0.9975)


def test_a_loss_that_is_not_finite_stops_and_keeps_the_last_good_checkpoint(tmp_path):
    run = Run(tmp_path)
    task = Quadratic(fail_at=4)
    with pytest.raises(TrainingError, match=r"loss.*epoch 5.*last good checkpoint is kept"):
        train(task, POINTS, TrainingConfig(epochs=8), seed=0, run=run, logging=Logging(checkpoint_epochs=2))
    tensors, history, *_ = run.load_checkpoint()
    assert len(history) == 4
    assert torch.isfinite(tensors["task.z"]).all()
    assert torch.isfinite(task.z).all()


def test_collapse_is_told_with_the_knob_to_turn():
    with pytest.warns(CollapseWarning, match=r"epoch 1: full collapse.* Lower training.lr"):
        train(Quadratic(constant=True), POINTS, TrainingConfig(epochs=1), seed=0)


@pytest.mark.parametrize(("scale", "shift", "warns"), [(1e-5, 0, False), (1e-6, 1, True), (1, 0, False)])
def test_small_embeddings_are_no_collapse_but_equal_ones_are(scale, shift, warns):
    task = Quadratic()
    task.embed = lambda *_: task.z * scale + shift
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train(task, POINTS, TrainingConfig(epochs=1), seed=0)
    assert [w.category for w in caught] == [CollapseWarning] * warns


class Listed(Quadratic):
    """The loss of each epoch is given."""

    def __init__(self, values):
        super().__init__()
        self.values = values

    def losses(self, inputs, context):
        loss = super().losses(inputs, context)["loss"]
        return {"loss": loss - loss.detach() + self.values[context.epoch]}


@pytest.mark.parametrize("stop", [1, 5])
def test_patience_counts_epochs_without_a_lower_loss_also_after_a_resume(tmp_path, stop):
    values = [5.0, 4.0, 4.5, 3.0, 3.0, 3.5, 2.0, 1.0]  # epochs 5 and 6 are no better than epoch 4
    config = TrainingConfig(epochs=8, patience=2)
    whole = Listed(values)
    history = train(whole, POINTS, config, seed=0)
    assert [r["epoch"] for r in history] == [1, 2, 3, 4, 5, 6]
    assert len(train(Listed(values), POINTS, TrainingConfig(epochs=8), seed=0)) == 8
    assert len(train(Listed(values), POINTS, TrainingConfig(epochs=8, patience=3), seed=0)) == 8

    with interrupted_after(stop + 1):
        train(Listed(values), POINTS, config, seed=0, run=Run(tmp_path), logging=OFTEN)
    resumed = Listed(values)
    history = train(resumed, POINTS, config, seed=0, run=Run(tmp_path), logging=OFTEN)
    assert [r["epoch"] for r in history] == [1, 2, 3, 4, 5, 6]
    assert torch.equal(resumed.z, whole.z)


def test_a_finished_run_that_ran_out_of_patience_does_not_go_on(tmp_path):
    values, config = [1.0] * 8, TrainingConfig(epochs=8, patience=2)
    for _ in range(2):
        history = train(Listed(values), POINTS, config, seed=0, run=Run(tmp_path), logging=OFTEN)
        assert len(history) == 3


def test_gradients_are_shortened_to_the_clip_and_no_further(monkeypatch):
    lengths, step = [], torch.optim.AdamW.step

    def looked(self, *arguments):
        lengths.append(math.hypot(*(p.grad.norm().item() for p in self.param_groups[0]["params"])))
        return step(self, *arguments)

    monkeypatch.setattr(torch.optim.AdamW, "step", looked)
    before = train(Quadratic(), POINTS, TrainingConfig(epochs=1, clip=None), seed=0)[0]["gradient_norm"]
    for clip in (before / 3, before * 3):
        train(Quadratic(), POINTS, TrainingConfig(epochs=1, clip=clip), seed=0)
    assert lengths == pytest.approx([before, before / 3, before], rel=1e-4)


def test_a_step_is_that_of_adam_with_decoupled_decay():
    task, settings = Quadratic(), TrainingConfig(epochs=1, lr=0.01, weight_decay=0.1, clip=None)
    start = task.z.detach().clone()
    train(task, POINTS, settings, seed=0)
    slope = 2 * (start - 1) / start.numel()
    wanted = start * (1 - 0.01 * 0.1) - 0.01 * slope / (slope.abs() + 1e-8)  # both moments are corrected
    torch.testing.assert_close(task.z.detach(), wanted)


KILLED = """
import os, signal, sys
import numpy as np, torch
torch.set_num_threads(1)
from nodejepa.graph import Graph
from nodejepa.methods.nodejepa import NodeJEPA
from nodejepa.training.logger import Logging
left, replace = int(sys.argv[2]), os.replace
def replace_or_die(source, target):  # every file is moved to its name when it is whole
    global left
    if str(target).endswith("checkpoint.safetensors"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)
os.replace = replace_or_die
rng = np.random.default_rng(0)
graph = Graph.from_edges(*rng.integers(0, 200, (2, 900)), features=rng.normal(size=(200, 12)), num_nodes=200)
NodeJEPA(preset="paper", seed=1, epochs=12, **{"encoder.hidden": 32, "predictor.hidden": 32}).fit(
    graph, out=sys.argv[1], resume=True, logging=Logging(checkpoint_epochs=1)
)
np.save(os.path.join(sys.argv[1], "z.npy"), NodeJEPA.load(sys.argv[1]).transform(graph))
"""


@pytest.mark.slow
def test_a_process_killed_several_times_ends_in_the_bits_of_an_undisturbed_one(tmp_path):
    def run(folder, checkpoints):
        return Forked(KILLED, tmp_path / folder, checkpoints).wait()[0]

    assert run("whole", 0) == 0
    assert [run("killed", checkpoints) for checkpoints in (3, 5)] == [-signal.SIGKILL] * 2
    assert run("killed", 0) == 0
    one, two = (np.load(tmp_path / name / "z.npy") for name in ("whole", "killed"))
    np.testing.assert_array_equal(one, two)


def test_a_folder_with_a_run_is_not_overwritten_or_continued_with_other_settings(tmp_path, toy_graph):
    NodeJEPA(preset="paper", seed=0, **TINY).fit(toy_graph, out=tmp_path)
    with pytest.raises(TrainingError, match="already holds a run"):
        NodeJEPA(preset="paper", seed=0, **TINY).fit(toy_graph, out=tmp_path)
    with pytest.raises(CheckpointError, match=r"another config: masking.hops: 2 then, 1 now"):
        NodeJEPA(preset="paper", seed=0, **(TINY | {"masking.hops": 1})).fit(
            toy_graph, out=tmp_path, resume=True
        )
    with pytest.raises(CheckpointError, match="another seed"):
        NodeJEPA(preset="paper", seed=1, **TINY).fit(toy_graph, out=tmp_path, resume=True)


def test_two_processes_cannot_use_one_folder(tmp_path, toy_graph):
    with Run(tmp_path).owned(), pytest.raises(TrainingError, match="another process"):
        NodeJEPA(preset="paper", seed=0, **TINY).fit(toy_graph, out=tmp_path)


def begun(folder, graph, seed):
    """A run that was stopped after some epochs."""
    settings = TINY | {"epochs": 4}
    with interrupted_after(3):
        NodeJEPA(preset="paper", seed=seed, **settings).fit(graph, out=folder, logging=OFTEN)
    return lambda: NodeJEPA(preset="paper", seed=seed, **settings).fit(graph, out=folder, resume=True)


@pytest.mark.slow
def test_a_checkpoint_of_another_run_is_refused(tmp_path, toy_graph):
    resume = begun(tmp_path / "one", toy_graph, seed=1)
    begun(tmp_path / "two", toy_graph, seed=2)
    mine, other = (tmp_path / name / "checkpoint.safetensors" for name in ("one", "two"))
    whole = mine.read_bytes()
    mine.write_bytes(other.read_bytes())
    with pytest.raises(CheckpointError, match="another seed: 2 then, 1 now"):
        resume()
    NodeJEPA(preset="paper", seed=1, **TINY).fit(toy_graph, out=tmp_path / "model")
    mine.write_bytes((tmp_path / "model" / "model.safetensors").read_bytes())
    with pytest.raises(CheckpointError, match="no checkpoint"):
        resume()
    mine.write_bytes(whole[:-100])
    with pytest.raises(CheckpointError, match="damaged"):
        resume()
    mine.write_bytes(whole)
    resume()


def test_other_threads_are_told_on_resume(tmp_path, toy_graph):
    resume = begun(tmp_path, toy_graph, seed=1)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"threads": 99}))
    with pytest.warns(UserWarning, match="begun with 99 threads"):
        resume()


@pytest.fixture
def saved(tmp_path, toy_graph):
    NodeJEPA(preset="paper", seed=0, **TINY).fit(toy_graph, out=tmp_path)
    return tmp_path


def test_every_truncation_and_flipped_bit_is_noticed(saved):
    path = saved / "model.safetensors"
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for cut in [0, 7, 8, len(whole) - 1, *rng.integers(9, len(whole), 10)]:
        path.write_bytes(whole[:cut])
        with pytest.raises(CheckpointError):
            NodeJEPA.load(saved)
    for place in rng.integers(8, len(whole), 40):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(damaged))
        with pytest.raises(CheckpointError):
            NodeJEPA.load(saved)


def test_foreign_files_are_refused_in_plain_words(saved, tmp_path):
    path = saved / "model.safetensors"
    with pytest.raises(CheckpointError, match="the model is a nodejepa, not a patchjepa"):
        PatchJEPA.load(saved)
    import pickle

    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(CheckpointError, match="damaged or not in safetensors"):
        NodeJEPA.load(saved)
    import safetensors.torch

    path.write_bytes(safetensors.torch.save({"a": torch.zeros(2)}))
    with pytest.raises(CheckpointError, match="not written by nodejepa"):
        NodeJEPA.load(saved)
    save_tensors(path, {"a": torch.zeros(2)}, {"method": "nodejepa"})
    with pytest.raises(CheckpointError, match="description is not understood"):
        NodeJEPA.load(saved)
    with pytest.raises(CheckpointError, match="no such file"):
        NodeJEPA.load(tmp_path / "nowhere")


def test_tensors_survive_the_round_trip(tmp_path):
    tensors = {"a": torch.randn(3, 2), "n": torch.tensor(7), "empty": torch.zeros(0, 4)}
    save_tensors(tmp_path / "x.safetensors", tensors, {"k": [1, "é"]})
    back, facts = load_tensors(tmp_path / "x.safetensors")
    assert facts == {"k": [1, "é"]}
    assert all(torch.equal(tensors[name], back[name]) for name in tensors)


# a parent that holds more than a child without it may ever take
PEAK_MEMORY = """
import subprocess, sys
import numpy as np
from nodejepa.machine import peak_memory_mb
before = peak_memory_mb()
held = np.ones(50 * 2**20)  # 400 MB
tell = "from nodejepa.machine import peak_memory_mb; print(peak_memory_mb())"
child = subprocess.run([sys.executable, "-c", tell], capture_output=True, text=True, check=True)
print(before, peak_memory_mb(), child.stdout)
"""


@pytest.mark.slow
def test_peak_memory_grows_with_what_is_held_and_a_child_starts_small():
    """The peak of a process is its own: a large parent does not show in it."""
    code, said = Forked(PEAK_MEMORY).wait()
    assert code == 0, said
    before, after, child = map(float, said.split())
    assert 380 < after - before < 480
    assert 5 < child < 400  # a machine short of memory takes pages back
