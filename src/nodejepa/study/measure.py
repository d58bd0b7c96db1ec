"""Measuring one cell: from a specification to the record that tables are made of.

Trained networks are kept in ``runs`` by what made them: a study that asks for the same one again gets it
without training.
"""

import statistics
import time
from pathlib import Path
from typing import Any

import torch

from nodejepa.data import Dataset, Split, load_dataset
from nodejepa.diagnostics import diagnose
from nodejepa.errors import CheckpointError
from nodejepa.evaluation import finetune, linear_probe
from nodejepa.evaluation.scoring import fit_on, score_head
from nodejepa.files import lock_file, source_hash, versions
from nodejepa.graph_checks import Features
from nodejepa.methods import Estimator, find_method, make_method
from nodejepa.methods.nodejepa import MaskingConfig
from nodejepa.study.records import Record
from nodejepa.study.spec import Cell, config_hash
from nodejepa.training.logger import Logging
from nodejepa.training.run import Run

TIMED_EPOCHS = 6  # of an efficiency cell; the first also warms up and is not counted
LOOKED_AT_EPOCHS = ("1", "10", "100")  # and the last: where records show the prediction term's share
SETTLED_EPOCHS = 10  # timed behind the end of a curriculum
TIMED_SECONDS = 5.0  # short epochs are timed again, as many as fit into this


def measure(cell: Cell, runs: Path, data_root: Path | None = None) -> Record:
    """Do what the cell asks for; accuracies are in percent."""
    dataset = load_dataset(cell.dataset, data_root)
    split = dataset.split(cell.split, seed=cell.seed)
    if cell.kind == "efficiency":
        found = _efficiency(cell, dataset)
    else:
        method, embeddings = _embed(cell, dataset, split, runs)
        found = _training(cell, method, runs) | _probe(embeddings, dataset, split)
        if cell.kind == "finetune":
            found |= _finetune(cell, method, dataset, split)
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
        "source_hash": source_hash(),
    }


def _embed(cell: Cell, dataset: Dataset, split: Split, runs: Path) -> tuple[Estimator | None, Features]:
    if find_method(cell.method).trained:
        estimator = trained_encoder(cell, dataset, split, runs)
        return estimator, estimator.transform(dataset.graph)
    untrained = make_method(cell.method, dataset=cell.dataset, seed=cell.seed)
    return None, untrained.fit(dataset.graph).transform(dataset.graph)


def _probe(embeddings: Features, dataset: Dataset, split: Split) -> Record:
    fair, paper = (
        linear_probe(embeddings, dataset.labels, [split], mode=m).scores[0] for m in ("fair", "paper")
    )
    geometry = diagnose(embeddings)
    scores = ("test_accuracy", "val_accuracy", "balanced_accuracy", "macro_f1", "roc_auc")
    shape = ("effective_rank", "effective_rank_uncentred", "mean_std", "participation_ratio_uncentred")
    return {
        **{name: getattr(fair, name) for name in scores},
        "test_accuracy_paper_probe": paper.test_accuracy,
        "val_accuracy_paper_probe": paper.val_accuracy,
        "probe": {"scaling": fair.scaling, "C": fair.C, "converged": fair.converged},
        **{name: getattr(geometry, name) for name in (*shape, "collapsed", "verdict")},
        "participation_ratio": geometry.participation_ratio_centred,
    }


def _training(cell: Cell, method: Estimator | None, runs: Path) -> Record:
    """Time, memory, gradients and code of the training that made the encoder, whenever that was."""
    history = [] if method is None else method.history_
    shares = {str(e["epoch"]): round(e["prediction_share"], 6) for e in history if "prediction_share" in e}
    wanted = {*LOOKED_AT_EPOCHS, str(len(history))}
    seconds = [epoch["seconds"] for epoch in history]
    return {
        "epochs": len(history),
        "train_seconds": round(sum(seconds), 3),
        "epoch_seconds": round(statistics.median(seconds), 4) if seconds else None,
        "peak_memory_mb": round(max(epoch["peak_memory_mb"] for epoch in history), 1) if history else None,
        "final_loss": history[-1].get("loss") if history else None,
        "prediction_share": {epoch: share for epoch, share in shares.items() if epoch in wanted} or None,
        "trained_source_hash": method and Run(encoder_folder(cell, runs)).read_config().get("source_hash"),
    }


