"""Statistics over micro-batches; several processes: the model of one, also after a kill."""

import math
import os
import subprocess
import sys
import time
from functools import partial
from importlib.util import find_spec
from itertools import chain
from types import ModuleType

import numpy as np
import psutil
import pytest
import torch
from fleet import fleet, forked_launch, free_port, loopback, make_store
from tests.forked import Forked
from typer.testing import CliRunner

from nodejepa.cli import app
from nodejepa.data import load_dataset
from nodejepa.errors import ConfigError, TrainingError
from nodejepa.methods import make_method
from nodejepa.objectives.latent import covariance_loss, covariance_matrix, variance_loss
from nodejepa.objectives.sigreg import sigreg
from nodejepa.tables import StoredGraph
from nodejepa.training.distributed import (
    SINGLE,
    ProcessGroup,
    Reduction,
    _require_processors,
    reduced,
)
from nodejepa.training.run import Run, load_tensors

BUSY = pytest.mark.timeout(1800)  # half a minute of work, on machines that may be busy
SETTINGS = {
    "encoder.hidden": 16,
    "encoder.layers": 2,
    "training.epochs": 3,
    "training.lr": 0.01,
    "parts": 8,
    "parts_per_step": 4,
    "micro_batches": 4,
}
LONGER = {**SETTINGS, "training.epochs": 12, "parts": 16, "micro_batches": 2}
SMALL = "synthetic:nodes=300,edges=1200,features=16,classes=3,seed=1"


# ------------------------------------------------------------------ statistics of a loss


def rows_of_micro_batches():
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


def ours_covariance_terms(z, reduction):
    c = covariance_matrix(z, reduction)
    return variance_loss(c) + covariance_loss(c, "dimensions")


def ours_sigreg(z, reduction):
    directions = {"shared": torch.Generator().manual_seed(5), "slices": 32}
    return sigreg(z, torch.Generator(), max_nodes=None, times_n=True, reduction=reduction, **directions)


def ours_mean(z, reduction):
    return reduction.average(z.pow(3).sum(dim=1).mean(), len(z))


@pytest.mark.parametrize(
    ("ours", "naive"),
    [
        (ours_covariance_terms, naive_covariance_terms),
        (ours_sigreg, naive_sigreg),
        (ours_mean, naive_mean),
    ],
)
def test_statistics_of_micro_batches_are_those_of_the_joined_batch(ours, naive):
    """The value in each, and the gradient of its own rows."""
    z, sizes = rows_of_micro_batches()
    joined = z.clone().requires_grad_()
    wanted = naive(joined)
    (gradient,) = torch.autograd.grad(wanted, joined)
    shares = [share.clone().requires_grad_() for share in z.split(sizes)]
    found = reduced([partial(ours, share) for share in shares], 3, SINGLE)
    gradients = [torch.autograd.grad(value, share)[0] for value, share in zip(found, shares, strict=True)]
    for value in found:
        torch.testing.assert_close(value, wanted, rtol=1e-5, atol=1e-6)
        assert value.equal(found[0])
    torch.testing.assert_close(torch.cat(gradients), gradient, rtol=1e-4, atol=1e-6)


def test_micro_batches_share_the_nodes_that_sigreg_draws():
    z, sizes = rows_of_micro_batches()
    seen = []

    def total(x):
        seen.append(x)
        return x

    for share in z.split(sizes):
        sigreg(share, torch.Generator(), max_nodes=30, reduction=Reduction(3, total))
    assert [int(x) for x in seen if x.dtype == torch.int64] == [9, 10, 10]


def test_one_micro_batch_gets_its_own_tensors_and_runs_once():
    runs, x = [], torch.ones(3, 2, requires_grad=True)

    def work(reduction):
        runs.append(reduction.rows(x))
        assert reduction.sum(x) is x
        return reduction.average(x.mean(), 3)

    reduced([work], 1, SINGLE)
    assert runs == [3]


def test_passes_end_also_where_a_sum_is_not_a_number_or_never_repeats():
    numbers = iter(range(100))
    for x in (lambda: torch.tensor(math.nan), lambda: torch.tensor(float(next(numbers)))):
        runs = []

        def work(reduction, x=x, runs=runs):
            runs.append(1)
            return reduction.sum(x())

        reduced([work, work], 2, SINGLE)
        assert len(runs) == 4


