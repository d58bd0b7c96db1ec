"""The one training loop. Every method goes through here."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from nodejepa.training.distributed import SINGLE, ProcessGroup, Reduction, reduced
from nodejepa.training.logger import Logger, Logging, Monitor, PredictionShare, shared_checkpoint
from nodejepa.training.run import History, Run
from nodejepa.training.task import Source, StepContext, Task, TrainingConfig, cosine_rate, seeded


def train(
    task: Task,
    source: Source,
    config: TrainingConfig,
    *,
    seed: int,
    run: Run | None = None,
    logging: Logging | None = None,
    group: ProcessGroup = SINGLE,
) -> History:
    """Optimise ``task`` on what ``source`` hands out and return the history: one record an epoch.

    With a ``run`` that holds a checkpoint, training goes on from it and ends in exactly the bits of an
    uninterrupted run: all randomness is a function of (seed, epoch, step), all schedules of progress, and
    early stopping of the history. In a ``group`` every process comes here, the first alone with the ``run``;
    all end with the same weights.
    """
    parameters = [p for p in task.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(parameters, lr=config.lr, weight_decay=config.weight_decay)
    logging = logging or Logging()
    logger = Logger(task, optimiser, config, run, logging, shared_checkpoint(run, group))
    monitor = Monitor(task, source.whole, config.epochs, run)
    history, steps = logger.history, source.steps_per_epoch
    best = min(range(len(history)), key=lambda i: history[i][task.watched], default=0)
    task.train()
    with logger.opened():
        for epoch in range(len(history), config.epochs):
            if config.patience is not None and epoch - best > config.patience:
                break
            sums: dict[str, float] = {}
            for step in range(steps):
                done, total = epoch * steps + step, config.epochs * steps
                context = StepContext(seed, epoch, step, done / total)
                rate = cosine_rate(context.progress, config.lr, config.lr_end, config.warmup)
                look = (epoch + 1) % logging.share_epochs == 0 or epoch in (0, config.epochs - 1)
                values = _gradients(task, source, context, parameters, config.clip, group, look)
                monitor.refuse_infinite(values, epoch + 1)
                sums |= {name: sums.get(name, 0.0) + value / steps for name, value in values.items()}
                for settings in optimiser.param_groups:
                    settings["lr"] = rate
                optimiser.step()
                task.after_step((done + 1) / total)
            record: dict[str, Any] = {"epoch": epoch + 1, **sums, "lr": rate, **task.validate(source.whole)}
            monitor.refuse_infinite(record, epoch + 1)
            if epoch == 0 or record[task.watched] < history[best][task.watched]:
                best = epoch
                task.keep_best()
            logger.add(record | (monitor.geometry(epoch + 1) if group.leads else {}))
    task.eval()
    return history


def _gradients(
    task: Task,
    source: Source,
    context: StepContext,
    parameters: Sequence[nn.Parameter],
    clip: float | None,
    group: ProcessGroup,
    look: bool,
) -> dict[str, float]:
    """Gradients of a step, and the terms of its loss; with a ``look`` at prediction's share."""
    count = source.micro_batches

    def losses(micro_batch: int, reduction: Reduction) -> dict[str, Tensor]:
        here = replace(context, reduction=reduction, micro_batch=None if count == 1 else micro_batch)
        with seeded(here.seed, "dropout", *here.position):
            return task.losses(source.batch(here), here)

    found = reduced([partial(losses, i) for i in group.share(count)], count, group)
    looked = PredictionShare(task, found[0]) if look and count == 1 else None
    task.zero_grad(set_to_none=True)
    for terms in found:
        terms["loss"].backward()  # type: ignore[no-untyped-call]
    group.sum_gradients(parameters)
    share = {} if looked is None else looked.found()
    norm = torch.nn.utils.clip_grad_norm_(parameters, math.inf if clip is None else clip)
    return {name: term.item() for name, term in found[0].items()} | share | {"gradient_norm": norm.item()}
