"""Trained networks, kept by what made them: any study that asks for the same one gets it without training."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from torch import nn

from nodejepa.data import Dataset, Split
from nodejepa.errors import CheckpointError
from nodejepa.evaluation.finetune import FinetuneConfig, Tuned, fresh_encoder, tuning
from nodejepa.files import lock_file, parse_json, write_json
from nodejepa.methods import Estimator, find_method, make_estimator
from nodejepa.study.run.cell import Cell, config_hash
from nodejepa.study.run.scoring import fit_on
from nodejepa.training.logger import Logging
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


def scratch_score(method: Estimator, dataset: Dataset, split: Split, seed: int, runs: Path) -> Tuned:
    """The score of the method's network from random weights, read from ``runs`` if it was trained before."""
    config = FinetuneConfig()
    key = json.dumps(asdict(config), sort_keys=True) + split.hash + network_hash(fresh_encoder(method, seed))
    name = f"scratch-{hashlib.sha256(key.encode()).hexdigest()[:16]}-seed{seed}"
    path = runs / dataset.name / f"{name}.json"
    with alone(runs / dataset.name / name):
        if path.exists():
            return Tuned(**parse_json(path.read_bytes()))
        score = tuning(method, dataset.graph, dataset.labels, split, config, seed).from_scratch(method)
        write_json(path, asdict(score))
    return score


def network_hash(network: nn.Module) -> str:
    """Of everything that training depends on: the modules, their settings and every weight."""
    digest = hashlib.sha256()
    for name, module in network.named_modules():
        plain = (str, int, float, list, tuple)
        settings = {k: v for k, v in sorted(vars(module).items()) if isinstance(v, plain)}
        digest.update(f"{name} {type(module).__name__} {settings}".encode())
    for name, tensor in network.state_dict().items():
        digest.update(name.encode() + tensor.cpu().numpy().tobytes())
    return digest.hexdigest()
