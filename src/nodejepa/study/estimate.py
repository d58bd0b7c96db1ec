"""How long will the cells take? Rough before anything was measured, good once records of the method exist."""

import statistics
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from nodejepa.config import flatten
from nodejepa.data.catalogue import CATALOGUE
from nodejepa.methods import METHODS
from nodejepa.methods.budget import Workload, budget
from nodejepa.methods.migrations import config_of_today
from nodejepa.study.measure import TIMED_SECONDS, encoder_folder, timed_epochs
from nodejepa.study.spec import Cell
from nodejepa.training.run import Run

Key = TypeVar("Key")
_NOMINAL_SPEED = 5e10  # operations a second of one thread; records correct it
_WORDS_PER_NODE = 60  # of features that the catalogue does not call dense
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
        self._pace = _medians((r["method"], _pace(r)) for r in trained)
        self._pace_of_variant = _medians(((r["method"], r.get("variant")), _pace(r)) for r in trained)
        self._finetuning = _medians(
            (r["dataset"], r["finetune_seconds"]) for r in known if r.get("finetune_seconds")
        )
        self._runs = runs

    def all_seconds(self, cells: Iterable[Cell]) -> Iterator[float]:
        """Of one after another: an encoder that several share is trained by the first of them."""
        asked: set[Path] = set()
        for cell in cells:
            folder = encoder_folder(cell, self._runs)
            yield self.seconds(cell, trained=folder in asked)
            asked.add(folder)

    def seconds(self, cell: Cell, *, trained: bool = False) -> float:
        """An encoder that is already there costs nothing."""
        usual = self._pace.get(cell.method, 1.0)
        work = _epoch_seconds(cell.method, cell.dataset, cell.config)
        epoch = self._pace_of_variant.get((cell.method, cell.variant), usual) * work
        if cell.kind == "efficiency":
            timed = timed_epochs(cell) * epoch
            return _START_SECONDS + timed + (TIMED_SECONDS if timed < TIMED_SECONDS else 0.0)
        there = trained or Run(encoder_folder(cell, self._runs)).model.exists()
        epochs = cell.epochs if cell.patience is None else min(cell.epochs, _PATIENCES * cell.patience)
        seconds = _START_SECONDS + (0.0 if there else epochs * epoch) + _PROBE_SECONDS
        if cell.kind != "finetune":
            return seconds
        pace = self._pace.get("supervised-gcn", 1.0)
        guess = _FINETUNE_EPOCHS * pace * _epoch_seconds("supervised-gcn", cell.dataset, {})
        return seconds + self._finetuning.get(cell.dataset, guess)


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


def _epoch_seconds(method: str, dataset: str, config: Mapping[str, Any]) -> float:
    """What the method's cost model says of one epoch (of all of it, where it is solved in closed form)."""
    entry, known = CATALOGUE[dataset], METHODS.get(method)
    if known is None or not known.trained:
        return 0.0
    dense = entry.nodes * entry.features
    filled = min(dense, _WORDS_PER_NODE * entry.nodes)
    sizes = Workload(entry.nodes, entry.edges, entry.features, filled, dense == filled)
    settings = config_of_today(method, known.config_class, config)
    found = budget(known, settings, sizes, operations_per_second=_NOMINAL_SPEED)
    return found.seconds / max(int(flatten(settings).get("training.epochs", 1)), 1)


def _pace(record: Mapping[str, Any]) -> float:
    """How much slower an epoch was than the cost model thought."""
    expected = _epoch_seconds(record["method"], record["dataset"], record.get("config", {}))
    seconds: float = record["epoch_seconds"]
    return seconds / expected if expected > 0 else 1.0


def _medians(pairs: Iterable[tuple[Key, float]]) -> dict[Key, float]:
    seen: dict[Key, list[float]] = {}
    for name, value in pairs:
        seen.setdefault(name, []).append(value)
    return {name: statistics.median(values) for name, values in seen.items()}
