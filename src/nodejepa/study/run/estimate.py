"""How long will the cells take? Rough before anything was measured, good once records of the method exist."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nodejepa.data.catalogue import CATALOGUE
from nodejepa.study.run.cell import Cell
from nodejepa.study.run.encoder_store import encoder_folder
from nodejepa.study.run.measure import TIMED_EPOCHS, TIMED_SECONDS
from nodejepa.training.run import Run

# Seconds of an epoch per million units of work (see _work), one thread: the order of magnitude seen when the
# paper presets were first run. Only used where no record of the method exists yet.
_PACE = {
    "nodejepa": 0.2,
    "patchjepa": 0.04,
    "dgi": 0.3,
    "graphmae": 0.15,
    "bgrl": 0.4,
    "cca-ssg": 0.2,
    "supervised-gcn": 0.1,
}
_START_SECONDS = 4.0  # start of a process, loading a graph
_PROBE_SECONDS = 6.0  # both probes
_PATIENCES = 10  # a run that may stop early is taken to last so many times its patience
_FINETUNE_EPOCHS = 150  # with and without pretraining, before early stopping
_DOUBT_SECONDS = 120.0  # an estimate is not corrected by much before so long was measured


class Forecast:
    """Seconds of a cell, learned from what was measured before."""

    def __init__(self, records: Iterable[Mapping[str, Any]], runs: Path) -> None:
        known = [record for record in records if record["dataset"] in CATALOGUE]
        trained = [record for record in known if record.get("epoch_seconds")]
        self._pace = _PACE | _medians((r["method"], _pace(r)) for r in trained)
        self._pace_of_variant = _medians((_variant(r["method"], r.get("variant")), _pace(r)) for r in trained)
        self._finetuning = _medians(
            (r["dataset"], r["finetune_seconds"]) for r in known if r.get("finetune_seconds")
        )
        self._runs = runs

    def seconds(self, cell: Cell) -> float:
        """An encoder that is already there costs nothing."""
        usual = self._pace.get(cell.method, 0.2)
        work = _work(cell.dataset, cell.config)
        epoch = self._pace_of_variant.get(_variant(cell.method, cell.variant), usual) * work
        if cell.kind == "efficiency":
            again = TIMED_SECONDS if TIMED_EPOCHS * epoch < TIMED_SECONDS else 0.0
            return _START_SECONDS + TIMED_EPOCHS * epoch + again
        there = Run(encoder_folder(cell, self._runs)).model.exists()
        epochs = cell.epochs if cell.patience is None else min(cell.epochs, _PATIENCES * cell.patience)
        seconds = _START_SECONDS + (0.0 if there else epochs * epoch) + _PROBE_SECONDS
        return seconds + (self._finetune_seconds(cell.dataset) if cell.kind == "finetune" else 0.0)

    def _finetune_seconds(self, dataset: str) -> float:
        guess = _FINETUNE_EPOCHS * self._pace["supervised-gcn"] * _work(dataset, {})
        return self._finetuning.get(dataset, guess)


class Remaining:
    """How long the rest takes: the estimate, corrected by how wrong it was so far."""

    def __init__(self, estimates: Mapping[str, float], jobs: int) -> None:
        self._left, self._jobs, self._done = dict(estimates), jobs, 0.0

    def after(self, key: str, elapsed: float, *, measured: bool) -> float:
        """Seconds left when the cell is over and so much time is gone since the start."""
        estimate = self._left.pop(key)
        self._done += estimate if measured else 0.0  # what others measured says nothing about our pace
        correction = (elapsed * self._jobs + _DOUBT_SECONDS) / (self._done + _DOUBT_SECONDS)
        return sum(self._left.values()) * correction / self._jobs


def _work(dataset: str, config: Mapping[str, Any]) -> float:
    """Millions of units: a dense row counts 256, an edge 4, a pair of nodes under attention 0.08."""
    entry = CATALOGUE[dataset]
    pairs = entry.nodes**2 if config.get("predictor", {}).get("kind") == "attention" else 0
    return (256 * entry.nodes + 4 * entry.edges + 0.08 * pairs) / 1e6


def _pace(record: Mapping[str, Any]) -> float:
    seconds: float = record["epoch_seconds"]
    return seconds / _work(record["dataset"], record.get("config", {}))


def _variant(method: str, variant: str | None) -> str:
    return f"{method}/{variant}"


def _medians(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    seen: dict[str, list[float]] = {}
    for name, value in pairs:
        seen.setdefault(name, []).append(value)
    return {name: statistics.median(values) for name, values in seen.items()}
