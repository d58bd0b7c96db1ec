"""SIGKILL of any process of a group at random moments; the group starts again, in another number, to the end.

    OMP_NUM_THREADS=1 python -m tests.attack.ranks [--kills 20] [--seed 0]

The exit code is 1 unless every run ended in the bits of one undisturbed process.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import signal
import sys
import tempfile
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
    "units": 4,
}


def attempt(order: dict, folder: Path, seconds: float, chance: random.Random) -> tuple[bool, list[dict]]:
    """Start a group, kill one of it after some seconds; whether that came in time, and what was told."""
    children = fleet.start(order, folder)
    until, victim, open_ = time.monotonic() + seconds, chance.choice(children), set(children)
    killed = False
    while open_:
        for process in sorted(open_):
            if os.waitpid(process, os.WNOHANG)[0]:
                open_.discard(process)
        if not killed and time.monotonic() > until:
            killed = victim in open_
            if not killed:
                until = float("inf")
            else:
                os.kill(victim, signal.SIGKILL)
        time.sleep(0.002)
    told = sorted(folder.glob("rank-*.json"))
    results = [json.loads(path.read_text()) for path in told]
    for path in told:
        path.unlink()
    return killed, results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    chance, counts = random.Random(asked.seed), collections.Counter()
    wanted = fleet.train({"settings": SETTINGS}, None)["sha"]  # also loads what is loaded when first used
    started = time.monotonic()
    fleet.train({"settings": SETTINGS}, None)
    whole = 3 * (time.monotonic() - started)
    kills, number = 0, 0
    with tempfile.TemporaryDirectory() as place:
        while kills < asked.kills:
            number += 1
            ended: list[dict] = []
            for _ in range(50):
                size = chance.choice((2, 3, 4))
                order = {
                    "settings": SETTINGS,
                    "size": size,
                    "ordered": True,
                    "wait": 30,
                    "out": f"run-{number}",
                }
                seconds = chance.random() * whole if kills < asked.kills else float("inf")
                killed, ended = attempt(order, Path(place), seconds, chance)
                kills += killed
                print(f"{order['out']}: {size} processes, {'killed' if killed else 'ended'}", file=sys.stderr)
                if not killed:
                    break
            told = {result.get("sha", "nothing") for result in ended}
            # who finds a finished run has trained nothing; the leader has loaded it
            counts["same bits" if told <= {wanted, "nothing"} and wanted in told else "other bits"] += 1
    print(json.dumps({"kills": kills, "runs": number, **counts}))
    return 0 if set(counts) == {"same bits"} else 1


if __name__ == "__main__":
    sys.exit(main())
