"""Kills with resume, of one process and of a group's, and races: counts by outcome.

    OMP_NUM_THREADS=1 python -m tests.attack [--out tests/attack/record.json] [--seed 0] [--only STAGE]

Everything runs in processes forked from this one, which has the libraries loaded and has used none of them.
Good ends are ``accepted``, ``refused`` (exit code 2 and a clear error), ``same bits`` and ``one won``, with
whatever a comma adds; the exit code is 1 if there is any other.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import hashlib
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from tests.attack.ranks import kills_of_ranks

import nodejepa
import nodejepa.methods
import nodejepa.workflow
from nodejepa.cli import main

GOOD = {"accepted", "refused", "same bits", "one won", "killed too late"}
HANG_SECONDS = 30
SMALL = "--method nodejepa --preset paper --epochs 6 --checkpoint-epochs 2"
SMALL += " --set encoder.hidden=8 --set predictor.hidden=8"
QUICK = [*SMALL.split(), "--no-report"]
Counts = collections.Counter


class Hang(BaseException):
    """A command took longer than anybody should wait."""


def call(*arguments: object) -> str:
    """How a command ends in this process."""

    def hang(*_: object) -> None:
        raise Hang

    signal.signal(signal.SIGALRM, hang)
    signal.alarm(HANG_SECONDS)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            main([str(argument) for argument in arguments])
    except SystemExit as left:
        code = left.code or 0
    except Hang:
        return "hang"
    except BaseException as error:
        return f"traceback: {type(error).__name__}"
    finally:
        signal.alarm(0)
    return {0: "accepted", 2: "refused"}.get(
        code, f"bug: {said.getvalue()[-300:]}" if code == 1 else f"exit {code}"
    )


def forked(work: Callable[[], object]) -> int:
    """The id of a process that does the work and leaves with 0, or with the number that the work returns."""
    process = os.fork()
    if process == 0:
        code = 99
        try:
            with open(os.devnull, "w") as silence:
                os.dup2(silence.fileno(), 1)
                os.dup2(silence.fileno(), 2)
            found = work()
            code = found if isinstance(found, int) else 0
        finally:
            os._exit(code)
    return process


def ended(process: int, seconds: float = HANG_SECONDS * 4) -> str | int:
    """Its exit code, or the signal that ended it; one that hangs is ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return "hang"


def graph_files(folder: Path) -> tuple[Path, Path]:
    """Sixty nodes in two groups, as text."""
    chance = random.Random(3)
    pairs = [(chance.randrange(60), chance.randrange(60)) for _ in range(400)]
    kept = [(a, b) for a, b in pairs if a % 2 == b % 2 or chance.random() < 0.1]
    edges, nodes = folder / "edges.csv", folder / "nodes.csv"
    edges.write_text("source,target\n" + "".join(f"u{a},u{b}\n" for a, b in kept))
    rows = (
        f"u{i},{30 + 5 * (i % 2) + chance.gauss(0, 1):.3f},{chance.choice(['Rome', 'Oslo'])}\n"
        for i in range(60)
    )
    nodes.write_text("id,age,city\n" + "".join(rows))
    return edges, nodes


def embed(folder: Path, *more: object, out: str = "z.parquet") -> int:
    """embed-graph in this process: its exit code."""
    edges, nodes = folder / "edges.csv", folder / "nodes.csv"
    return {"accepted": 0, "refused": 2}.get(
        call("embed-graph", "--edges", edges, "--nodes", nodes, "--out", folder / out, *QUICK, *more), 1
    )


def digests(folder: Path) -> tuple[str, str] | None:
    """Those of the embeddings and the weights, if the manifest says that all is done."""
    try:
        manifest = json.loads((folder / "z.json").read_text())
        embeddings = hashlib.sha256((folder / "z.parquet").read_bytes()).hexdigest()
        (model,) = folder.glob("*/model.safetensors")
    except (OSError, ValueError):
        return None
    whole = manifest["embeddings"]["sha256"] == embeddings
    return (embeddings, hashlib.sha256(_weights(model)).hexdigest()) if whole else None


