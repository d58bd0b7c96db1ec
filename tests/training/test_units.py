"""Training in parts and in units: what a step sees, and that only units decide what is trained."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from nodejepa.errors import ConfigError
from nodejepa.graph import Graph
from nodejepa.methods import METHODS, make_estimator
from nodejepa.nn.inputs import WholeGraph
from nodejepa.nn.parts import Renumbered, RowsPart
from nodejepa.objectives.sigreg import sigreg
from nodejepa.objectives.vicreg import covariance_loss, covariance_matrix, variance_loss
from nodejepa.training.batches import Parts
from nodejepa.training.journal import Logging
from nodejepa.training.run import Run
from nodejepa.training.task import StepContext, TrainingConfig
from nodejepa.training.team import SOLO, Team, in_order
from nodejepa.training.turns import in_turns

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


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_joined_parts_are_the_induced_subgraph(directed, weighted, sparse):
    """Cut from stretches of rows alone: operators, features and nodes of the whole graph's own part."""
    graph = graph_of(directed=directed, weighted=weighted, sparse=sparse)
    part = np.random.default_rng(0).integers(0, 6, graph.num_nodes).astype(np.int32)
    whole = WholeGraph(graph)
    for chosen in ([2], [0, 3, 5], list(range(6))):
        mine = RowsPart(Renumbered(graph, part), chosen, whole.device)
        wanted = whole.induced([np.flatnonzero(np.isin(part, chosen)).astype(np.int32)])
        np.testing.assert_array_equal(mine.nodes, wanted.nodes)
        for matrix, other in (
            (mine.adjacency, wanted.adjacency),
            *((getattr(mine, k).matrix, getattr(wanted, k).matrix) for k in ("propagation", "neighbour_sum")),
        ):
            # the whole graph's weights are summed in single precision
            np.testing.assert_allclose(matrix.data, other.data, rtol=1e-6 if weighted else 0)
            np.testing.assert_array_equal(matrix.indices, other.indices)
        torch.testing.assert_close(mine.neighbour_mean.tensor.values(), wanted.neighbour_mean.tensor.values())
        weight = torch.randn(12, 5, generator=torch.Generator().manual_seed(0))
        assert mine.transform_features(weight).equal(wanted.transform_features(weight))
        constant = torch.arange(graph.num_nodes)
        assert mine.take(constant).equal(wanted.take(constant))


def test_an_epoch_sees_every_node_once_and_another_epoch_in_another_order():
    graph = graph_of()
    whole, part = WholeGraph(graph), np.arange(graph.num_nodes, dtype=np.int32) % 12
    source = Parts(
        whole, Renumbered(graph, part), TrainingConfig(parts=12, parts_per_step=4, units=2), rounds=2
    )
    assert (source.steps_per_epoch, source.units) == (6, 2)

    def seen(epoch, steps):
        return [
            source.batch(StepContext(0, epoch, step, 0.0, unit=unit)).nodes
            for step in steps
            for unit in (0, 1)
        ]

    for steps in (range(3), range(3, 6)):
        assert sorted(np.concatenate(seen(0, steps))) == list(range(graph.num_nodes))
    assert [n.tolist() for n in seen(0, range(3))] == [n.tolist() for n in seen(0, range(3))]
    assert [n.tolist() for n in seen(0, range(3))] != [n.tolist() for n in seen(0, range(3, 6))]
    assert [n.tolist() for n in seen(0, range(3))] != [n.tolist() for n in seen(1, range(3))]


def made(method, settings):
    """A method that is trained from random weights."""
    return make_estimator(method, preset="paper" if method == "nodejepa" else "default", settings=settings)


@pytest.mark.parametrize("method", ["nodejepa", "patchjepa", "dgi", "graphmae", "bgrl", "cca-ssg"])
def test_one_unit_with_all_parts_is_the_full_batch(method):
    graph = graph_of()
    whole = made(method, settings=SMALL).fit(graph)
    parts = made(method, settings=SMALL | {"parts": 6, "parts_per_step": 6}).fit(graph)
    np.testing.assert_allclose(parts.transform(graph), whole.transform(graph), atol=1e-6)
    assert parts.history_[-1]["loss"] == pytest.approx(whole.history_[-1]["loss"], abs=1e-6)


# ------------------------------------------------------------------ sums over units


