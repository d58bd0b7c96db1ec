"""The one training loop. Every method goes through here."""

from __future__ import annotations

import math
import resource
import sys
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nodejepa.config import require
from nodejepa.diagnostics import Diagnostics, diagnose
from nodejepa.errors import CheckpointError, TrainingError
from nodejepa.progress import announce_duration, progress_bar
from nodejepa.training.checkpoint import load_into
from nodejepa.training.run import History, Run
from nodejepa.training.schedules import cosine_rate
from nodejepa.training.seeding import seeded
from nodejepa.training.task import Moment, Task, TrainingConfig

_WATCH_EVERY = 10  # epochs between two looks at the embeddings' geometry
_WATCH_NODES = 4096  # evenly spaced sample: enough for a 256 x 256 covariance, cheap at any size


class CollapseWarning(UserWarning):
    """The embeddings are collapsing during training."""


@dataclass(frozen=True)
class Logging:
    """What a run leaves behind besides its result; nothing here changes a bit of it."""

    checkpoint_epochs: int = 50
    checkpoint_minutes: float = 2.0
    tensorboard: bool = False
    description: str = "Pretraining"

    def __post_init__(self) -> None:
        require(self.checkpoint_epochs >= 1, "checkpoint_epochs", self.checkpoint_epochs, "at least 1")
        require(self.checkpoint_minutes >= 0, "checkpoint_minutes", self.checkpoint_minutes, "0 or more")


