"""An encoder that starts at the closed form: LinearJEPA's solution, trained on by gradient descent."""

import math
from abc import ABC
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from nodejepa.config import require
from nodejepa.errors import ConfigError
from nodejepa.graph import RowGraph
from nodejepa.methods.blocks import EncoderConfig
from nodejepa.methods.linear_jepa import LinearJEPA, LinearJEPAConfig, hartley
from nodejepa.methods.trained import TrainedEstimator
from nodejepa.nn.hop_encoder import HopEncoder
from nodejepa.nn.inputs import GraphInputs, RowInputs
from nodejepa.training.logger import Logging
from nodejepa.training.run import History, Run

# What the encoder is before the first step. ``random``: the network that ``encoder.*`` describes, with random
# weights. ``closed-form``: LinearJEPA's solution, ``encoder.hidden`` columns wide. ``random-hops``: the same
# encoder with directions drawn at random, to tell what the start is worth.
Start = Literal["random", "closed-form", "random-hops"]


def check_start(start: Start, encoder: EncoderConfig) -> None:
    """Refuse settings of a network where there is none."""
    if start == "random":
        return
    usual = EncoderConfig()
    for name in (field.name for field in fields(encoder)):
        value = getattr(encoder, name)
        if name not in ("hidden", "activation") and value != getattr(usual, name):
            raise ConfigError(
                f"encoder.{name} is {value!r}, which an encoder with start={start} does not have",
                where="start",
                fix="Set start=random, or take preset paper, to train a network.",
            )
    whole = encoder.hidden >= 4 and encoder.hidden % 4 == 0
    require(whole, "encoder.hidden", encoder.hidden, f"a multiple of 4 with start={start}")


class Latents(nn.Module):
    """What is predicted and guarded of an encoder that starts at the closed form: latents before propagation.

    Both in the units of the start. Predicted latents are centred and, as a whole, of unit variance: among
    themselves they keep the closed form's weights. Guarded ones are of unit variance each, so that the guards
    ask to keep the start's shape and not to undo those weights.
    """

    mean: Tensor
    spread: Tensor

    def __init__(self, encoder: HopEncoder, inputs: RowInputs) -> None:
        super().__init__()
        self.count = encoder.weight.shape[1]
        with torch.no_grad():
            z = encoder.latents(inputs)
            mean, spread = z.mean(dim=0), z.std(dim=0, correction=0)
        self.register_buffer("mean", mean)
        self.register_buffer("spread", torch.where(spread > 0, spread, torch.ones_like(spread)))

    def predicted(self, encoder: HopEncoder, inputs: GraphInputs, rows: npt.NDArray[np.bool_]) -> Tensor:
        """What is to be predicted of ``rows`` (bool ``[N]``)."""
        return (encoder.latents_of(inputs, rows) - self.mean) / self.spread.square().mean().sqrt()

    def guarded(self, encoder: HopEncoder, inputs: GraphInputs, rows: npt.NDArray[np.bool_]) -> Tensor:
        """What must not collapse, of ``rows`` (bool ``[N]``)."""
        return (encoder.latents_of(inputs, rows) - self.mean) / self.spread


class StartedEstimator(TrainedEstimator, ABC):
    """A method whose encoder may start at the closed form, as its setting ``start`` says."""

    solved_: LinearJEPA | None = None  # none: the encoder is a network

    @classmethod
    def solver(cls, config: Any) -> LinearJEPAConfig:
        """The settings of the closed form, as wide as the network would be."""
        return LinearJEPAConfig(dim=config.encoder.hidden)

    def start(self, inputs: RowInputs) -> HopEncoder | None:
        """The encoder before the first step, ready to be trained; none where it is a network."""
        if self.config.start == "random":
            return None
        # not rotated yet: the guards take every latent in its own unit
        encoder, _ = self._solve(inputs, Logging(description="Solving the closed form"), rotated=False)
        entry = float(encoder.weight.double().square().mean().sqrt()) or 1.0  # root of the mean square
        encoder.unit = 2.0 ** round(math.log2(entry))
        encoder.weight.div_(encoder.unit)  # exact: a power of two
        return encoder.requires_grad_(True)

    def _solve(
        self, inputs: RowInputs, logging: Logging, *, rotated: bool = True
    ) -> tuple[HopEncoder, History]:
        solver = self.solved_ = self._solver(rotated=rotated)
        solver.process_group = self.process_group
        encoder, history = solver.learn(inputs, None, logging)
        if self.config.start == "random-hops":
            _redraw(encoder, inputs, solver.findings_.mean_kept)
        return encoder, history

    def _solver(self, **settings: Any) -> LinearJEPA:
        return LinearJEPA(self.solver(self.config), device=self.device, **settings)

    def learn(self, inputs: RowInputs, run: Run | None, logging: Logging) -> tuple[Any, History]:
        """As LinearJEPA where the start is kept as it is."""
        if self.config.start == "closed-form" and not self.config.training.epochs:
            return self._solve(inputs, logging)
        return super().learn(inputs, run, logging)

    def trained_encoder(self, task: Any) -> Any:
        """The encoder to keep, its weights in plain units and rotated as LinearJEPA's are."""
        encoder = super().trained_encoder(task)
        if isinstance(encoder, HopEncoder):
            with torch.no_grad():
                encoder.weight.mul_(encoder.unit)
                if encoder.equal_rows:  # hops that stand side by side are neither
                    rotation = hartley(len(encoder.shift)).to(encoder.weight)
                    encoder.weight.copy_(encoder.weight @ rotation)
                    encoder.shift.copy_(encoder.shift @ rotation)
            encoder.unit = 1.0
            encoder.requires_grad_(False)
        return encoder

    def make_encoder(self, in_dim: int) -> Any:
        """What the settings ``encoder.*`` say, or LinearJEPA's, as large as the graph asked for."""
        return self.solved_.make_encoder(in_dim) if self.solved_ else super().make_encoder(in_dim)

    def width(self, graph: RowGraph) -> int:
        """As LinearJEPA's, where it starts there."""
        return super().width(graph) if self.config.start == "random" else self._solver().width(graph)

    def describe(self) -> str:
        """What the closed form found, where it was the start."""
        return self.solved_.describe() if self.solved_ else ""

    def spectrum(self) -> tuple[float, ...]:
        """rho of every latent of the closed form, where it was the start."""
        return self.solved_.spectrum() if self.solved_ else ()

    def own_facts(self) -> dict[str, Any]:
        """What the closed form found, which also says how large the encoder is."""
        return self.solved_.own_facts() if self.solved_ else {}

    def take_facts(self, facts: Mapping[str, Any]) -> None:
        """The findings back from a file."""
        self.solved_ = None if self.config.start == "random" else self._solver()
        if self.solved_:
            self.solved_.take_facts(facts)


def _redraw(encoder: HopEncoder, inputs: RowInputs, mean_kept: float) -> None:
    """Directions drawn at random, as long as those found; the mean's share and the mixture of hops stay."""
    length = encoder.weight.norm(dim=0) / math.sqrt(len(encoder.weight))
    encoder.weight.copy_(torch.randn(encoder.weight.shape).to(length.device) * length)
    if encoder.shift.any():
        encoder.shift.zero_()
        encoder.shift.copy_((1 - mean_kept) * encoder.latents(inputs).mean(dim=0))