def _weights(path: Path) -> bytes:
    """The tensors behind a safetensors header, which also tells how long things took."""
    content = path.read_bytes()
    return content[8 + int.from_bytes(content[:8], "little") :]


def kills(folder: Path, number: int, chance: random.Random) -> Counts:
    """SIGKILL at a random moment, then --resume: the bits of an undisturbed run."""
    whole = folder / "whole"
    whole.mkdir()
    graph_files(whole)
    ended(forked(lambda: embed(whole)))  # compiles what is not compiled yet
    began = time.monotonic()
    assert ended(forked(lambda: embed(whole, "--force"))) == 0
    duration, wanted, counts = time.monotonic() - began, digests(whole), Counts()
    assert wanted is not None
    while counts.total() - counts["killed too late"] < number:
        here = folder / f"kill{counts.total()}"
        here.mkdir()
        graph_files(here)
        process = forked(lambda here=here: embed(here))
        time.sleep(chance.uniform(0, duration))
        os.kill(process, signal.SIGKILL)
        if ended(process) == 0:
            counts["killed too late"] += 1  # it had ended by itself: no attack
            shutil.rmtree(here)
            continue
        code = ended(forked(lambda here=here: embed(here, "--resume")))
        left = [path.name for path in [*here.glob(".z*"), *here.glob("z.run/.*.????????.*")]]
        if code != 0 or left:
            counts[f"lost: {code} {left}"] += 1
        else:
            counts["same bits" if digests(here) == wanted else "differs"] += 1
        shutil.rmtree(here)
    return counts


def in_child(folder: Path, work: Callable[[], Counts]) -> Counts:
    """Counts of work that one process does alone; if it dies, that is the outcome."""
    told = folder / "counts.json"
    code = ended(forked(lambda: told.write_text(json.dumps(work())) and 0), seconds=3600)
    return Counts(json.loads(told.read_text())) if code == 0 else Counts({f"process ended with {code}": 1})


def races(folder: Path, number: int, chance: random.Random) -> Counts:
    """Two processes with the same output: one wins, all is its own."""
    counts = Counts()
    for attempt in range(number):
        here = folder / f"race{attempt}"
        here.mkdir()
        graph_files(here)
        processes = []
        for seed in (0, 1):
            processes.append(forked(lambda h=here, s=seed: embed(h, "--seed", s)))
            time.sleep(chance.choice([0, 0, 0.05, 0.3]))
        codes = [ended(process) for process in processes]
        winner = codes.index(0) if codes.count(0) == 1 and codes.count(2) == 1 else None
        good = winner is not None and digests(here) is not None
        good = good and json.loads((here / "z.json").read_text())["seed"] == winner
        counts["one won" if good else f"race ended {codes}"] += 1
    return counts


def attack() -> int:
    """Run all of it and write the record."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("record.json"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the attacks, for a first look")
    parser.add_argument("--only", help="one of the stages; the others are kept as they are in the record")
    options = parser.parse_args()
    torch.set_num_threads(1)
    stages = {"kills": (kills, 50), "kills_of_ranks": (kills_of_ranks, 20), "races": (races, 20)}
    kept = json.loads(options.out.read_text()) if options.only else {}
    record: dict[str, object] = kept
    versions = {"nodejepa": nodejepa.__version__, "torch": torch.__version__, "seed": options.seed}
    bad = False
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NODEJEPA_CACHE"] = f"{folder}/cache"
        for name, (stage, number) in stages.items():
            if options.only not in (None, name):
                continue
            here = Path(folder) / name
            here.mkdir()
            number = max(1, round(number * options.scale))
            chance = random.Random(f"{name} {options.seed}")
            work = lambda stage=stage, here=here, number=number, chance=chance: stage(here, number, chance)  # noqa: E731
            counts = work() if name in ("kills", "races") else in_child(here, work)
            record[name] = versions | {end.replace(folder, "FOLDER"): counts[end] for end in sorted(counts)}
            bad |= bool({end.split(",")[0] for end in counts} - GOOD)
            print(f"{name}: {json.dumps(record[name], indent=1)}", flush=True)
    options.out.write_text(json.dumps(record, indent=2) + "\n")
    return int(bad)


if __name__ == "__main__":
    sys.exit(attack())
