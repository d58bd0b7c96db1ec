"""Seconds per epoch and peak memory of the JEPA methods on every graph, beside the paper's A100 totals.

``python -m benchmarks.epochs [dataset ...]`` measures a few epochs after the curriculum (its costliest part),
each method and graph in a fresh process, and merges the rows into ``benchmarks/epochs.json``. Totals are
seconds per epoch times the paper's epochs. ``python -m benchmarks.epochs --profile DATASET METHOD`` shows
where the time goes.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

from nodejepa.data import load_dataset
from nodejepa.errors import DataError
from nodejepa.files import write_json
from nodejepa.methods import make_estimator
from nodejepa.nn.inputs import GraphInputs
from nodejepa.training.loop import peak_memory_mb
from nodejepa.training.task import Moment

RESULTS = Path(__file__).with_name("epochs.json")
METHODS = ("nodejepa", "patchjepa")
PAPER_SECONDS = {  # one A100, the paper's appendix, Table "Mean total training wall-clock time"
    "photo": {"nodejepa": 108.4, "patchjepa": 107.2},
    "computers": {"nodejepa": 168.3, "patchjepa": 113.5},
    "cs": {"nodejepa": 506.4, "patchjepa": 76.6},
    "physics": {"nodejepa": 1585.5, "patchjepa": 150.8},
    "synthetic-arxiv": {"nodejepa": 31582.3, "patchjepa": 2466.3},  # the paper: ogbn-arxiv, same size
}
FIRST = 60  # the curriculum has ended


class Epochs:
    """A task with its optimiser, run epoch by epoch as the training loop does."""

    def __init__(self, dataset: str, method: str) -> None:
        estimator = make_estimator(method, preset="paper", dataset=dataset, seed=0)
        self.total = estimator.config.training.epochs
        torch.manual_seed(0)
        self.task = estimator.make_task(GraphInputs(load_dataset(dataset).graph))
        self.parameters = [p for p in self.task.parameters() if p.requires_grad]
        self.optimiser = torch.optim.AdamW(self.parameters, lr=1e-3, weight_decay=1e-4)
        self.epoch = FIRST

    def run(self) -> float:
        started = time.perf_counter()
        for step in range(self.task.steps_per_epoch):
            self.optimiser.zero_grad(set_to_none=True)
            self.task.losses(Moment(0, self.epoch, step, 0.3))["loss"].backward()
            torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
            self.optimiser.step()
            self.task.after_step(0.3)
        self.epoch += 1
        return time.perf_counter() - started


def measure(dataset: str, method: str) -> dict[str, object]:
    epochs = Epochs(dataset, method)
    epochs.run()  # warm up
    seconds = [epochs.run() for _ in range(3 if dataset == "synthetic-arxiv" else 7)]
    per_epoch = statistics.median(seconds)
    return {
        "dataset": dataset,
        "method": method,
        "epoch_seconds": round(per_epoch, 4),
        "total_seconds": round(per_epoch * epochs.total, 1),
        "paper_a100_seconds": PAPER_SECONDS[dataset][method],
        "peak_memory_mb": round(peak_memory_mb()),
        "threads": torch.get_num_threads(),
    }


def profile(dataset: str, method: str) -> None:
    epochs = Epochs(dataset, method)
    epochs.run()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        epochs.run()
    print(profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=15))


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--row"]:
        print(json.dumps(measure(*arguments[1:])))
        return
    if arguments[:1] == ["--profile"]:
        profile(*arguments[1:])
        return
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    rows = {(row["dataset"], row["method"]): row for row in known}
    for dataset in arguments or PAPER_SECONDS:
        for method in METHODS:
            command = [sys.executable, "-m", "benchmarks.epochs", "--row", dataset, method]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            row = rows[dataset, method] = json.loads(done.stdout.splitlines()[-1])
            print(json.dumps(row), flush=True)
    order = [(dataset, method) for dataset in PAPER_SECONDS for method in METHODS]
    write_json(RESULTS, [rows[key] for key in order if key in rows])


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except DataError as error:
        sys.exit(str(error))
