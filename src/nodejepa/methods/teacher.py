"""What NodeJEPA and PatchJEPA share: a context encoder and a target encoder that follows it."""

from abc import ABC
from dataclasses import dataclass
from typing import Any, Literal, Self

from torch import Tensor, nn

from nodejepa.errors import ConfigError
from nodejepa.methods.blocks import build_encoder, matched_training
from nodejepa.nn.ema import ema_update, frozen_copy
from nodejepa.nn.inputs import GraphInputs
from nodejepa.objectives.sigreg import sigreg
from nodejepa.training.task import StepContext, Task, TrainingConfig, linear
from nodejepa.validation import NonNegative, PositiveInt, Settings

# Whose embeddings are kept. The paper says only "the encoder"; I-JEPA keeps its target encoder, and so does
# this: on the development graphs the two cannot be told apart (docs/log.md).
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


def paper_training(method: str, preset: str, dataset: str | None) -> TrainingConfig:
    """The paper's training settings, for both presets: 200 epochs on arxiv, else 300."""
    if preset not in ("paper", "default"):
        raise ConfigError(f"{method} has no preset {preset!r}", fix="Use paper or default.")
    return matched_training(dataset)
