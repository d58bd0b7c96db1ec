"""Settings that several methods share, and the blocks built from them."""

from dataclasses import asdict, dataclass
from typing import Literal

from nodejepa.config import require
from nodejepa.nn.encoders import EncoderKind, make_encoder
from nodejepa.nn.stack import ACTIVATIONS, Encoder
from nodejepa.training.task import TrainingConfig


@dataclass(frozen=True)
class EncoderConfig:
    """The encoder; the paper's is a GCN of 3 layers x 256 with layer normalisation."""

    kind: EncoderKind = "gcn"
    hidden: int = 256
    layers: int = 3
    activation: str = "relu"  # the paper does not say
    norm: Literal["layer", "batch", "none"] = "layer"
    heads: int = 4  # gat only, which checks that it divides hidden

    def __post_init__(self) -> None:
        require(self.hidden > 0, "encoder.hidden", self.hidden, "at least 1")
        require(self.layers > 0, "encoder.layers", self.layers, "at least 1")
        require(self.heads > 0, "encoder.heads", self.heads, "at least 1")
        require(
            self.activation in ACTIVATIONS, "encoder.activation", self.activation, f"one of {[*ACTIVATIONS]}"
        )


def build_encoder(config: EncoderConfig, in_dim: int) -> Encoder:
    """A fresh encoder for features of ``in_dim`` columns: every setting is an argument of its maker."""
    return make_encoder(in_dim=in_dim, **asdict(config))


@dataclass(frozen=True)
class EMAConfig:
    """Momentum of the target network, linear from start to end over training."""

    start: float = 0.996
    end: float = 0.999

    def __post_init__(self) -> None:
        require(0 <= self.start <= 1, "ema.start", self.start, "between 0 and 1")
        require(0 <= self.end <= 1, "ema.end", self.end, "between 0 and 1")


def matched_training(dataset: str | None) -> TrainingConfig:
    """The paper's shared settings: 200 epochs on arxiv, else 300."""
    return TrainingConfig(epochs=200 if dataset in ("arxiv", "synthetic-arxiv") else 300)
