"""Trained encoders, kept by what made them: any study that asks for the same one gets it without training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nodejepa.data import Dataset, Split
from nodejepa.errors import CheckpointError
from nodejepa.locks import lock_file
from nodejepa.methods import Estimator, find_method, make_estimator
from nodejepa.study.run.cell import Cell
from nodejepa.study.run.fit import fit_on
from nodejepa.study.run.identity import config_hash
from nodejepa.training.journal import Logging
from nodejepa.training.run import Run


def trained_encoder(cell: Cell, dataset: Dataset, split: Split, runs: Path) -> Estimator:
    """The cell's method, fitted: restored from ``runs`` if it is there, resumed if it was begun.

    A method without labels does not depend on the split, so all splits of a seed share one encoder.
    """
    folder = encoder_folder(cell, runs)
    estimator = make_estimator(
        cell.method, preset=cell.preset, dataset=cell.dataset, seed=cell.trained_with, settings=cell.settings
    )
    logging = Logging(description=cell.label, share_epochs=10)
    with alone(folder):
        return fit_on(estimator, dataset, split, out=folder, resume=True, logging=logging)


def encoder_folder(cell: Cell, runs: Path) -> Path:
    """Where the cell's encoder is, or will be: the name tells everything that its weights depend on.

    A folder of an older version bears the hash of its time; its settings tell whether it is the same encoder.
    """
    end = f"-seed{cell.trained_with}" + (f"-{cell.split}" if find_method(cell.method).supervised else "")
    folder = runs / cell.dataset / f"{cell.method}-{cell.config_hash}{end}"
    if folder.exists():
        return folder
    older = (path for path in sorted(folder.parent.glob(f"{cell.method}-{'?' * 16}{end}")))
    return next((path for path in older if _config_hash(path, cell.method) == cell.config_hash), folder)


def _config_hash(folder: Path, method: str) -> str | None:
    try:
        facts = Run(folder).read_config()
    except CheckpointError:
        return None
    return config_hash(method, facts["config"]) if isinstance(facts.get("config"), dict) else None


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Wait while another process makes the same thing; afterwards it is there to be read."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with lock_file(folder.parent / f".{folder.name}.wait", wait=True):
        yield
