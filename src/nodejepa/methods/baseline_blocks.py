"""What the baselines share: an encoder with their authors' settings, random views, matched training."""

from dataclasses import dataclass

import numpy as np

from nodejepa.config import Settings, setting
from nodejepa.errors import ConfigError
from nodejepa.masking.augment import drop_edges, drop_feature_columns
from nodejepa.methods.blocks import EncoderConfig
from nodejepa.nn.inputs import GraphInputs

PRESETS = ("default", "paper", "official")


@dataclass(frozen=True)
class BaselineEncoderConfig(EncoderConfig):
    """The paper's encoder unless changed, and what the authors of the baselines set besides."""

    out_dim: int | None = setting(None, "at least 1 or none")  # width of the last layer; none: hidden
    norm_last: bool = True
    activate_last: bool = False
    dropout: float = setting(0.0, "at least 0 and below 1")  # on the input of every layer but the first
    attention_dropout: float = setting(0.0, "at least 0 and below 1")  # gat only
    row_normalise: bool = False  # features divided by the sum of their row

    @property
    def width(self) -> int:
        """Columns of the embeddings."""
        return self.hidden if self.out_dim is None else self.out_dim


@dataclass(frozen=True)
class ViewConfig(Settings):
    """How a view is drawn: shares of edges and of feature columns that are dropped."""

    section = "view "  # of one or two of them
    edges: float = setting(0.2, "between 0 and 1")
    features: float = setting(0.2, "between 0 and 1")


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
