"""BGRL: predict a slowly moving copy's embedding of another view of the graph (Thakoor et al. 2022)."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from nodejepa.config import Settings, Width
from nodejepa.methods.blocks import (
    PRESETS,
    BaselineEncoderConfig,
    EMAConfig,
    ViewConfig,
    build_encoder,
    draw_view,
    ema_update,
    encoder_inputs,
    frozen_copy,
)
from nodejepa.methods.trained import TrainedEstimator
from nodejepa.nn.encoders import make_activation
from nodejepa.nn.inputs import GraphInputs, RowInputs
from nodejepa.objectives.baselines import bootstrap_loss
from nodejepa.training.task import StepContext, Task, TrainingConfig, cosine_rate


@dataclass(frozen=True)
class BGRLPredictorConfig(Settings):
    """The perceptron from online embeddings to the target's."""

    section = "predictor."
    hidden: Width = 512  # the authors'; the paper does not say


@dataclass(frozen=True)
class BGRLConfig(Settings):
    """All settings of BGRL; defaults are those of the paper's matched comparison (its method table)."""

    encoder: BaselineEncoderConfig = field(default_factory=BaselineEncoderConfig)
    view_1: ViewConfig = field(default_factory=ViewConfig)
    view_2: ViewConfig = field(default_factory=ViewConfig)
    predictor: BGRLPredictorConfig = field(default_factory=BGRLPredictorConfig)
    ema: EMAConfig = field(default_factory=lambda: EMAConfig(start=0.996, end=0.996))  # along a cosine
    training: TrainingConfig = field(default_factory=TrainingConfig)


# Thakoor et al., by data set: edges and features dropped in view 1 and 2, learning rate, encoder widths.
_OFFICIAL = {
    "computers": (ViewConfig(0.5, 0.2), ViewConfig(0.4, 0.1), 5e-4, (256, 128)),
    "photo": (ViewConfig(0.4, 0.1), ViewConfig(0.1, 0.2), 1e-4, (256, 128)),
    "cs": (ViewConfig(0.3, 0.3), ViewConfig(0.2, 0.4), 1e-5, (512, 256)),
    "physics": (ViewConfig(0.4, 0.1), ViewConfig(0.1, 0.4), 1e-5, (256, 128)),
}


class BGRLTask(Task):
    """Online network, predictor and target network."""

    sees = "micro-batches"
    collapse_advice = "Raise ema.start, or lower training.lr."

    def __init__(self, inputs: RowInputs, config: BGRLConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = build_encoder(config.encoder, inputs.num_features)
        self.target_encoder = frozen_copy(self.encoder)
        width, hidden = config.encoder.width, config.predictor.hidden
        self.predictor = nn.Sequential(
            nn.Linear(width, hidden), make_activation(config.encoder.activation), nn.Linear(hidden, width)
        )

    def losses(self, inputs: GraphInputs, context: StepContext) -> dict[str, Tensor]:
        """Each view's prediction against the target's embedding of the other."""
        inputs, generator = encoder_inputs(inputs, self.config.encoder), context.numpy("mask")
        one = draw_view(inputs, self.config.view_1, generator)
        two = draw_view(inputs, self.config.view_2, generator)
        guesses = self.predictor(self.encoder(one)), self.predictor(self.encoder(two))
        with torch.no_grad():
            targets = self.target_encoder(one), self.target_encoder(two)
        return {"loss": context.reduction.average(bootstrap_loss(guesses, targets), inputs.num_nodes)}

    def after_step(self, progress: float) -> None:
        """Move the target network."""
        momentum = cosine_rate(progress, self.config.ema.start, self.config.ema.end)
        ema_update(self.target_encoder, self.encoder, momentum)


class BGRL(TrainedEstimator):
    """Bootstrapped graph latents: two views, no negative examples."""

    name = "bgrl"
    title = "BGRL"
    summary = "predicts a moving average's embedding of another view"
    citation = "Thakoor et al. 2022"
    presets = PRESETS
    config_class = BGRLConfig
    task_class = BGRLTask

    @classmethod
    def official(cls, dataset: str | None) -> BGRLConfig:
        """Thakoor et al.; a data set that they give no settings for takes those of Photo."""
        one, two, rate, (hidden, out) = _OFFICIAL.get(dataset or "", _OFFICIAL["photo"])
        return BGRLConfig(
            BaselineEncoderConfig(
                hidden=hidden,
                layers=2,
                activation="prelu",
                norm="batch",
                out_dim=out,
                activate_last=True,
                row_normalise=True,
            ),
            one,
            two,
            ema=EMAConfig(start=0.99, end=1.0),
            # 1,000 epochs of warm-up are a tenth of 10,000, and a tenth of a run that is cut short
            training=TrainingConfig(
                epochs=10_000, lr=rate, lr_end=0.0, weight_decay=1e-5, clip=None, warmup=0.1
            ),
        )