def _finetune(cell: Cell, method: Any, dataset: Dataset, split: Split) -> Record:
    """Trained on from the cell's encoder, and from random weights."""
    started = time.monotonic()
    tuned = finetune(method, dataset.graph, dataset.labels, split, seed=cell.seed)
    return {
        "finetune_test_accuracy": tuned.test_accuracy,
        "finetune_val_accuracy": tuned.val_accuracy,
        "finetune_epochs": tuned.epochs,
        "finetune_seconds": round(time.monotonic() - started, 1),
        "scratch_test_accuracy": tuned.scratch_test_accuracy,
        "scratch_val_accuracy": tuned.scratch_val_accuracy,
        "scratch_epochs": tuned.scratch_epochs,
    }


def timed_epochs(cell: Cell) -> int:
    """How many epochs of an efficiency cell to time: to behind the end of a curriculum, which changes them.

    PatchJEPA, which is held against it epoch by epoch, takes as many; its epochs are short.
    """
    if "patches" in cell.config:
        return MaskingConfig().curriculum_epochs + SETTLED_EPOCHS
    changing = _changing_epochs(cell)
    return changing + SETTLED_EPOCHS if changing else TIMED_EPOCHS


def _changing_epochs(cell: Cell) -> int:
    return int(cell.config.get("masking", {}).get("curriculum_epochs", 0))


def _efficiency(cell: Cell, dataset: Dataset) -> Record:
    """Median seconds of a few epochs, and what the whole training would take at that pace.

    Epochs of a curriculum count as they were; from its end on all are taken to be alike. The first epoch,
    which also warms up, is taken to be like the second.
    """
    few = timed_epochs(cell)
    seconds, memory = _time_epochs(cell, dataset, few)
    in_time = int(TIMED_SECONDS / statistics.median(seconds))
    if in_time > len(seconds):  # short epochs are soon disturbed: more of them
        seconds, _ = _time_epochs(cell, dataset, 1 + in_time)
    rising = seconds[: max(_changing_epochs(cell) - 1, 0)]
    settled = seconds[len(rising) :] or seconds
    known = [*rising[:1], *rising]
    epoch_seconds = statistics.median(settled)
    return {
        "epochs": cell.epochs,
        "timed_epochs": len(seconds),
        "epoch_seconds": round(epoch_seconds, 4),
        "epoch_seconds_range": [round(min(settled), 4), round(max(settled), 4)],
        "total_seconds": round(sum(known) + epoch_seconds * (cell.epochs - len(known)), 1),
        "peak_memory_mb": memory,
        # from the second epoch on
        **({"seconds_by_epoch": [round(s, 4) for s in seconds]} if few > TIMED_EPOCHS else {}),
    }


def _time_epochs(cell: Cell, dataset: Dataset, count: int) -> tuple[list[float], float]:
    """Seconds of each epoch behind the first, which also warms up, and the peak memory of the process.

    One more is run and left out: the first and the last also look at prediction's share of the gradient.
    """
    few = min(cell.epochs, count) + 1
    estimator: Any = make_method(
        cell.method,
        preset=cell.preset,
        dataset=cell.dataset,
        seed=cell.trained_with,
        settings={**cell.settings, "training.epochs": few},
    )
    logging = Logging(share_epochs=few)
    fit_on(estimator, dataset, dataset.split(cell.split, seed=cell.seed), logging=logging)
    seconds = [epoch["seconds"] for epoch in estimator.history_]
    return seconds[1:-1] or seconds, round(estimator.history_[-1]["peak_memory_mb"], 1)


def trained_encoder(cell: Cell, dataset: Dataset, split: Split, runs: Path) -> Estimator:
    """The cell's method, fitted: restored from ``runs`` if it is there, resumed if it was begun.

    A method without labels does not depend on the split, so all splits of a seed share one encoder. While
    another process makes it, this one waits.
    """
    folder = encoder_folder(cell, runs)
    estimator = make_method(
        cell.method, preset=cell.preset, dataset=cell.dataset, seed=cell.trained_with, settings=cell.settings
    )
    logging = Logging(description=cell.label, share_epochs=10)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with lock_file(folder.parent / f".{folder.name}.wait", wait=True):
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