def rows_of_units():
    z = torch.randn(60, 7, generator=torch.Generator().manual_seed(1)) * torch.linspace(0.2, 2, 7)
    return z, [9, 21, 30]


def naive_covariance_terms(z):
    centred = z - z.mean(dim=0)
    c = centred.T @ centred / (len(z) - 1)
    off = sum(c[i, j] ** 2 for i in range(len(c)) for j in range(len(c)) if i != j)
    return torch.relu(1 - (c.diagonal() + 1e-4).sqrt()).mean() + off / len(c)


def naive_sigreg(z):
    directions = torch.randn(7, 32, generator=torch.Generator().manual_seed(5))
    u = z @ (directions / directions.norm(dim=0))
    total = torch.zeros(())
    for k in range(17):
        t = 3 * k / 16
        phi, weight = np.exp(-(t**2) / 2), (3 / 16) * (1 if k in (0, 16) else 2)
        real, imaginary = (t * u).cos().mean(dim=0) - phi, (t * u).sin().mean(dim=0)
        total = total + weight * phi * (real**2 + imaginary**2).mean()
    return total * len(z)


def naive_mean(z):
    return z.pow(3).sum(dim=1).mean()


def ours_covariance_terms(z, group):
    c = covariance_matrix(z, group)
    return variance_loss(c) + covariance_loss(c)


def ours_sigreg(z, group):
    shared = torch.Generator().manual_seed(5)
    return sigreg(z, torch.Generator(), slices=32, max_nodes=None, times_n=True, group=group, shared=shared)


def ours_mean(z, group):
    return group.average(z.pow(3).sum(dim=1).mean(), len(z))


@pytest.mark.parametrize(
    ("ours", "naive"),
    [
        (ours_covariance_terms, naive_covariance_terms),
        (ours_sigreg, naive_sigreg),
        (ours_mean, naive_mean),
    ],
)
def test_statistics_of_units_are_those_of_the_joined_batch(ours, naive):
    """The value in every unit, and the gradient of each unit's own rows."""
    z, sizes = rows_of_units()
    joined = z.clone().requires_grad_()
    wanted = naive(joined)
    (gradient,) = torch.autograd.grad(wanted, joined)
    shares = [share.clone().requires_grad_() for share in z.split(sizes)]
    found = in_turns(
        [lambda group, share=share: ours(share, group) for share in shares], 3, lambda mine: SOLO.sum(mine, 3)
    )
    gradients = [torch.autograd.grad(value, share)[0] for value, share in zip(found, shares, strict=True)]
    for value in found:
        torch.testing.assert_close(value, wanted, rtol=1e-5, atol=1e-6)
        assert value.equal(found[0])
    torch.testing.assert_close(torch.cat(gradients), gradient, rtol=1e-4, atol=1e-6)


def test_units_share_the_nodes_that_sigreg_draws():
    z, sizes = rows_of_units()

    def rows(share, max_nodes):
        def work(group):
            def remember(h, count=group.rows):
                seen.append(len(h))
                return count(h)

            group.rows = remember
            sigreg(share, torch.Generator(), max_nodes=max_nodes, group=group)

        return work

    seen = []
    in_turns([rows(share, 30) for share in z.split(sizes)], 3, in_order)
    assert sorted(seen) == [9, 10, 10]


def test_units_take_turns_and_errors_come_out():
    order = []

    def work(name):
        def run(group):
            order.append(name)
            total = group.sum(torch.tensor(float(name)))
            order.append(10 + name)
            return total.item()

        return run

    assert in_turns([work(1), work(2)], 2, in_order) == [3, 3]
    assert order == [1, 2, 11, 12]

    def broken(group):
        group.sum(torch.zeros(()))
        raise ZeroDivisionError("unit 2")

    with pytest.raises(ZeroDivisionError, match="unit 2"):
        in_turns([work(1), broken], 2, in_order)
    with pytest.raises(RuntimeError, match="different sums"):
        in_turns([work(1), lambda group: None], 2, in_order)  # noqa: ARG005

    def torn(_):
        raise OSError("the network")

    with pytest.raises(OSError, match="the network"):
        in_turns([work(1), work(2)], 2, torn)


# ------------------------------------------------------------------ training


