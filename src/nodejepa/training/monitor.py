"""What is monitored in training: finite numbers, collapse, and how much of the gradient prediction has."""

import math
import warnings
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from nodejepa.diagnostics import diagnose
from nodejepa.errors import TrainingError
from nodejepa.nn.inputs import GraphInputs
from nodejepa.training.run import Run
from nodejepa.training.task import Task

_EVERY = 10  # epochs between two measurements of the embeddings' geometry
_NODES = 4096  # evenly spaced sample: enough for a 256 x 256 covariance, cheap at any size
_FIX = "Lower training.lr, or check the features for extreme values."
SHARE = "prediction_share"  # its name in an epoch's record


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
