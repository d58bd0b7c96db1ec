"""How long will the cells take? Rough before anything was measured, good once records of the method exist."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nodejepa.data.catalogue import CATALOGUE
from nodejepa.study.cell import Cell
from nodejepa.study.encoders import encoder_folder
from nodejepa.study.measure import TIMED_EPOCHS
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
_PROBE_SECONDS = 10.0  # start of a process, loading, both probes
_PATIENCES = 10  # a run that may stop early is taken to last so many times its patience
_FINETUNE_EPOCHS = 400  # with and without pretraining, before early stopping


class Estimator:
    """Seconds of a cell, learned from what was measured before."""

    def __init__(self, records: Iterable[Mapping[str, Any]], runs: Path) -> None:
        paces: dict[str, list[float]] = {}
        for record in records:
            if record.get("epoch_seconds") and record["dataset"] in CATALOGUE:
                pace = record["epoch_seconds"] / _work(record["dataset"])
                paces.setdefault(record["method"], []).append(pace)
        self._pace = _PACE | {method: statistics.median(seen) for method, seen in paces.items()}
        self._runs = runs

    def seconds(self, cell: Cell) -> float:
        """An encoder that is already there costs nothing."""
        epoch = self._pace.get(cell.method, 0.2) * _work(cell.dataset)
        if cell.kind == "efficiency":
            return _PROBE_SECONDS + TIMED_EPOCHS * epoch
        there = Run(encoder_folder(cell, self._runs)).model.exists()
        epochs = cell.epochs if cell.patience is None else min(cell.epochs, _PATIENCES * cell.patience)
        seconds = _PROBE_SECONDS + (0.0 if there else epochs * epoch)
        if cell.kind == "finetune":
            seconds += _FINETUNE_EPOCHS * self._pace["supervised-gcn"] * _work(cell.dataset)
        return seconds


def in_words(seconds: float) -> str:
    """``40 s``, ``12 min`` or ``3.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _work(dataset: str) -> float:
    """Millions of units: a dense row counts 256, an edge counts 4."""
    entry = CATALOGUE[dataset]
    return (256 * entry.nodes + 4 * entry.edges) / 1e6
