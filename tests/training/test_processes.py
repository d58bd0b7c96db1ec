"""Several processes: the bits of one, whoever is killed, however many go on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch.distributed as dist

from nodejepa.errors import TrainingError
from nodejepa.training.processes import agree

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow
SETTINGS = {
    "encoder.hidden": 16,
    "encoder.layers": 2,
    "training.epochs": 3,
    "training.lr": 0.01,
    "parts": 8,
    "parts_per_step": 4,
    "units": 4,
}


def sail(folder, *orders):
    """The results of groups of processes, one after another."""
    (folder / "orders.json").write_text(json.dumps(orders))
    env = {**os.environ, "OMP_NUM_THREADS": "1", "NODEJEPA_CACHE": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.training.fleet", str(folder)],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "results.json").read_text())


def order(**changes):
    return {"settings": SETTINGS, **changes}


def test_the_number_of_processes_changes_no_bit(tmp_path):
    """Ordered sums: 1, 2, 3 and 4 processes give the weights of one without any group, to the bit."""
    alone, *groups = sail(
        tmp_path,
        order(),
        *(order(size=size, ordered=True) for size in (1, 2, 3, 4)),
        *(order(size=size, ordered=False) for size in (2, 4)),
    )
    (wanted,) = alone
    for group in groups[:4]:
        assert {rank["sha"] for rank in group} == {wanted["sha"]}
        assert {rank["loss"] for rank in group} == {wanted["loss"]}
    for group in groups[4:]:
        for rank in group:
            np.testing.assert_allclose(rank["weights"], wanted["weights"], atol=1e-5)
        assert len({rank["sha"] for rank in group}) == 1


def test_patches_in_processes_change_no_bit(tmp_path):
    patches = order(method="patchjepa", settings=SETTINGS | {"patches.count": 24})
    (alone,), pair = sail(tmp_path, patches, {**patches, "size": 2, "ordered": True})
    assert {rank["sha"] for rank in pair} == {alone["sha"]}


def test_a_group_that_lost_a_process_goes_on_in_any_number(tmp_path):
    """Rank 0 or rank 1 dies in the middle of an epoch; two, one and four processes go on to the same bits."""
    orders = [order()]
    for stop_rank in (0, 1):
        for size in (2, 1, 4):
            out = f"run-{stop_rank}-{size}"
            lost = order(size=2, ordered=True, stop_rank=stop_rank, stop_at=3, out=out)
            more = {"ordered": True} if size > 1 else {}
            orders += [lost, order(size=size, out=out, **more)]
    (alone,), *rest = sail(tmp_path, *orders)
    for lost, again in zip(rest[::2], rest[1::2], strict=True):
        assert {"code": 9} in lost
        assert any("another process is gone" in rank.get("error", "") for rank in lost)
        assert {rank["sha"] for rank in again} == {alone["sha"]}


def test_a_process_that_never_comes_is_missed(tmp_path):
    lonely, follower = sail(
        tmp_path,
        order(size=2, started=1, ordered=True, wait=2),
        order(size=3, started=2, ordered=True, wait=2),
    )
    assert "1 of 2 processes did not come within 2 s" in lonely[0]["error"]
    assert all("did not come" in rank["error"] for rank in follower)


def test_an_attempt_is_agreed_on_beside_the_keys_of_an_earlier_one():
    """A follower that reads the name of a dead attempt, complete with its answers, waits for the new one."""
    from threading import Thread

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
