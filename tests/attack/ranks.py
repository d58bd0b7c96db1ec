"""SIGKILL of any process of a group at a random moment; as many processes go on to the same bits."""

from __future__ import annotations

import collections
import json
import os
import random
import signal
import time
from pathlib import Path

import torch
from tests.training import fleet

SETTINGS = {
    "encoder.hidden": 16,
    "encoder.layers": 2,
    "training.epochs": 12,
    "parts": 16,
    "parts_per_step": 4,
    "micro_batches": 4,
}
SIZES = (2, 3, 4)
LONGEST_SECONDS = 120.0  # for survivors to miss the dead one, and for a group to end


def order(size: int, out: Path) -> dict:
    return {"settings": SETTINGS, "size": size, "joined": True, "wait": 30, "out": str(out)}


def group(asked: dict, folder: Path, victim: int | None = None, seconds: float = 0.0) -> list[str]:
    """How each process ends: ``killed``, with the digest of its weights, with a clear error, or badly.

    Args:
        asked: as :mod:`tests.training.fleet` takes it.
        folder: where the processes tell how they end.
        victim: the rank to kill, if any.
        seconds: after which it is killed.
    """
    children = fleet.start(asked, folder)
    kill_at, hang_at = time.monotonic() + seconds, time.monotonic() + seconds + LONGEST_SECONDS
    codes: dict[int, int] = {}
    while len(codes) < len(children):
        for rank, process in enumerate(children):
            if rank not in codes and (found := os.waitpid(process, os.WNOHANG))[0]:
                codes[rank] = os.waitstatus_to_exitcode(found[1])
        if victim is not None and victim not in codes and time.monotonic() > kill_at:
            os.kill(children[victim], signal.SIGKILL)
            victim = None
        if time.monotonic() > hang_at:
            for rank in set(range(len(children))) - codes.keys():
                os.kill(children[rank], signal.SIGKILL)
                os.waitpid(children[rank], 0)
                codes[rank] = 124
        time.sleep(0.002)
    ends = []
    for rank, code in sorted(codes.items()):
        told = folder / f"rank-{rank}.json"
        found = json.loads(told.read_text()) if code == 0 else {}
        told.unlink(missing_ok=True)
        words = {-signal.SIGKILL: "killed", 124: "hang"}.get(code, f"exit code {code}")
        ends.append(found.get("sha") or ("refused" if "error" in found else words))
    return ends


def kills_of_ranks(folder: Path, number: int, chance: random.Random) -> collections.Counter[str]:
    """One kill a run, from the first to the last moment of it; what is left behind is gone on with.

    The others of the group must say that one is gone. Who goes on must end with the weights of as many
    processes that nobody disturbed.
    """
    torch.set_num_threads(1)
    fleet.train({"settings": SETTINGS}, None)  # loads what is loaded when first used, once for all
    counts: collections.Counter[str] = collections.Counter()
    began = time.monotonic()
    undisturbed = {size: group(order(size, folder / f"whole-{size}"), folder)[0] for size in SIZES}
    duration = (time.monotonic() - began) / len(SIZES)
    while counts.total() - counts["killed too late"] < number:
        out, size = folder / f"run{counts.total()}", chance.choice(SIZES)
        victim = chance.randrange(size)
        ends = group(order(size, out), folder, victim, chance.uniform(0, duration))
        if ends[victim] != "killed":
            counts["killed too late"] += 1
            continue
        begun = "in training" if (out / "checkpoint.safetensors").exists() else "before a checkpoint"
        others = {end for rank, end in enumerate(ends) if rank != victim}
        again, wanted = set(group(order(size, out), folder)) - {"nothing to do"}, undisturbed[size]
        if not others <= {"refused", wanted}:  # a follower may die when all is done
            counts[f"others ended with {sorted(others)}"] += 1
        elif again != {wanted}:
            counts["differs"] += 1
        else:
            counts[f"same bits, {'leader' if victim == 0 else 'follower'} killed {begun}"] += 1
    return counts
