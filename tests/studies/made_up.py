"""Made-up records near the paper's figures, with the fields that the runner writes."""

from __future__ import annotations

import random
from typing import Any

from studies.render.paper import (
    paper,
    paper_ablation,
    paper_accuracy,
    paper_fewshot,
    paper_total_seconds,
)

TRAINED = ("dgi", "graphmae", "bgrl", "cca-ssg", "supervised-gcn", "nodejepa", "patchjepa")
FLOORS = ("raw", "sgc", "random-gcn")
FLOOR_MEANS = {
    "raw": {"computers": 66.0, "photo": 78.0, "cs": 88.5, "physics": 88.0, "arxiv": 52.0},
    "sgc": {"computers": 82.0, "photo": 91.0, "cs": 91.5, "physics": 92.8, "arxiv": 66.0},
    "random-gcn": {"computers": 78.0, "photo": 87.8, "cs": 86.9, "physics": 89.6, "arxiv": 65.0},
}
DATASETS = ("computers", "photo", "cs", "physics", "arxiv")


def record(
    method: str, dataset: str, seed: int, accuracy: float | None = None, **more: Any
) -> dict[str, Any]:
    """One finished cell."""
    return {
        "study": "main",
        "kind": "probe",
        "method": method,
        "preset": "default" if method in FLOORS else "paper",
        "variant": None,
        "dataset": dataset,
        "split": "official" if dataset == "arxiv" else "20-30",
        "shots": None if dataset == "arxiv" else 20,
        "seed": seed,
        "status": "done",
        "reason": None,
        "test_accuracy": accuracy,
        "threads": 1,
    } | more


def made_up(kind: str, datasets: tuple[str, ...] = DATASETS, seeds: int = 5) -> list[dict[str, Any]]:
    """A whole study of one kind."""
    noise = random.Random(7)
    makers = {
        "main": _main,
        "collapse": _main,
        "fewshot": _fewshot,
        "ablation": _ablation,
        "efficiency": _efficiency,
        "finetune": _finetune,
    }
    return [
        {**made, "study": kind}
        for seed in range(42, 42 + seeds)
        for dataset in datasets
        for made in makers[kind](dataset, seed, noise)
    ]


def mean_of(method: str, dataset: str) -> float:
    found = paper_accuracy(method, dataset)
    return FLOOR_MEANS[method][dataset] if found is None else found.mean


def _main(dataset: str, seed: int, noise: random.Random) -> list[dict[str, Any]]:
    made = []
    for method in (*TRAINED, *FLOORS):
        printed = paper_accuracy(method, dataset)
        accuracy = mean_of(method, dataset) + noise.gauss(0.5, 0.6 if printed is None else printed.std or 0.1)
        rank = paper()["collapse"]["effective_rank"].get(method, {}).get(dataset, 30.0)
        more = {
            "test_accuracy_paper_probe": accuracy - 0.8,
            "effective_rank": rank * noise.uniform(0.8, 1.3),
            "mean_std": noise.uniform(0.05, 0.9),
            "participation_ratio": noise.uniform(1, 8),
            "participation_ratio_uncentred": noise.uniform(1, 3),
        }
        if method == "supervised-gcn":
            more["head_test_accuracy"] = accuracy + 1
        made.append(record(method, dataset, seed, accuracy, **more))
    return made


def _fewshot(dataset: str, seed: int, noise: random.Random) -> list[dict[str, Any]]:
    made = []
    for shots, loss in ((5, 8.0), (10, 4.0), (20, 0.0)):
        for method in (*TRAINED, *FLOORS):
            printed = paper_fewshot(method, dataset, shots)
            mean = mean_of(method, dataset) - loss if printed is None else printed.mean
            accuracy = mean + noise.gauss(0, 1)
            more = {"shots": shots, "split": f"{shots}-30", "test_accuracy_paper_probe": accuracy - 1.0}
            made.append(record(method, dataset, seed, accuracy, **more))
    return made


def _ablation(dataset: str, seed: int, noise: random.Random) -> list[dict[str, Any]]:
    names = ("A: full", "B: no structure", "C: attention", "D: no VICReg", "E: no isolation", "F: l2 loss")
    made = []
    for name in names:
        printed = paper_ablation(name[0], dataset)
        mean = 88.0 if printed is None else printed.mean
        accuracy = mean + noise.gauss(1, 0.5)
        more = {"test_accuracy_paper_probe": accuracy - 1.0, "prediction_share": {"1": 0.5, "300": 0.1}}
        made.append(record("nodejepa", dataset, seed, accuracy, variant=name, **more))
    return made


def _efficiency(dataset: str, seed: int, noise: random.Random) -> list[dict[str, Any]]:
    made = []
    for method in TRAINED:
        seconds = (paper_total_seconds(method, dataset) or 100.0) * noise.uniform(4, 9)
        more = {
            "epochs": 300,
            "epoch_seconds": seconds / 300,
            "total_seconds": seconds,
            "peak_memory_mb": 900.0,
        }
        if method in ("nodejepa", "patchjepa"):
            jump = 3 if method == "nodejepa" else 1
            pace = [1] * 24 + [jump] * 35
            more["seconds_by_epoch"] = [seconds / 300 / jump * step * noise.uniform(1, 1.2) for step in pace]
        made.append(record(method, dataset, seed, kind="efficiency", **more))
    return made


def _finetune(dataset: str, seed: int, noise: random.Random) -> list[dict[str, Any]]:
    return [
        record(
            method,
            dataset,
            seed,
            mean_of(method, dataset) + noise.gauss(0, 0.5),
            kind="finetune",
            finetune_test_accuracy=mean_of(method, dataset) + noise.gauss(2, 0.5),
            scratch_test_accuracy=mean_of("supervised-gcn", dataset) + noise.gauss(0, 0.5),
        )
        for method in TRAINED
    ]
