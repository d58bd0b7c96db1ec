"""What the one training loop needs to know of a method: its task, settings, and what a step trains on.

Every random choice of a run is a function of (seed, epoch, step, micro-batch, purpose), never of what was
drawn before, and every schedule one of progress. A resumed run therefore needs no saved state of either.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, final

import numpy as np
import torch
from annotated_types import Gt, Le
from torch import Tensor, nn

from nodejepa.config import (
    NonNegative,
    NonNegativeInt,
    Positive,
    PositiveInt,
    Settings,
    ShareBelowOne,
    require,
)
from nodejepa.nn.inputs import GraphInputs
from nodejepa.nn.sparse import Rows
from nodejepa.training.distributed import ALONE, Reduction

# Purposes get streams of their own, so that one drawing more numbers does not shift the others.
_STREAMS = {"init": 0, "mask": 1, "noise": 2, "dropout": 3, "parts": 4}


@dataclass(frozen=True)
class TrainingConfig(Settings):
    """How a method is optimised; the defaults are the paper's shared settings (appendix, Table "shared")."""

    section = "training."
    epochs: NonNegativeInt = 300
    lr: Annotated[float, Gt(0), Le(100)] = 1e-3
    lr_end: float = 1e-6
    weight_decay: NonNegative = 1e-4
    clip: Positive | None = 1.0  # none: gradients of any length
    warmup: ShareBelowOne = 0.0
    # stop after so many epochs in which what the task watches (the loss, a classifier: the validation loss)
    # did not fall; none: never
    patience: PositiveInt | None = None
    # Training in parts: the nodes fall into ``parts``; a step sees ``parts_per_step`` of them, drawn at
    # random and joined, and an epoch sees each once. One part is the whole graph.
    parts: PositiveInt = 1
    parts_per_step: int = 1
    # Into how many a step is cut, each with masks of its own and no edges to the others; their losses are of
    # all of them. What is trained depends on this number, and on that of the processes by rounding only.
    micro_batches: int = 1
    partition: Literal["metis", "random"] = "metis"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.lr_end <= self.lr, "training.lr_end", self.lr_end, "between 0 and training.lr")
        for name, of in (("parts_per_step", "parts"), ("micro_batches", "parts_per_step")):
            value, whole = getattr(self, name), getattr(self, of)
            divides = value > 0 and whole % value == 0
            require(divides, f"training.{name}", value, f"a divisor of training.{of} ({whole})")


@dataclass(frozen=True)
class StepContext:
    """Where in a run a step stands, which its randomness follows from, and what its sums go through."""

    seed: int
    epoch: int
    step: int
    progress: float  # share of all steps already done, 0 .. 1
    reduction: Reduction = ALONE  # what statistics over all nodes of the step go through
    micro_batch: int | None = None  # which of the step, where it is cut into several

    def numpy(self, purpose: str) -> np.random.Generator:
        """NumPy randomness of this step, or of this micro-batch, for one purpose."""
        return numpy_generator(self.seed, purpose, *self.position)

    def torch(self, purpose: str) -> torch.Generator:
        """Torch randomness of this step, or of this micro-batch, for one purpose."""
        return torch_generator(self.seed, purpose, *self.position)

    @property
    def of_step(self) -> StepContext:
        """The context whose randomness is the same in every micro-batch."""
        return replace(self, micro_batch=None)

    @property
    def position(self) -> tuple[int, ...]:
        """What randomness follows from, beside the seed and the purpose."""
        step = (self.epoch, self.step)
        return step if self.micro_batch is None else (*step, self.micro_batch)


def numpy_generator(seed: int, purpose: str, *position: int) -> np.random.Generator:
    """A NumPy generator for one purpose at one position (epoch, step)."""
    return np.random.default_rng([seed, _STREAMS[purpose], *position])


def torch_generator(seed: int, purpose: str, *position: int) -> torch.Generator:
    """A torch CPU generator for one purpose at one position (epoch, step)."""
    state = int(numpy_generator(seed, purpose, *position).integers(2**63 - 1))
    return torch.Generator().manual_seed(state)


@contextmanager
def seeded(seed: int, purpose: str, *position: int) -> Iterator[None]:
    """Seed torch's global generator inside the block (initialisation, dropout) and restore it after."""
    state = torch_generator(seed, purpose, *position).initial_seed()
    with torch.random.fork_rng():
        torch.manual_seed(state)
        yield