def train(
    task: Task, config: TrainingConfig, *, seed: int, run: Run | None = None, logging: Logging | None = None
) -> History:
    """Optimise ``task`` and return the history: one record an epoch.

    With a ``run`` that holds a checkpoint, training goes on from it and ends in exactly the bits of an
    uninterrupted run: all randomness is a function of (seed, epoch, step), all schedules of progress, and
    early stopping of the history.
    """
    logging = logging or Logging()
    parameters = [p for p in task.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(parameters, lr=config.lr, weight_decay=config.weight_decay)
    history: History = []
    if run is not None and run.checkpoint.exists():
        history = _restore(run, task, optimiser)
    total = config.epochs * task.steps_per_epoch
    writer = _tensorboard(run) if logging.tensorboard and run is not None else None
    saved_at, warned, resumed = time.monotonic(), False, len(history)
    unproven = False  # a checkpoint is due; it is written once a further step has shown that its weights work
    best = min(range(resumed), key=lambda i: history[i][task.watched], default=0)
    task.train()
    with progress_bar(logging.description, total=config.epochs) as advance:
        advance(resumed)
        for epoch in range(resumed, config.epochs):
            if config.patience is not None and epoch - best > config.patience:
                break
            started = time.perf_counter()
            sums: dict[str, float] = {}
            for step in range(task.steps_per_epoch):
                done = epoch * task.steps_per_epoch + step
                moment = Moment(seed, epoch, step, done / total)
                # a forward pass moves the statistics of batch normalisation: a checkpoint wants them as the
                # epochs it knows of have left them
                before = {name: b.clone() for name, b in task.named_buffers()} if unproven else {}
                rate = cosine_rate(moment.progress, config.lr, config.lr_end, config.warmup)
                for name, value in _gradients(task, moment, optimiser, parameters, config.clip, run).items():
                    sums[name] = sums.get(name, 0.0) + value / task.steps_per_epoch
                if unproven and run is not None:
                    _save(run, task, optimiser, history, before)
                    saved_at, unproven = time.monotonic(), False
                for group in optimiser.param_groups:
                    group["lr"] = rate
                optimiser.step()
                task.after_step((done + 1) / total)
            record: dict[str, Any] = {"epoch": epoch + 1, **sums, "lr": rate, **task.validate()}
            _refuse_infinite(record, epoch + 1, run)
            if (epoch + 1) % _WATCH_EVERY == 0 or epoch + 1 == config.epochs:
                found = _watch(task, epoch + 1)
                if found.collapsed and not warned and task.collapse_advice is not None:
                    _warn_of_collapse(task, epoch + 1, found)
                    warned = True
                rank = found.effective_rank
                record |= {"mean_std": found.mean_std} | ({} if rank is None else {"effective_rank": rank})
            record |= {"seconds": time.perf_counter() - started, "peak_memory_mb": peak_memory_mb()}
            history.append(record)
            best = epoch if record[task.watched] < history[best][task.watched] else best
            if best == epoch:
                task.keep_best()
            if run is not None:
                run.append(record)
                due = time.monotonic() - saved_at > 60 * logging.checkpoint_minutes
                unproven = unproven or due or (epoch + 1) % logging.checkpoint_epochs == 0
            if writer is not None:
                for name, value in record.items():
                    writer.add_scalar(name, value, epoch + 1)
            if epoch == resumed + 1:  # the second epoch: the first one also compiled and warmed up
                left = record["seconds"] * (config.epochs - epoch)
                announce_duration(logging.description, left, may_end_early=config.patience is not None)
            advance(1, note=_note(record, history))
    if writer is not None:
        writer.close()
    if run is not None:
        run.write_table(history)
    task.eval()
    return history


def _gradients(
    task: Task,
    moment: Moment,
    optimiser: torch.optim.Optimizer,
    parameters: list[torch.nn.Parameter],
    clip: float | None,
    run: Run | None,
) -> dict[str, float]:
    """Loss terms and gradients of a step; what is not finite stops training before it does harm."""
    with seeded(moment.seed, "dropout", moment.epoch, moment.step):
        terms = task.losses(moment)
    optimiser.zero_grad(set_to_none=True)
    terms["loss"].backward()  # type: ignore[no-untyped-call]
    norm = torch.nn.utils.clip_grad_norm_(parameters, math.inf if clip is None else clip)
    values = {name: term.item() for name, term in terms.items()} | {"gradient_norm": norm.item()}
    _refuse_infinite(values, moment.epoch + 1, run)
    return values


def _refuse_infinite(values: Mapping[str, float], epoch: int, run: Run | None) -> None:
    bad = [name for name, value in values.items() if not math.isfinite(value)]
    if bad:
        kept = run is not None and run.checkpoint.exists()
        raise TrainingError(
            f"{', '.join(bad)} became infinite or not a number in epoch {epoch}",
            where=str(run.folder) if run is not None else "training",
            fix="Lower training.lr, or check the features for extreme values."
            + (" The last good checkpoint is kept." if kept else ""),
        )


@torch.no_grad()
def _watch(task: Task, epoch: int) -> Diagnostics:
    """The geometry of a sample of the embeddings as they are now."""
    task.eval()
    z = task.embed()
    task.train()
    sample = z[:: max(z.shape[0] // _WATCH_NODES, 1)].cpu()
    if not torch.isfinite(sample).all():
        raise TrainingError(
            f"the embeddings became infinite or not a number in epoch {epoch}",
            where="training",
            fix="Lower training.lr, or check the features for extreme values.",
        )
    return diagnose(sample.numpy())


def _warn_of_collapse(task: Task, epoch: int, found: Diagnostics) -> None:
    warnings.warn(f"epoch {epoch}: {found.verdict} {task.collapse_advice}", CollapseWarning, stacklevel=3)


def _save(
    run: Run,
    task: Task,
    optimiser: torch.optim.Optimizer,
    history: History,
    buffers: Mapping[str, Tensor],
) -> None:
    state = task.state_dict()
    state |= {name: tensor for name, tensor in buffers.items() if name in state}  # not those kept out of it
    tensors = {f"task.{name}": tensor for name, tensor in state.items()}
    for i, state in optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{i}.{name}": torch.as_tensor(value) for name, value in state.items()}
    run.save_checkpoint(tensors, history)


def _restore(run: Run, task: Task, optimiser: torch.optim.Optimizer) -> History:
    tensors, history = run.load_checkpoint()
    prefix = "task."
    weights = {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
    load_into(task, weights, str(run.checkpoint))
    state: dict[int, dict[str, Tensor]] = {}
    shapes = [p.shape for group in optimiser.param_groups for p in group["params"]]
    for name, tensor in tensors.items():
        if name.startswith("optimiser."):
            number, _, key = name.removeprefix("optimiser.").partition(".")
            place = int(number) if number.isdecimal() and len(number) < 9 else len(shapes)
            if place >= len(shapes) or tensor.shape not in (torch.Size([]), shapes[place]):
                raise CheckpointError(
                    f"the state of the optimiser is another one's: {name} {tuple(tensor.shape)}",
                    where=str(run.checkpoint),
                    fix="Delete it and train again, or restore it from a copy.",
                )
            state.setdefault(place, {})[key] = tensor
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
    return history


def _note(record: dict[str, Any], history: History) -> str:
    """Loss and last known rank first: the line may be cut at the right."""
    ranks = (r["effective_rank"] for r in reversed(history) if "effective_rank" in r)
    hidden = (
        "epoch",
        "lr",
        "seconds",
        "peak_memory_mb",
        "mean_std",
        "effective_rank",
        "gradient_norm",
        "loss",
    )
    shown = {"loss": record["loss"], "rank": next(ranks, None)}
    shown |= {name: value for name, value in record.items() if name not in hidden}
    return " ".join(f"{name} {value:.3g}" for name, value in shown.items() if value is not None)


def _tensorboard(run: Run) -> Any:
    try:
        from torch.utils.tensorboard.writer import SummaryWriter
    except ImportError:
        raise TrainingError(
            "TensorBoard is not installed", fix="pip install 'nodejepa[tensorboard]'."
        ) from None
    return SummaryWriter(str(run.folder / "tensorboard"))


def peak_memory_mb() -> float:
    """Highest resident memory of this process so far."""
    try:  # Linux: getrusage would also count the process that started this one
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.split("VmHWM:", 1)[1].split(maxsplit=1)[0]) / 2**10
    except (OSError, IndexError, ValueError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (2**20 if sys.platform == "darwin" else 2**10)
