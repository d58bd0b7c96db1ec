"""Training in parts and in micro-batches: what a step sees."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from nodejepa.errors import ConfigError
from nodejepa.graph import Graph
from nodejepa.methods import METHODS, make_method
from nodejepa.nn.encoders import GCN
from nodejepa.nn.inputs import WholeGraph
from nodejepa.training.logger import Logging
from nodejepa.training.loop import train
from nodejepa.training.run import Run
from nodejepa.training.task import Parts, Source, StepContext, Task, TrainingConfig

SMALL = {"encoder.hidden": 16, "encoder.layers": 2, "training.epochs": 2}


def graph_of(*, size=90, directed=False, weighted=False, sparse=False):
    rng = np.random.default_rng(3)
    source, target = rng.integers(0, size, (2, 5 * size))
    x = rng.random((size, 12)) * (rng.random((size, 12)) < (0.1 if sparse else 1))
    return Graph.from_edges(
        source,
        target,
        features=sp.csr_array(x) if sparse else x,
        num_nodes=size,
        weights=rng.random(5 * size) if weighted else None,
        direction="keep" if directed else "symmetrize",
    )


def digest(estimator):
    sha = hashlib.sha256()
    for name, tensor in sorted(estimator.encoder_.state_dict().items()):
        sha.update(name.encode() + tensor.numpy().tobytes())
    return sha.hexdigest()


# ------------------------------------------------------------------ parts


def test_an_epoch_sees_every_node_once_and_another_epoch_in_another_order():
    graph = graph_of()
    whole, part = WholeGraph(graph), np.arange(graph.num_nodes, dtype=np.int32) % 12
    config = TrainingConfig(parts=12, parts_per_step=4, micro_batches=2)
    source = Parts(
        whole, lambda chosen: whole.induced([np.flatnonzero(np.isin(part, chosen))]), config, rounds=2
    )
    assert (source.steps_per_epoch, source.micro_batches) == (6, 2)

    def seen(epoch, steps):
        return [
            source.batch(StepContext(0, epoch, step, 0.0, micro_batch=i)).nodes
            for step in steps
            for i in (0, 1)
        ]

    for steps in (range(3), range(3, 6)):
        assert sorted(np.concatenate(seen(0, steps))) == list(range(graph.num_nodes))
    assert [n.tolist() for n in seen(0, range(3))] == [n.tolist() for n in seen(0, range(3))]
    assert [n.tolist() for n in seen(0, range(3))] != [n.tolist() for n in seen(0, range(3, 6))]
    assert [n.tolist() for n in seen(0, range(3))] != [n.tolist() for n in seen(1, range(3))]


def made(method, settings):
    """A method that is trained from random weights."""
    return make_method(method, preset="paper" if method == "nodejepa" else "default", settings=settings)


@pytest.mark.parametrize("method", ["nodejepa", "patchjepa", "dgi", "graphmae", "bgrl", "cca-ssg"])
def test_one_step_with_all_parts_is_the_full_batch(method):
    graph = graph_of()
    whole = made(method, settings=SMALL).fit(graph)
    parts = made(method, settings=SMALL | {"parts": 6, "parts_per_step": 6}).fit(graph)
    np.testing.assert_allclose(parts.transform(graph), whole.transform(graph), atol=1e-6)
    assert parts.history_[-1]["loss"] == pytest.approx(whole.history_[-1]["loss"], abs=1e-6)


# ------------------------------------------------------------------ training


@pytest.mark.slow
@pytest.mark.parametrize("method", ["nodejepa", "patchjepa", "graphmae", "bgrl"])
def test_micro_batches_train_and_repeat_to_the_bit(method):
    graph = graph_of()
    settings = SMALL | {"training.epochs": 4, "parts": 8, "parts_per_step": 4, "micro_batches": 2, "lr": 0.01}
    settings |= {"patches.count": 24} if method == "patchjepa" else {}
    first, second = (made(method, settings=settings).fit(graph) for _ in range(2))
    assert digest(first) == digest(second)
    assert first.history_[-1]["loss"] < first.history_[0]["loss"]
    other = made(method, settings=settings | {"micro_batches": 4}).fit(graph)
    assert digest(other) != digest(first)


class Interrupted(Exception):
    pass


@pytest.mark.slow
def test_a_run_stopped_in_the_middle_of_an_epoch_repeats_that_epoch(tmp_path, monkeypatch):
    graph = graph_of()
    settings = SMALL | {"training.epochs": 3, "parts": 8, "parts_per_step": 2, "micro_batches": 2}
    whole, stop_at = make_method("nodejepa", preset="paper", settings=settings).fit(graph), 5
    steps, original = [], torch.optim.AdamW.step

    def step(self, *more):
        if len(steps) == stop_at:
            raise Interrupted
        steps.append(1)
        return original(self, *more)

    logging = Logging(checkpoint_epochs=1)
    stopped = make_method("nodejepa", preset="paper", settings=settings)
    with monkeypatch.context() as patched:
        patched.setattr(torch.optim.AdamW, "step", step)
        with pytest.raises(Interrupted):
            stopped.fit(graph, out=tmp_path, logging=logging)
    assert Run(tmp_path).checkpoint.exists()
    steps.clear()
    again = make_method("nodejepa", preset="paper", settings=settings)
    with monkeypatch.context() as patched:
        patched.setattr(torch.optim.AdamW, "step", lambda self, *a: steps.append(1) or original(self, *a))
        again.fit(graph, out=tmp_path, resume=True, logging=logging)
    assert len(steps) == 12 - stop_at // 4 * 4
    assert digest(again) == digest(whole)
    told = [json.loads(line)["loss"] for line in (tmp_path / "history.jsonl").read_text().splitlines()]
    assert told == [record["loss"] for record in whole.history_]


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("dgi", {"parts": 4, "parts_per_step": 2, "micro_batches": 2}, "loss of dgi needs all nodes"),
        ("cca-ssg", {"parts": 4, "parts_per_step": 2, "micro_batches": 2}, "loss of cca-ssg needs all nodes"),
        (
            "nodejepa",
            {"parts": 4, "parts_per_step": 2, "micro_batches": 2, "encoder.norm": "batch"},
            "batch norm",
        ),
        ("nodejepa", {"parts": 80}, "90 nodes are too few for 80 parts.*at most 45"),
        ("nodejepa", {"parts": 4, "parts_per_step": 3}, r"divisor of training.parts \(4\)"),
        (
            "nodejepa",
            {"parts": 4, "parts_per_step": 2, "micro_batches": 4},
            r"divisor of training.parts_per_step",
        ),
        ("nodejepa", {"parts": 0}, "training.parts is 0"),
    ],
)
def test_what_cannot_be_cut_is_refused(method, settings, message):
    with pytest.raises(ConfigError, match=message):
        made(method, settings=SMALL | settings).fit(graph_of())


def test_a_classifier_needs_the_whole_graph():
    from nodejepa.data import Split

    split = Split("hand", 0, *(np.arange(start, start + 6) for start in (0, 6, 12)))
    with pytest.raises(ConfigError, match="supervised-gcn is trained on the whole graph only"):
        make_method("supervised-gcn", settings=SMALL | {"parts": 4}).fit(
            graph_of(), labels=np.arange(90) % 2, split=split
        )


def test_every_method_says_what_it_sees():
    """A method that nobody thought about is trained on the whole graph: it is refused, never wrong."""
    for entry in METHODS.values():
        if entry.trained and entry.by_gradient and not entry.supervised:
            task = made(entry.name, settings=SMALL).make_task(WholeGraph(graph_of()))
            assert task.sees in ("parts", "micro-batches")


def test_a_micro_batch_has_randomness_of_its_own():
    context = StepContext(1, 2, 3, 0.0)
    drawn = {i: replace(context, micro_batch=i).numpy("mask").integers(2**60) for i in (None, 0, 1, 2)}
    assert len(set(drawn.values())) == 4
    assert replace(context, micro_batch=1).of_step.numpy("mask").integers(2**60) == drawn[None]


# ------------------------------------------------------------------ what the loop hands out


class Halves(Source):
    """The first half of the nodes in even steps, the second in odd ones."""

    def batch(self, context):
        size = self.whole.num_nodes
        nodes = np.arange(size, dtype=np.int32).reshape(2, -1)[context.step % 2]
        return self.whole.induced([nodes])


class Recording(Task):
    def __init__(self, columns):
        super().__init__()
        self.encoder = GCN(columns, hidden=16, layers=2)
        self.handed, self.asked = [], []

    def losses(self, inputs, context):
        self.handed.append((context, inputs))
        return {"loss": self.encoder(inputs).square().mean() * inputs.num_nodes}

    def embed(self, inputs, rows=None):
        self.asked.append(rows)
        return super().embed(inputs, rows)


def inputs_of(size):
    rng = np.random.default_rng(0)
    source, target = rng.integers(0, size, (2, 3 * size))
    return WholeGraph(Graph.from_edges(source, target, features=rng.random((size, 4)), num_nodes=size))


def test_a_step_trains_on_what_the_source_hands_it():
    source = Halves(inputs_of(80), steps_per_epoch=2)
    task = Recording(4)
    train(task, source, TrainingConfig(epochs=3), seed=5)
    assert [(m.seed, m.epoch, m.step) for m, _ in task.handed] == [
        (5, e, s) for e in range(3) for s in (0, 1)
    ]
    for context, inputs in task.handed:
        np.testing.assert_array_equal(inputs.nodes, np.arange(40) + 40 * context.step)


def test_the_watch_asks_for_the_rows_it_looks_at():
    """An even sample, a little more than 4,096 nodes; small graphs are looked at in whole."""
    for size in (80, 9000):
        task, inputs = Recording(4), inputs_of(size)
        history = train(task, Source(inputs), TrainingConfig(epochs=1), seed=0)
        (rows,) = task.asked
        if size == 80:
            assert rows is None
        else:
            assert np.flatnonzero(rows).tolist() == list(range(0, 9000, 2))
            z = task.encoder(inputs).detach()[::2]
            std = z.numpy().astype(np.float64).std(axis=0).mean()
            assert history[-1]["mean_std"] == pytest.approx(std)