def test_micro_batches_that_ask_for_different_sums_are_an_error():
    with pytest.raises(ValueError, match="shorter"):
        reduced([lambda reduction: reduction.sum(torch.ones(2)), lambda reduction: None], 2, SINGLE)  # noqa: ARG005


def test_processes_share_evenly_and_none_is_idle():
    for count in range(3, 9):
        shares = [ProcessGroup(rank, 3).share(count) for rank in range(3)]
        assert [i for share in shares for i in share] == list(range(count))
        assert all(len(share) for share in shares)
    estimator = make_method("nodejepa", preset="paper", settings=SETTINGS)
    estimator.process_group = ProcessGroup(0, 5)
    with pytest.raises(ConfigError, match=r"5 processes are to share training\.micro_batches=4"):
        estimator.fit(load_dataset("digits").graph)


def test_a_process_alone_keeps_what_it_has():
    x = torch.ones(2)
    assert SINGLE.all_reduce(x) is x
    assert SINGLE.broadcast(b"here") == b"here"
    assert (SINGLE.decide(True), SINGLE.decide(False)) == (True, False)


# ------------------------------------------------------------------ processes


def order(**changes):
    return {"settings": SETTINGS, **changes}


PATCHES = {"method": "patchjepa", "settings": SETTINGS | {"patches.count": 24}}
LOST = ((0, 2), (1, 1), (1, 4))  # which rank of two dies, and how many go on
ORDERS = {
    "alone": [order()],
    "groups": [order(size=size, joined=True) for size in (1, 2, 2, 3, 4)],
    "patches": [PATCHES, {**PATCHES, "size": 2, "joined": True}],
    "lost": [
        order(size=2, joined=True, stop_rank=rank, stop_at=3, out=f"run-{rank}-{size}") for rank, size in LOST
    ],
    "again": [order(size=size, joined=size > 1, out=f"run-{rank}-{size}") for rank, size in LOST],
    "missing": [order(size=3, started=2, joined=True, wait=1)],
    "taken": [order(size=2, joined=True, out="taken")],
    "exchange": [{"size": 3, "joined": True, "exchange": True}],
    "undisturbed": [
        {"settings": LONGER, "dataset": SMALL, "size": 2, "joined": True, "out": "undisturbed"},
    ],
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What groups of processes end with, and what they leave in the folder of another."""
    folder = tmp_path_factory.mktemp("fleet")
    with Run(folder / "taken").owned():
        found = iter(fleet(folder, [*chain(*ORDERS.values())]))
    left = [path.name for path in (folder / "taken").iterdir()]
    ends = {name: [next(found) for _ in orders] for name, orders in ORDERS.items()}
    return ends | {"left": left, "model": load_tensors(folder / "undisturbed" / "model.safetensors")}


@pytest.mark.slow
@BUSY
def test_another_number_of_processes_changes_rounding_only(results):
    """1, 2, 3 and 4 processes, with one micro-batch each or several; all of a group have the same bits."""
    ((wanted,),) = results["alone"]
    for group in results["groups"]:
        assert len({rank["sha"] for rank in group}) == 1
        for rank in group:
            np.testing.assert_allclose(rank["weights"], wanted["weights"], atol=1e-5)
            assert rank["loss"] == pytest.approx(wanted["loss"], abs=1e-5)
    one, two, again, *_ = results["groups"]
    assert one[0]["sha"] == wanted["sha"]
    assert two == again
    (alone,), pair = results["patches"]
    assert pair[0]["sha"] == pair[1]["sha"]
    np.testing.assert_allclose(pair[0]["weights"], alone["weights"], atol=1e-5)


@pytest.mark.slow
@BUSY
def test_a_group_that_lost_a_process_goes_on_in_any_number(results):
    """Rank 0 or rank 1 of two dies in the middle of an epoch; two go on to the same bits."""
    undisturbed = results["groups"][1][0]
    for (_, size), lost, again in zip(LOST, results["lost"], results["again"], strict=True):
        assert {"code": 9} in lost
        assert any("another process is gone" in rank.get("error", "") for rank in lost)
        for rank in again:
            np.testing.assert_allclose(rank["weights"], undisturbed["weights"], atol=1e-5)
        assert size != 2 or {rank["sha"] for rank in again} == {undisturbed["sha"]}


@pytest.mark.slow
@BUSY
def test_processes_exchange_tensors_bytes_and_decisions(results):
    (ranks,) = results["exchange"]
    wanted = {"sum": [3.0, 6.0], "gradient": [2.0]}
    assert ranks == [wanted | {"bytes": "first", "decided": [True, False]}] * 3


@pytest.mark.slow
@BUSY
def test_a_process_that_never_comes_is_missed(results):
    (ranks,) = results["missing"]
    assert all("do not find each other" in rank["error"] for rank in ranks)
    assert "2/3 clients joined" in ranks[0]["error"]


@pytest.mark.slow
@BUSY
def test_a_second_group_leaves_the_folder_of_the_first_alone(results):
    ((leader, follower),) = results["taken"]
    assert "another process is using the run folder" in leader["error"]
    # it hears of it while the two still meet, or after
    assert any(words in follower["error"] for words in ("another process is gone", "do not find each other"))
    assert results["left"] == [".lock"]


def children_of(agents):
    return [child for agent in agents for child in psutil.Process(agent.pid).children(recursive=True)]


@pytest.mark.slow
@BUSY
def test_two_machines_restart_killed_workers_and_end_in_the_bits_of_an_undisturbed_run(
    tmp_path, monkeypatch, results
):
    """Two torchrun agents on loopback; the first worker, which the other finds it by, is killed."""
    monkeypatch.setenv("NODEJEPA_CACHE", str(tmp_path / "cache"))
    out = tmp_path / "run"
    elastic = "--nnodes=2 --nproc-per-node=1 --max-restarts=3 --rdzv-backend=c10d --rdzv-id=mine"
    where = f"--local-addr=127.0.0.1 --rdzv-endpoint=127.0.0.1:{free_port()}"
    options = [part for name, value in LONGER.items() for part in ("--set", f"{name}={value}")]
    chosen = ["--method=nodejepa", "--preset=paper", "--checkpoint-epochs=1", "--device=cpu", *options]
    worker = ["nodejepa.worker", SMALL, "--out", str(out), *chosen]
    command = [sys.executable, "-m", "torch.distributed.run", *elastic.split(), *where.split(), "-m", *worker]
    env = os.environ | {"OMP_NUM_THREADS": "1", "LOGLEVEL": "ERROR"} | loopback()
    with (tmp_path / "said").open("w") as said:
        agents = [subprocess.Popen(command, env=env, stdout=said, stderr=said) for _ in range(2)]
        try:
            while not (out / "checkpoint.safetensors").exists():
                assert all(agent.poll() is None for agent in agents), "an agent has ended too early"
                time.sleep(0.02)
            workers = (child for child in children_of(agents) if "nodejepa.worker" in child.cmdline())
            next(worker for worker in workers if worker.environ()["RANK"] == "0").kill()
            assert [agent.wait() for agent in agents] == [0, 0]
        finally:
            for process in [*children_of(a for a in agents if a.poll() is None), *agents]:
                process.kill()
                process.wait()
    mine, wanted = load_tensors(out / "model.safetensors"), results["model"]
    assert mine[0].keys() == wanted[0].keys()
    assert all(tensor.equal(wanted[0][name]) for name, tensor in mine[0].items())
    assert [r["loss"] for r in mine[1]["history"]] == [r["loss"] for r in wanted[1]["history"]]


@pytest.mark.slow
@BUSY
def test_a_mistake_in_the_command_is_not_started_again(tmp_path):
    code = "import sys; from nodejepa.training.distributed import launch; sys.exit(launch(sys.argv[1:], 1))"
    code, said = Forked(code, "digits", "--out", tmp_path / "run", "--set", "no_such_setting=1").wait()
    assert code == 1
    assert said.count("setting 'no_such_setting' is unknown") == 1


@pytest.mark.slow
@BUSY
def test_the_command_starts_workers_which_train_the_model_of_one(tmp_path, monkeypatch):
    """Of a graph on disk: each of them reads its own parts."""
    monkeypatch.setenv("NODEJEPA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("nodejepa.training.distributed.launch", forked_launch)
    store, settings = make_store(tmp_path), SETTINGS | {"descriptors": "pagerank,degree,clustering"}
    options = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    command = ["pretrain", str(store), "--method", "nodejepa", "--preset", "paper", *options]
    command += ["--device", "cpu", "--checkpoint-epochs", "1", "--workers"]
    done = CliRunner().invoke(app, [*command, "5", "--out", str(tmp_path / "no")])
    assert isinstance(done.exception, ConfigError)
    assert "5 processes are to share training.micro_batches=4" in str(done.exception)
    done = CliRunner().invoke(app, [*command, "2", "--out", str(tmp_path / "two")])
    assert done.exit_code == 0, done.output[-3000:]
    assert done.output.count("last loss") == 1  # the leader alone speaks
    done = CliRunner().invoke(app, [*command, "2", "--out", str(tmp_path / "two")])
    assert "already holds a run" in str(done.exception)
    estimator = make_method("nodejepa", preset="paper", settings=settings, device="cpu")
    estimator.fit(StoredGraph(store))
    found = load_tensors(tmp_path / "two" / "model.safetensors")[0]
    for name, tensor in estimator.encoder_.state_dict().items():
        torch.testing.assert_close(found[name], tensor, rtol=0, atol=1e-5)


# ------------------------------------------------------------------ Ray Train


RAY_COMMAND = ["pretrain", SMALL, "--method=nodejepa", "--preset=paper", "--device=cpu"]
RAY_COMMAND += [part for name, value in LONGER.items() for part in ("--set", f"{name}={value}")]
RAY_COMMAND += ["--ray", "--workers=2"]


@pytest.mark.slow
@pytest.mark.timeout(900)  # Ray alone starts half a dozen processes
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'nodejepa[ray]'")
def test_two_workers_of_ray_train_the_model_of_two_processes(tmp_path, monkeypatch, results):
    monkeypatch.setenv("NODEJEPA_CACHE", str(tmp_path / "cache"))
    out = tmp_path / "run"
    command = [sys.executable, "-m", "nodejepa", *RAY_COMMAND, "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    mine, wanted = load_tensors(out / "model.safetensors")[0], results["model"][0]
    assert mine.keys() == wanted.keys()
    assert all(tensor.equal(wanted[name]) for name, tensor in mine.items())


def test_a_cluster_of_ray_without_processors_is_an_error_that_says_what_is_missing(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    counts = iter([{}, {"CPU": 1.0}, {"CPU": 2.0}])
    _require_processors(lambda: next(counts), 2)
    with pytest.raises(TrainingError, match="only 1 of 2 CPUs free for 2 workers"):
        _require_processors(lambda: {"CPU": 1.0}, 2, seconds=0)


@pytest.mark.slow
def test_ray_that_is_missing_or_gives_up_is_an_error_of_training(tmp_path, monkeypatch):
    """Stands in for Ray, whose restarts would take minutes."""
    train, torch_train = ModuleType("ray.train"), ModuleType("ray.train.torch")
    asked = {}

    class TrainingFailedError(Exception):
        pass

    class TorchTrainer:
        def __init__(self, _loop, **settings):
            asked.update(settings)

        def fit(self):
            raise TrainingFailedError

    for name in ("FailureConfig", "RunConfig", "ScalingConfig"):
        setattr(train, name, dict)
    engine = ModuleType("ray")
    engine.init, engine.available_resources = dict, lambda: {"CPU": 2.0, "GPU": 2.0}
    train.TrainingFailedError = TrainingFailedError
    torch_train.TorchConfig, torch_train.TorchTrainer = dict, TorchTrainer
    there = {"ray": engine, "ray.train": train, "ray.train.torch": torch_train}
    for modules, message in (
        ({"ray": None, "ray.train": None}, "Ray Train is not installed"),
        (there, "one of 2 workers failed"),
    ):
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, name, module)
        done = CliRunner().invoke(app, [*RAY_COMMAND, "--out", str(tmp_path / "run")])
        assert isinstance(done.exception, TrainingError)
        assert message in str(done.exception)
    assert asked["scaling_config"]["num_workers"] == 2
    assert asked["run_config"] == {
        "storage_path": str(tmp_path / "run" / "ray"),
        "failure_config": {"max_failures": 3},
    }
