"""Settings that several methods share, and the blocks built from them."""

import copy
from abc import ABC
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from nodejepa.config import Depth, NonNegative, PositiveInt, Settings, Share, ShareBelowOne, Width
from nodejepa.masking.augment import drop_edges, drop_feature_columns
from nodejepa.nn.encoders import Activation, Encoder, EncoderKind, make_encoder
from nodejepa.nn.inputs import GraphInputs
from nodejepa.objectives.sigreg import sigreg
from nodejepa.training.task import StepContext, Task, linear

M = TypeVar("M", bound=nn.Module)

PRESETS = ("default", "paper", "official")  # of the baselines


@dataclass(frozen=True)
class EncoderConfig(Settings):
    """The encoder; the paper's is a GCN of 3 layers x 256 with layer normalisation."""

    section = "encoder."
    kind: EncoderKind = "gcn"
    hidden: Width = 256
    layers: Depth = 3
    activation: Activation = "relu"  # the paper does not say
    norm: Literal["layer", "graph", "batch", "none"] = "layer"


def build_encoder(config: EncoderConfig, in_dim: int) -> Encoder:
    """A fresh encoder for features of ``in_dim`` columns: every setting is an argument of its maker."""
    return make_encoder(in_dim=in_dim, **asdict(config))


@dataclass(frozen=True)
class EMAConfig(Settings):
    """Momentum of the target network, linear from start to end over training."""

    section = "ema."
    start: Share = 0.996
    end: Share = 0.999


@dataclass(frozen=True)
class BaselineEncoderConfig(EncoderConfig):
    """The paper's encoder unless changed, and what the authors of the baselines set besides."""

    out_dim: Width | None = None  # width of the last layer; none: hidden
    norm_last: bool = True
    activate_last: bool = False
    dropout: ShareBelowOne = 0.0  # on the input of every layer but the first
    row_normalise: bool = False  # features divided by the sum of their row

    @property
    def width(self) -> int:
        """Columns of the embeddings."""
        return self.hidden if self.out_dim is None else self.out_dim


@dataclass(frozen=True)
class ViewConfig(Settings):
    """How a view is drawn: shares of edges and of feature columns that are dropped."""

    section = "view "  # of one or two of them
    edges: Share = 0.2
    features: Share = 0.2


def encoder_inputs(inputs: GraphInputs, config: BaselineEncoderConfig) -> GraphInputs:
    """What the encoder will make of the inputs, done once and not in every view."""
    return inputs.row_normalised if config.row_normalise else inputs


def draw_view(inputs: GraphInputs, config: ViewConfig, generator: np.random.Generator) -> GraphInputs:
    """A random view: edges and feature columns dropped."""
    adjacency = drop_edges(inputs.adjacency, config.edges, generator) if config.edges else None
    columns = drop_feature_columns(inputs.num_features, config.features, generator)
    return inputs.view(adjacency=adjacency, keep_columns=columns if config.features else None)


# Whose embeddings are kept. The paper says only "the encoder"; I-JEPA keeps its target encoder, and so does
# this: on the development graphs the two do not differ significantly (docs/log.md).
Keep = Literal["target", "context"]


@dataclass(frozen=True)
class SIGRegConfig(Settings):
    """Weight and formula of the sketched isotropic-Gaussian penalty that both methods have."""

    section = "loss."
    sigreg: NonNegative = 0.02
    sigreg_slices: PositiveInt = 256
    sigreg_nodes: PositiveInt | None = 4096  # random subset at each step; none: all
    # LeJEPA's factor, times the size of that subset; with it prediction is inert (docs/log.md)
    sigreg_times_n: bool = False

    def sigreg_term(self, h: Tensor, context: StepContext) -> Tensor:
        """The penalty on embeddings ``h``, not yet weighted."""
        return sigreg(
            h,
            context.torch("noise"),
            slices=self.sigreg_slices,
            max_nodes=self.sigreg_nodes,
            times_n=self.sigreg_times_n,
            reduction=context.reduction,
            shared=None if context.micro_batch is None else context.of_step.torch("noise"),
        )


def frozen_copy(module: M) -> M:
    """A copy with the same values whose parameters take no gradient."""
    target = copy.deepcopy(module)
    target.requires_grad_(False)
    return target


@torch.no_grad()
def ema_update(target: nn.Module, source: nn.Module, momentum: float) -> None:
    r""":math:`\xi \leftarrow m\,\xi + (1 - m)\,\theta` for parameters; buffers are copied.

    Buffers are the statistics of batch normalisation, averages already: averaged once more, they would
    still be those of the random start after hundreds of steps.
    """
    for mine, theirs in zip(target.parameters(), source.parameters(), strict=True):
        mine.lerp_(theirs, 1 - momentum)
    for kept, seen in zip(target.buffers(), source.buffers(), strict=True):
        kept.copy_(seen)


class TeacherTask(Task, ABC):
    """Context encoder f_theta, and target encoder f_xi that no gradient reaches.

    ``config`` has ``encoder`` (of both), ``ema`` and ``keep``.
    """

    def __init__(self, inputs: GraphInputs, config: Any, encoder: nn.Module | None = None) -> None:
        super().__init__()
        self.ema, self.keep = config.ema, config.keep
        self.encoder = build_encoder(config.encoder, inputs.num_features) if encoder is None else encoder
        self.target_encoder = frozen_copy(self.encoder)

    @property
    def kept_encoder(self) -> Any:
        """The target or the context encoder, as ``keep`` says."""
        return self.target_encoder if self.keep == "target" else self.encoder

    def train(self, mode: bool = True) -> Self:
        """The target encoder always evaluates: its buffers follow the context's, never its own batches."""
        super().train(mode)
        self.target_encoder.eval()
        return self

    def after_step(self, progress: float) -> None:
        """Move the target encoder (the last line of both algorithms)."""
        ema_update(self.target_encoder, self.encoder, linear(progress, self.ema.start, self.ema.end))
