"""Measuring one cell: from a specification to the record that tables are made of."""

from __future__ import annotations

import hashlib
import statistics
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from nodejepa.data import Dataset, Split, load_dataset
from nodejepa.diagnostics import diagnose
from nodejepa.evaluation import finetune, linear_probe
from nodejepa.graph_checks import Features
from nodejepa.methods import Estimator, find_method, make_estimator, make_method
from nodejepa.methods.estimator import versions
from nodejepa.study.run.cell import Cell
from nodejepa.study.run.encoder_store import trained_encoder
from nodejepa.study.run.heads import score_head
from nodejepa.study.run.records import Record
from nodejepa.study.run.scratch import scratch_score

TIMED_EPOCHS = 6  # of an efficiency cell; the first also warms up and is not counted
TIMED_SECONDS = 5.0  # short epochs are timed again, as many as fit into this


def measure(cell: Cell, runs: Path, data_root: Path | None = None) -> Record:
    """Do what the cell asks for; accuracies are in percent."""
    dataset = load_dataset(cell.dataset, data_root)
    split = dataset.split(cell.split, seed=cell.seed)
    if cell.kind == "efficiency":
        found = _efficiency(cell, dataset)
    else:
        method, embeddings = _embed(cell, dataset, split, runs)
        found = _training(method) | _probe(embeddings, dataset, split)
        if cell.kind == "finetune":
            found |= _finetune(cell, method, dataset, split, runs)
        elif find_method(cell.method).supervised:
            head = score_head(method, dataset, split)
            found |= {"head_test_accuracy": head.test_accuracy, "head_val_accuracy": head.val_accuracy}
    return {
        **found,
        "split_hash": split.hash,
        "split_sizes": [len(split.train), len(split.val), len(split.test)],
        "graph_hash": dataset.graph.content_hash,
        "threads": torch.get_num_threads(),
        "versions": versions(),
        "source_hash": source_hash(Path(__file__).parents[2]),
    }


def source_hash(package: Path) -> str:
    """Of the code: tells records apart that the same settings gave before and after a change of it."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _embed(cell: Cell, dataset: Dataset, split: Split, runs: Path) -> tuple[Estimator | None, Features]:
    if find_method(cell.method).trained:
        estimator = trained_encoder(cell, dataset, split, runs)
        return estimator, estimator.transform(dataset.graph)
    floor = make_method(cell.method, dataset=cell.dataset, seed=cell.seed)
    return None, floor.fit(dataset.graph).transform(dataset.graph)


def _probe(embeddings: Features, dataset: Dataset, split: Split) -> Record:
    fair, paper = (
        linear_probe(embeddings, dataset.labels, [split], mode=m).scores[0] for m in ("fair", "paper")
    )
    geometry = diagnose(embeddings)
    return {
        "test_accuracy": fair.test_accuracy,
        "val_accuracy": fair.val_accuracy,
        "balanced_accuracy": fair.balanced_accuracy,
        "macro_f1": fair.macro_f1,
        "roc_auc": fair.roc_auc,
        "test_accuracy_paper_probe": paper.test_accuracy,
        "val_accuracy_paper_probe": paper.val_accuracy,
        "probe": {"scaling": fair.scaling, "C": fair.C, "converged": fair.converged},
        "effective_rank": geometry.effective_rank,
        "mean_std": geometry.mean_std,
        "participation_ratio": geometry.participation_ratio_centred,
        "participation_ratio_uncentred": geometry.participation_ratio_uncentred,
        "collapsed": geometry.collapsed,
        "verdict": geometry.verdict,
    }


def _training(method: Estimator | None) -> Record:
    """Time and memory of the training that made the encoder, whenever that was."""
    history = [] if method is None else method.history_
    seconds = [epoch["seconds"] for epoch in history]
    return {
        "epochs": len(history),
        "train_seconds": round(sum(seconds), 3),
        "epoch_seconds": round(statistics.median(seconds), 4) if seconds else None,
        "peak_memory_mb": round(max(epoch["peak_memory_mb"] for epoch in history), 1) if history else None,
        "final_loss": history[-1].get("loss") if history else None,
    }


def _finetune(cell: Cell, method: Any, dataset: Dataset, split: Split, runs: Path) -> Record:
    """Trained on from the cell's encoder, and from random weights."""
    started = time.monotonic()
    tuned = finetune(method, dataset.graph, dataset.labels, split, seed=cell.seed, baseline=False)
    scratch = scratch_score(method, dataset, split, cell.seed, runs)
    return {
        "finetune_test_accuracy": tuned.test_accuracy,
        "finetune_val_accuracy": tuned.val_accuracy,
        "finetune_epochs": tuned.epochs,
        "finetune_seconds": round(time.monotonic() - started, 1),
        **{f"scratch_{name}": value for name, value in asdict(scratch).items()},
    }


def _efficiency(cell: Cell, dataset: Dataset) -> Record:
    """Median seconds of a few epochs, and what the whole training would take at that pace."""
    seconds, memory = _time_epochs(cell, dataset, TIMED_EPOCHS)
    in_time = int(TIMED_SECONDS / statistics.median(seconds))
    if in_time > len(seconds):  # short epochs are soon disturbed: more of them
        seconds, _ = _time_epochs(cell, dataset, 1 + in_time)
    epoch_seconds = statistics.median(seconds)
    return {
        "epochs": cell.epochs,
        "timed_epochs": len(seconds),
        "epoch_seconds": round(epoch_seconds, 4),
        "epoch_seconds_range": [round(min(seconds), 4), round(max(seconds), 4)],
        "total_seconds": round(epoch_seconds * cell.epochs, 1),
        "peak_memory_mb": memory,
    }


def _time_epochs(cell: Cell, dataset: Dataset, count: int) -> tuple[list[float], float]:
    """Seconds of each epoch behind the first, which also warms up, and the peak memory of the process."""
    few = min(cell.epochs, count)
    estimator: Any = make_estimator(
        cell.method,
        preset=cell.preset,
        dataset=cell.dataset,
        seed=cell.seed,
        settings={**cell.settings, "training.epochs": few},
    )
    if find_method(cell.method).supervised:
        estimator.fit(dataset.graph, labels=dataset.labels, split=dataset.split(cell.split, seed=cell.seed))
    else:
        estimator.fit(dataset.graph)
    seconds = [epoch["seconds"] for epoch in estimator.history_]
    return seconds[1:] or seconds, round(estimator.history_[-1]["peak_memory_mb"], 1)
