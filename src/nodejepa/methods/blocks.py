"""Settings that several methods share, and the blocks built from them."""

from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from nodejepa.errors import ConfigError
from nodejepa.masking.augment import drop_edges, drop_feature_columns
from nodejepa.nn.encoders import EncoderKind, make_encoder
from nodejepa.nn.inputs import GraphInputs
from nodejepa.nn.stack import Activation, Encoder
from nodejepa.training.task import TrainingConfig
from nodejepa.validation import PositiveInt, Settings, Share, ShareBelowOne

PRESETS = ("default", "paper", "official")  # of the baselines


@dataclass(frozen=True)
class EncoderConfig(Settings):
    """The encoder; the paper's is a GCN of 3 layers x 256 with layer normalisation."""

    section = "encoder."
    kind: EncoderKind = "gcn"
    hidden: PositiveInt = 256
    layers: PositiveInt = 3
    activation: Activation = "relu"  # the paper does not say
    norm: Literal["layer", "graph", "batch", "none"] = "layer"
    heads: PositiveInt = 4  # gat only, which checks that it divides hidden


def build_encoder(config: EncoderConfig, in_dim: int) -> Encoder:
    """A fresh encoder for features of ``in_dim`` columns: every setting is an argument of its maker."""
    return make_encoder(in_dim=in_dim, **asdict(config))


@dataclass(frozen=True)
class EMAConfig(Settings):
    """Momentum of the target network, linear from start to end over training."""

    section = "ema."
    start: Share = 0.996
    end: Share = 0.999


def matched_training(dataset: str | None) -> TrainingConfig:
    """The paper's shared settings: 200 epochs on arxiv, else 300."""
    return TrainingConfig(epochs=200 if dataset in ("arxiv", "synthetic-arxiv") else 300)


@dataclass(frozen=True)
class BaselineEncoderConfig(EncoderConfig):
    """The paper's encoder unless changed, and what the authors of the baselines set besides."""

    out_dim: PositiveInt | None = None  # width of the last layer; none: hidden
    norm_last: bool = True
    activate_last: bool = False
    dropout: ShareBelowOne = 0.0  # on the input of every layer but the first
    attention_dropout: ShareBelowOne = 0.0  # gat only
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


def check_preset(method: str, name: str) -> None:
    """Refuse a preset that no baseline has."""
    if name not in PRESETS:
        raise ConfigError(f"{method} has no preset {name!r}", fix=f"Use one of {', '.join(PRESETS)}.")
