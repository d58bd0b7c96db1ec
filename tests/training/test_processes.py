"""Several processes: the bits of one, whoever is killed, however many go on."""

import json
import os
import subprocess
import sys
import time
from itertools import chain
from pathlib import Path
from threading import Thread

import numpy as np
import psutil
import pytest
import torch
import torch.distributed as dist
from fleet import free_port
from typer.testing import CliRunner

from nodejepa.cli import app
from nodejepa.data import load_dataset
from nodejepa.errors import ConfigError, TrainingError
from nodejepa.methods import make_estimator
from nodejepa.training.checkpoint import load_tensors
from nodejepa.training.processes import agree
from nodejepa.training.run import Run

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
]  # half a minute of work, on machines that may be busy
SETTINGS = {
    "encoder.hidden": 16,
    "encoder.layers": 2,
    "training.epochs": 3,
    "training.lr": 0.01,
    "parts": 8,
    "parts_per_step": 4,
    "units": 4,
}


def order(**changes):
    return {"settings": SETTINGS, **changes}


PATCHES = {"method": "patchjepa", "settings": SETTINGS | {"patches.count": 24}}
LOST = ((0, 2), (1, 1), (1, 4))  # which rank of two dies, and how many go on
ORDERS = {
    "alone": [order()],
    "ordered": [order(size=size, ordered=True) for size in (1, 2, 3, 4)],
    "unordered": [order(size=size, ordered=False) for size in (2, 4)],
    "patches": [PATCHES, {**PATCHES, "size": 2, "ordered": True}],
    "lost": [
        order(size=2, ordered=True, stop_rank=rank, stop_at=3, out=f"run-{rank}-{size}")
        for rank, size in LOST
    ],
    "again": [
        order(size=size, out=f"run-{rank}-{size}", **({"ordered": True} if size > 1 else {}))
        for rank, size in LOST
    ],
    "missing": [
        order(size=2, started=1, ordered=True, wait=2),
        order(size=3, started=2, ordered=True, wait=2),
    ],
    "taken": [order(size=2, ordered=True, out="taken")],
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What groups of processes end with, one group after another, all from one process."""
    folder = tmp_path_factory.mktemp("fleet")
    (folder / "orders.json").write_text(json.dumps([*chain(*ORDERS.values())]))
    env = {**os.environ, "OMP_NUM_THREADS": "1", "NODEJEPA_CACHE": str(folder / "cache")}
    with Run(folder / "taken").owned():
        done = subprocess.run(
            [sys.executable, "-m", "tests.training.fleet", str(folder)],
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    found = iter(json.loads((folder / "results.json").read_text()))
    left = [path.name for path in (folder / "taken").iterdir()]
    return {name: [next(found) for _ in orders] for name, orders in ORDERS.items()} | {"left": left}


def test_the_number_of_processes_changes_no_bit(results):
    """Ordered sums: 1, 2, 3 and 4 processes give the weights of one without any group, to the bit."""
    ((wanted,),) = results["alone"]
    for group in results["ordered"]:
        assert {rank["sha"] for rank in group} == {wanted["sha"]}
        assert {rank["loss"] for rank in group} == {wanted["loss"]}
    for group in results["unordered"]:
        for rank in group:
            np.testing.assert_allclose(rank["weights"], wanted["weights"], atol=1e-5)
        assert len({rank["sha"] for rank in group}) == 1


def test_patches_in_processes_change_no_bit(results):
    (alone,), pair = results["patches"]
    assert {rank["sha"] for rank in pair} == {alone["sha"]}


def test_a_group_that_lost_a_process_goes_on_in_any_number(results):
    """Rank 0 or rank 1 dies in the middle of an epoch; two, one and four processes go on to the same bits."""
    ((alone,),) = results["alone"]
    for lost, again in zip(results["lost"], results["again"], strict=True):
        assert {"code": 9} in lost
        assert any("another process is gone" in rank.get("error", "") for rank in lost)
        assert {rank["sha"] for rank in again} == {alone["sha"]}


def test_a_process_that_never_comes_is_missed(results):
    lonely, follower = results["missing"]
    assert "do not find each other" in lonely[0]["error"]
    assert "1/2 clients joined" in lonely[0]["error"]
    for rank in follower:
        assert any(words in rank["error"] for words in ("do not find each other", "did not come"))


def test_a_second_group_leaves_the_folder_of_the_first_alone(results):
    ((leader, follower),) = results["taken"]
    assert "another process is using the run folder" in leader["error"]
    # it hears of it while the two still meet, or after
    assert any(words in follower["error"] for words in ("another process is gone", "do not find each other"))
    assert results["left"] == [".lock"]


def test_an_attempt_is_agreed_on_beside_the_keys_of_an_earlier_one():
    """A follower that reads the name of a dead attempt, complete with its answers, waits for the new one."""
    store = dist.HashStore()
    names = []

    def attempt():
        followers = [Thread(target=lambda: names.append(agree(store, 1, 2, 20)))]
        for follower in followers:
            follower.start()
        names.append(agree(store, 0, 2, 20))
        for follower in followers:
            follower.join()

    attempt()
    attempt()
    assert names[0] == names[1] != names[2] == names[3]
    with pytest.raises(TrainingError, match="1 of 2 processes did not come"):
        agree(store, 0, 2, 0.1)
    with pytest.raises(TrainingError, match="the first of 2 processes did not come"):
        agree(store, 1, 2, 0.1)


def workers_of(agent):
    """Rank -> process of the workers that a torchrun agent has started."""
    found = {}
    for child in psutil.Process(agent.pid).children(recursive=True):
        try:
            if "nodejepa.worker" in child.cmdline():
                found[int(child.environ()["RANK"])] = child
        except (psutil.Error, KeyError):
            continue  # it ends, or is not yet what it will be
    return found


def training(checkpoint, agent, old, since):
    """The workers of an agent, none of them an old one, if there is a new checkpoint."""
    here = [child for child in workers_of(agent).values() if child.pid not in old]
    return here if checkpoint.exists() and checkpoint.stat().st_mtime_ns > since else None


def wait_for(condition, agents, *more):
    while not (found := condition(*more)):
        assert all(agent.poll() is None for agent in agents), "an agent has ended too early"
        time.sleep(0.02)
    return found


def test_two_machines_restart_killed_workers_and_end_in_the_bits_of_one_process(tmp_path, monkeypatch):
    """Two torchrun agents on loopback; the worker of one is killed, and then that of the other."""
    monkeypatch.setenv("NODEJEPA_CACHE", str(tmp_path / "cache"))
    settings = {**SETTINGS, "training.epochs": 20, "parts": 16}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        make_estimator("nodejepa", preset="paper", settings=settings, device="cpu").fit(
            load_dataset("digits").graph, out=tmp_path / "alone"
        )
    finally:
        torch.set_num_threads(threads)
    out = tmp_path / "run"
    elastic = "--nnodes=2 --nproc-per-node=1 --max-restarts=3 --rdzv-backend=c10d --rdzv-id=mine"
    where = f"--local-addr=127.0.0.1 --rdzv-endpoint=127.0.0.1:{free_port()}"
    options = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    worker = [
        "nodejepa.worker",
        "digits",
        "--out",
        str(out),
        "--method=nodejepa",
        "--preset=paper",
        "--checkpoint-steps=1",
        "--device=cpu",
        *options,
    ]
    command = [sys.executable, "-m", "torch.distributed.run", *elastic.split(), *where.split(), "-m", *worker]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "LOGLEVEL": "ERROR"}
    env |= {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}
    checkpoint, logs = out / "checkpoint.safetensors", [(tmp_path / f"agent-{i}").open("w") for i in (0, 1)]
    agents = [subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT) for log in logs]
    try:
        old, since = set(), 0
        for agent in agents:
            (victim,) = wait_for(lambda *these: training(checkpoint, *these), agents, agent, old, since)
            old |= {child.pid for other in agents for child in workers_of(other).values()}
            since = checkpoint.stat().st_mtime_ns
            victim.kill()
        assert [agent.wait() for agent in agents] == [0, 0]
    finally:
        for agent in agents:
            for child in psutil.Process(agent.pid).children(recursive=True) if agent.poll() is None else []:
                child.kill()
            agent.kill()
            agent.wait()
        for log in logs:
            log.close()
    mine, wanted = (load_tensors(folder / "model.safetensors") for folder in (out, tmp_path / "alone"))
    assert mine[0].keys() == wanted[0].keys()
    assert all(tensor.equal(wanted[0][name]) for name, tensor in mine[0].items())
    assert [r["loss"] for r in mine[1]["history"]] == [r["loss"] for r in wanted[1]["history"]]


def test_the_command_starts_workers_and_ends_in_the_bits_of_one(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("NODEJEPA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    options = [part for name, value in SETTINGS.items() for part in ("--set", f"{name}={value}")]
    common = [
        "pretrain",
        "digits",
        *("--method", "nodejepa", "--preset", "paper"),
        *options,
        "--device",
        "cpu",
        "--checkpoint-steps",
        "1",
    ]
    for arguments, message in (
        (["--workers", "5"], "5 workers are to share training.units=4"),
        (["--workers", "2", "--method", "linear-jepa"], "not trained in steps"),
    ):
        chosen = ["pretrain", "digits"] if "linear-jepa" in arguments else common
        done = CliRunner().invoke(app, [*chosen, *arguments, "--out", str(tmp_path / "no")])
        assert isinstance(done.exception, ConfigError)
        assert message in str(done.exception)
    out = str(tmp_path / "two")
    done = CliRunner().invoke(app, [*common, "--workers", "2", "--out", out])
    said = capfd.readouterr()
    assert done.exit_code == 0, said.err[-3000:]
    assert said.out.count("last loss") == 1  # the leader alone speaks
    done = CliRunner().invoke(app, [*common, "--workers", "2", "--out", out])
    assert "already holds a run" in str(done.exception)
    estimator = make_estimator("nodejepa", preset="paper", settings=SETTINGS, device="cpu")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        estimator.fit(load_dataset("digits").graph)
    finally:
        torch.set_num_threads(threads)
    found = load_tensors(tmp_path / "two" / "model.safetensors")[0]
    assert all(tensor.equal(found[name]) for name, tensor in estimator.encoder_.state_dict().items())
