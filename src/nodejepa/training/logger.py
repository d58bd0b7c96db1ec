"""What training writes and shows, and what is watched meanwhile.

History, checkpoints, progress bar; finite numbers, collapse, and how much of the gradient prediction has.
"""

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nodejepa.config import NonNegative, PositiveInt, Settings
from nodejepa.diagnostics import diagnose
from nodejepa.errors import TrainingError
from nodejepa.machine import announce_duration, peak_memory_mb, progress_bar
from nodejepa.nn.inputs import GraphInputs
from nodejepa.training.distributed import ProcessGroup
from nodejepa.training.run import Checkpoint, History, Run, damaged, load_into
from nodejepa.training.task import Task, TrainingConfig

_EVERY = 10  # epochs between two measurements of the embeddings' geometry
_NODES = 4096  # evenly spaced sample: enough for a 256 x 256 covariance, cheap at any size
_FIX = "Lower training.lr, or check the features for extreme values."
SHARE = "prediction_share"  # its name in an epoch's record
_FIGURES = ("mean_std", "effective_rank", "gradient_norm", SHARE)
NOT_A_LOSS = ("epoch", "lr", "seconds", "peak_memory_mb", *_FIGURES)


@dataclass(frozen=True)
class Logging(Settings):
    """What a run leaves behind besides its result; nothing here changes a bit of it."""

    checkpoint_epochs: PositiveInt = 50
    checkpoint_minutes: NonNegative = 2.0  # or after so many, at the end of an epoch
    description: str = "Pretraining"
    # epochs between measurements of prediction's share of the gradient; each costs part of an epoch
    share_epochs: PositiveInt = 1
    shown: bool = True  # on the screen


