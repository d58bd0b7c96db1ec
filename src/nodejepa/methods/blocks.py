"""Settings that several methods share, and the blocks built from them."""

from dataclasses import asdict, dataclass
from typing import Literal

from nodejepa.config import Settings, require, setting
from nodejepa.nn.encoders import EncoderKind, make_encoder
from nodejepa.nn.stack import ACTIVATIONS, Encoder
from nodejepa.training.task import TrainingConfig


@dataclass(frozen=True)
class EncoderConfig(Settings):
    """The encoder; the paper's is a GCN of 3 layers x 256 with layer normalisation."""

    section = "encoder."
    kind: EncoderKind = "gcn"
    hidden: int = setting(256, "at least 1")
    layers: int = setting(3, "at least 1")
    activation: str = "relu"  # the paper does not say
    norm: Literal["layer", "batch", "none"] = "layer"
    heads: int = setting(4, "at least 1")  # gat only, which checks that it divides hidden

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.activation in ACTIVATIONS, "encoder.activation", self.activation, f"one of {[*ACTIVATIONS]}"
        )


def build_encoder(config: EncoderConfig, in_dim: int) -> Encoder:
    """A fresh encoder for features of ``in_dim`` columns: every setting is an argument of its maker."""
    return make_encoder(in_dim=in_dim, **asdict(config))


@dataclass(frozen=True)
class EMAConfig(Settings):
    """Momentum of the target network, linear from start to end over training."""

    section = "ema."
    start: float = setting(0.996, "between 0 and 1")
    end: float = setting(0.999, "between 0 and 1")


def matched_training(dataset: str | None) -> TrainingConfig:
    """The paper's shared settings: 200 epochs on arxiv, else 300."""
    return TrainingConfig(epochs=200 if dataset in ("arxiv", "synthetic-arxiv") else 300)