@pytest.mark.slow
@pytest.mark.parametrize("method", ["nodejepa", "patchjepa", "graphmae", "bgrl"])
def test_units_train_and_repeat_to_the_bit(method):
    graph = graph_of()
    settings = SMALL | {"training.epochs": 6, "parts": 8, "parts_per_step": 4, "units": 2, "lr": 0.01}
    settings |= {"patches.count": 24} if method == "patchjepa" else {}
    first, second = (made(method, settings=settings).fit(graph) for _ in range(2))
    assert digest(first) == digest(second)
    assert first.history_[-1]["loss"] < first.history_[0]["loss"]
    other = made(method, settings=settings | {"units": 4}).fit(graph)
    assert digest(other) != digest(first)


class Interrupted(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("stop_at", [1, 2, 5, 9])
def test_a_run_goes_on_in_the_middle_of_an_epoch(stop_at, tmp_path, monkeypatch):
    graph = graph_of()
    settings = SMALL | {"training.epochs": 3, "parts": 8, "parts_per_step": 2, "units": 2}
    whole = make_estimator("nodejepa", preset="paper", settings=settings).fit(graph)
    steps, original = [], torch.optim.AdamW.step

    def step(self, *more):
        if len(steps) == stop_at:
            raise Interrupted
        steps.append(1)
        return original(self, *more)

    logging = Logging(checkpoint_steps=1)
    stopped = make_estimator("nodejepa", preset="paper", settings=settings)
    with monkeypatch.context() as patched:
        patched.setattr(torch.optim.AdamW, "step", step)
        with pytest.raises(Interrupted):
            stopped.fit(graph, out=tmp_path, logging=logging)
    assert Run(tmp_path).checkpoint.exists()
    steps.clear()
    again = make_estimator("nodejepa", preset="paper", settings=settings)
    with monkeypatch.context() as patched:
        patched.setattr(torch.optim.AdamW, "step", lambda self, *a: steps.append(1) or original(self, *a))
        again.fit(graph, out=tmp_path, resume=True, logging=logging)
    assert len(steps) == 12 - stop_at
    assert digest(again) == digest(whole)
    told = [json.loads(line)["loss"] for line in (tmp_path / "history.jsonl").read_text().splitlines()]
    assert told == [record["loss"] for record in whole.history_]


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("dgi", {"parts": 4, "parts_per_step": 2, "units": 2}, "loss of dgi needs all nodes"),
        ("cca-ssg", {"parts": 4, "parts_per_step": 2, "units": 2}, "loss of cca-ssg needs all nodes"),
        ("nodejepa", {"parts": 4, "parts_per_step": 2, "units": 2, "encoder.norm": "batch"}, "batch norm"),
        ("nodejepa", {"parts": 80}, "90 nodes are too few for 80 parts.*at most 45"),
        ("nodejepa", {"parts": 4, "parts_per_step": 3}, r"divisor of training.parts \(4\)"),
        ("nodejepa", {"parts": 4, "parts_per_step": 2, "units": 4}, r"divisor of training.parts_per_step"),
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
        make_estimator("supervised-gcn", settings=SMALL | {"parts": 4}).fit(
            graph_of(), labels=np.arange(90) % 2, split=split
        )


def test_every_method_says_what_it_sees():
    """A method that nobody thought about is trained on the whole graph: it is refused, never wrong."""
    for entry in METHODS.values():
        if entry.trained and entry.by_gradient and not entry.supervised:
            task = made(entry.name, settings=SMALL).make_task(WholeGraph(graph_of()))
            assert task.sees in ("parts", "units")


class Three(Team):
    def sum(self, mine, units):
        raise NotImplementedError

    def share(self, content):
        return content


def test_processes_share_units_evenly_and_no_process_is_idle():
    for units in range(3, 9):
        shares = [Three(rank, 3).mine(units) for rank in range(3)]
        assert [u for share in shares for u in share] == list(range(units))
        assert all(len(share) for share in shares)
    estimator = make_estimator(
        "nodejepa", preset="paper", settings=SMALL | {"parts": 4, "parts_per_step": 2, "units": 2}
    )
    estimator.team = Three(0, 3)
    with pytest.raises(ConfigError, match=r"3 processes are to share training\.units=2"):
        estimator.fit(graph_of())


def test_a_unit_has_randomness_of_its_own():
    context = StepContext(1, 2, 3, 0.0)
    drawn = {unit: replace(context, unit=unit).numpy("mask").integers(2**60) for unit in (None, 0, 1, 2)}
    assert len(set(drawn.values())) == 4
    assert replace(context, unit=1).of_all_units.numpy("mask").integers(2**60) == drawn[None]