def cosine_rate(progress: float, start: float, end: float, warmup: float = 0.0) -> float:
    """Learning rate: linear warm-up over the share ``warmup`` of training, then a cosine to ``end``."""
    if progress < warmup:
        return start * progress / warmup
    done = (progress - warmup) / max(1 - warmup, 1e-12)
    return end + (start - end) * (1 + math.cos(math.pi * min(done, 1.0))) / 2


def linear(progress: float, start: float, end: float) -> float:
    """Linear from start to end as progress goes from 0 to 1."""
    return start + (end - start) * progress


class Task(nn.Module, ABC):
    """Network and loss of a method. Parameters that require gradients are optimised.

    A task holds no graph: each step hands it one, the whole or a part. What it must know of every node it
    keeps for the whole graph and reads through :meth:`GraphInputs.take`.
    """

    encoder: Any  # an Encoder, or what embeds like one
    steps_per_epoch: int = 1
    # none: no warning, few directions are what a classifier is after
    collapse_advice: str | None = "Lower training.lr or train for fewer epochs."
    # What a step may see: the whole graph only, parts of it, or micro-batches of parts. For these every term
    # must be a mean over rows, or come from sums whose gradient a micro-batch has by itself.
    sees: Literal["whole", "parts", "micro-batches"] = "whole"
    watched: str = "loss"  # the figure of an epoch's record that early stopping wants to fall

    @abstractmethod
    def losses(self, inputs: GraphInputs, context: StepContext) -> dict[str, Tensor]:
        """One step's loss terms on ``inputs``; ``"loss"`` is the one to minimise."""

    def predicting(self, terms: Mapping[str, Tensor]) -> Tensor | None:  # noqa: ARG002 - most predict nothing
        """The part of the loss that predicts in latent space, with its weight; none for other methods."""
        return None

    @property
    def kept_encoder(self) -> Any:
        """The encoder whose embeddings are kept, where there are several."""
        return self.encoder

    def embed(self, inputs: GraphInputs, rows: Rows = None) -> Tensor:
        """Embeddings ``[N, D]`` as they are now, nothing hidden; of some ``rows`` (bool ``[N]``) only."""
        z: Tensor = self.kept_encoder.embed(inputs, rows)
        return z

    def after_step(self, progress: float) -> None:
        """Called after every optimiser step, with the share of steps done (EMA updates)."""

    def validate(self, inputs: GraphInputs) -> dict[str, float]:  # noqa: ARG002 - only labels can tell
        """Figures of the weights at the end of an epoch, for its record; tasks without labels have none."""
        return {}

    def keep_best(self) -> None:
        """Called when what is watched is lower than ever; what is kept belongs into the state dict."""


class Source:
    """Hands out what each step or micro-batch trains on: here, the whole of it.

    ``whole`` is what is validated and monitored.
    """

    def __init__(self, whole: GraphInputs, steps_per_epoch: int = 1, micro_batches: int = 1) -> None:
        self.whole, self.steps_per_epoch, self.micro_batches = whole, steps_per_epoch, micro_batches

    def batch(self, context: StepContext) -> GraphInputs:  # noqa: ARG002 - the same in every step
        """What the step, or the micro-batch of it, of ``context`` trains on: a function of it alone."""
        return self.whole


@final
class Parts(Source):
    """Every step sees some parts, joined; in a round of steps each part is seen once, in random order.

    ``joined`` makes what a step sees of the numbers of its parts.
    """

    def __init__(
        self,
        whole: GraphInputs,
        joined: Callable[[list[int]], GraphInputs],
        config: TrainingConfig,
        rounds: int = 1,
    ) -> None:
        self._steps = config.parts // config.parts_per_step  # of a round
        super().__init__(whole, rounds * self._steps, config.micro_batches)
        self._joined, self._count = joined, config.parts_per_step // config.micro_batches

    def batch(self, context: StepContext) -> GraphInputs:
        """The parts of the step, or of the micro-batch of it."""
        round_, step = divmod(context.step, self._steps)
        order = numpy_generator(context.seed, "parts", context.epoch, round_).permutation(
            self._steps * self.micro_batches * self._count
        )
        first = (step * self.micro_batches + (context.micro_batch or 0)) * self._count
        return self._joined(sorted(order[first : first + self._count].tolist()))
