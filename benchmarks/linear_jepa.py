"""Row ``linear_jepa``: embeddings of Physics in closed form against NodeJEPA as in the paper, end to end."""

from __future__ import annotations

import statistics

import torch

from benchmarks.timing import Row, best_of
from nodejepa.data import load_dataset
from nodejepa.methods import make_method
from nodejepa.training.logger import Logging

TIMED = 4  # epochs of each phase of the curriculum; the first also warms up and is not counted


def run() -> Row:
    graph = load_dataset("physics").graph

    def solve() -> None:
        make_method("linear-jepa").fit(graph).transform(graph)

    ours_s = best_of(solve, 2)
    paper = make_method("nodejepa", preset="paper", dataset="physics").config
    epochs, half = paper.training.epochs, paper.masking.curriculum_epochs // 2
    hops = {1: half, paper.masking.hops: epochs - half}  # epochs with masks of so many hops
    naive_s = sum(count * epoch_seconds(graph, hop) for hop, count in hops.items())
    note = (
        f"fit and transform on Physics, {torch.get_num_threads()} threads; NodeJEPA, preset paper: {epochs} "
        f"epochs at the pace of {TIMED - 1} with masks of 1 hop and {TIMED - 1} of {paper.masking.hops}, "
        "without preparation and transform"
    )
    return Row("linear_jepa", ours_s, naive_s, note)


def epoch_seconds(graph, hops: int) -> float:
    settings = {"masking.curriculum_epochs": 0, "masking.hops": hops, "training.epochs": TIMED}
    method = make_method("nodejepa", preset="paper", dataset="physics", settings=settings)
    method.fit(graph, logging=Logging(share_epochs=TIMED))
    return statistics.median(epoch["seconds"] for epoch in method.history_[1:])