class Logger:
    """The record of a run, on the screen and, if there is a folder, on disk.

    Task and optimiser are brought to where the checkpoint left them, if there is one.
    """

    def __init__(
        self,
        task: Task,
        optimiser: torch.optim.Optimizer,
        config: TrainingConfig,
        run: Run | None,
        logging: Logging,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self._task, self._optimiser, self._config = task, optimiser, config
        self._run, self._logging = run, logging
        self.history: History = []
        if checkpoint is not None:
            self._restore(checkpoint)
        self._resumed = len(self.history)
        self._saved_at = self._began = time.perf_counter()
        self._advance: Callable[..., None]

    @contextmanager
    def opened(self) -> Iterator[None]:
        """With the bar on the screen."""
        shown = self._logging.shown
        with progress_bar(self._logging.description, self._config.epochs, shown=shown) as self._advance:
            self._advance(self._resumed)
            self._began = time.perf_counter()
            yield

    def add(self, record: dict[str, Any]) -> None:
        """Close an epoch: its time and memory are added, and it is written and shown."""
        now = time.perf_counter()
        record |= {"seconds": now - self._began, "peak_memory_mb": peak_memory_mb()}
        self.history.append(record)
        epoch, logging = record["epoch"], self._logging
        if self._run is not None:
            self._run.append(record)
            late = now - self._saved_at > 60 * logging.checkpoint_minutes
            if late or epoch % logging.checkpoint_epochs == 0:
                self._save(self._run)
        # the second epoch: the first one also compiled and warmed up
        if epoch == self._resumed + 2 and logging.shown:
            left = record["seconds"] * (self._config.epochs - epoch + 1)
            announce_duration(logging.description, left, may_end_early=self._config.patience is not None)
        self._advance(1, note=self._note(record))
        self._began = time.perf_counter()

    def _note(self, record: dict[str, Any]) -> str:
        """Loss and last known rank first: the line may be cut at the right."""
        ranks = (r["effective_rank"] for r in reversed(self.history) if "effective_rank" in r)
        shown = {"loss": record["loss"], "rank": next(ranks, None)}
        shown |= {name: value for name, value in record.items() if name not in (*NOT_A_LOSS, "loss")}
        return " ".join(f"{name} {value:.3g}" for name, value in shown.items() if value is not None)

    def _save(self, run: Run) -> None:
        tensors = {f"task.{name}": tensor for name, tensor in self._task.state_dict().items()}
        for i, state in self._optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{i}.{name}": torch.as_tensor(value) for name, value in state.items()}
        run.save_checkpoint(tensors, self.history)
        self._saved_at = time.perf_counter()

    def _restore(self, checkpoint: Checkpoint) -> None:
        tensors, self.history, where = dict(checkpoint.tensors), checkpoint.history, checkpoint.where

        def taken(start: str) -> dict[str, Tensor]:
            names = [name for name in tensors if name.startswith(start)]
            return {name.removeprefix(start): tensors.pop(name) for name in names}

        load_into(self._task, taken("task."), where)
        parameters = [p for group in self._optimiser.param_groups for p in group["params"]]
        found = {place: taken(f"optimiser.{place}.") for place in range(len(parameters))}
        state = {place: mine for place, mine in found.items() if mine}  # without a gradient there is none
        for place, mine in state.items():
            wanted = {"step": (), **dict.fromkeys(("exp_avg", "exp_avg_sq"), parameters[place].shape)}
            if {key: tensor.shape for key, tensor in mine.items()} != wanted:
                raise damaged("the state of the optimiser is not complete, or another one's", where)
        if tensors:
            raise damaged(f"nobody knows its tensor {min(tensors)}", where)
        groups = self._optimiser.state_dict()["param_groups"]
        self._optimiser.load_state_dict({"state": state, "param_groups": groups})


def shared_checkpoint(run: Run | None, group: ProcessGroup) -> Checkpoint | None:
    """The run's checkpoint, if there is one; the first process hands it to the others."""
    there = run is not None and run.checkpoint.exists()
    if group.size > 1:
        content = group.broadcast(run.checkpoint.read_bytes() if run is not None and there else b"")
        if content and not group.leads:
            with TemporaryDirectory() as folder:
                copy = Run(folder)
                copy.checkpoint.write_bytes(content)
                return copy.load_checkpoint()
    return run.load_checkpoint() if run is not None and there else None


# ------------------------------------------------------------------ what is watched


class CollapseWarning(UserWarning):
    """The embeddings are collapsing during training."""


class Monitor:
    """Measures a task while it is trained; changes nothing about it."""

    def __init__(self, task: Task, inputs: GraphInputs, epochs: int, run: Run | None) -> None:
        self._task, self._inputs, self._epochs, self._run = task, inputs, epochs, run
        self._warned = task.collapse_advice is None
        step = max(inputs.num_nodes // _NODES, 1)
        self._rows = None if step == 1 else np.arange(inputs.num_nodes) % step == 0

    def refuse_infinite(self, values: Mapping[str, float], epoch: int) -> None:
        """Stop before numbers that are none do harm."""
        bad = [name for name, value in values.items() if not math.isfinite(value)]
        if bad:
            kept = self._run is not None and self._run.checkpoint.exists()
            raise TrainingError(
                f"{', '.join(bad)} became infinite or not a number in epoch {epoch}",
                where=str(self._run.folder) if self._run is not None else "training",
                fix=_FIX + (" The last good checkpoint is kept." if kept else ""),
            )

    @torch.no_grad()
    def geometry(self, epoch: int) -> dict[str, float]:
        """The geometry of a sample of the embeddings, where it is time for it; warns once of collapse."""
        if epoch % _EVERY and epoch != self._epochs:
            return {}
        self._task.eval()
        sample = self._task.embed(self._inputs, self._rows).cpu()
        self._task.train()
        if not torch.isfinite(sample).all():
            raise TrainingError(
                f"the embeddings became infinite or not a number in epoch {epoch}", where="training", fix=_FIX
            )
        found = diagnose(sample.numpy())
        if found.collapsed and not self._warned:
            advice = self._task.collapse_advice
            warnings.warn(f"epoch {epoch}: {found.verdict} {advice}", CollapseWarning, stacklevel=4)
            self._warned = True
        rank = found.effective_rank
        return {"mean_std": found.mean_std} | ({} if rank is None else {"effective_rank": rank})


class PredictionShare:
    r"""|g| / (|g| + |r|): g the gradient of prediction, r that of all other terms, both with their weights.

    A term near 0 is inert whatever its value: nothing that only changes it can change the embeddings. Made
    before the gradients of the whole loss are there; where no term predicts, nothing is found.
    """

    def __init__(self, task: Task, terms: Mapping[str, Tensor]) -> None:
        predicting = task.predicting(terms)
        self._parameters: list[nn.Parameter] = []
        self._prediction: tuple[Tensor | None, ...] = ()
        if predicting is not None:
            self._parameters = [p for p in task.encoder.parameters() if p.requires_grad]
            self._prediction = torch.autograd.grad(
                predicting, self._parameters, retain_graph=True, allow_unused=True
            )

    def found(self) -> dict[str, float]:
        """The share, once ``backward`` of the whole loss was called and nothing done to its result."""
        if not self._parameters:
            return {}
        mine = rest = 0.0
        for parameter, part in zip(self._parameters, self._prediction, strict=True):
            whole = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            part = torch.zeros_like(parameter) if part is None else part
            mine += part.double().square().sum().item()
            rest += (whole - part).double().square().sum().item()
        total = mine**0.5 + rest**0.5
        return {SHARE: mine**0.5 / total if total else 0.0}
