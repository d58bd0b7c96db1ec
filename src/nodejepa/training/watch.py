"""An eye on training: numbers stay finite, and embeddings do not collapse."""

import math
import warnings
from collections.abc import Mapping

import numpy as np
import torch

from nodejepa.diagnostics import diagnose
from nodejepa.errors import TrainingError
from nodejepa.nn.inputs import GraphInputs
from nodejepa.training.run import Run
from nodejepa.training.task import Task

_EVERY = 10  # epochs between two looks at the embeddings' geometry
_NODES = 4096  # evenly spaced sample: enough for a 256 x 256 covariance, cheap at any size
_FIX = "Lower training.lr, or check the features for extreme values."


class CollapseWarning(UserWarning):
    """The embeddings are collapsing during training."""


class Watch:
    """Looks at a task while it is trained; changes nothing about it."""

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
    def look(self, epoch: int) -> dict[str, float]:
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
