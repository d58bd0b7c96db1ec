"""CCA-SSG: two views agree in every dimension, and no two dimensions say the same (Zhang et al. 2021)."""

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from annotated_types import Ge
from torch import Tensor

from nodejepa.config import NonNegative, Settings
from nodejepa.methods.blocks import (
    PRESETS,
    BaselineEncoderConfig,
    ViewConfig,
    build_encoder,
    draw_view,
    encoder_inputs,
)
from nodejepa.methods.trained import TrainedEstimator
from nodejepa.nn.inputs import GraphInputs, RowInputs
from nodejepa.nn.sparse import Rows
from nodejepa.objectives.baselines import cca_terms
from nodejepa.training.task import StepContext, Task, TrainingConfig


@dataclass(frozen=True)
class CCALossConfig(Settings):
    """The weight of decorrelation, and how many random nodes the loss is computed on."""

    section = "loss."
    decorrelation: NonNegative = 1e-3
    subsample: Annotated[int, Ge(2)] | None = 8192  # none: all nodes


@dataclass(frozen=True)
class CCASSGConfig(Settings):
    """All settings of CCA-SSG; defaults are those of the paper's matched comparison (its method table)."""

    encoder: BaselineEncoderConfig = field(default_factory=BaselineEncoderConfig)
    view: ViewConfig = field(default_factory=ViewConfig)  # both views are drawn alike
    loss: CCALossConfig = field(default_factory=CCALossConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)


# Zhang et al., by data set: edges and features dropped, weight of decorrelation, epochs.
_OFFICIAL = {
    "computers": (ViewConfig(0.3, 0.1), 5e-4, 50),
    "photo": (ViewConfig(0.3, 0.2), 1e-3, 50),
    "cs": (ViewConfig(0.2, 0.2), 1e-3, 50),
    "physics": (ViewConfig(0.5, 0.5), 1e-3, 100),
}


class CCASSGTask(Task):
    """One encoder on two views."""

    sees = "parts"  # columns are standardised over all nodes: a micro-batch would need the others' gradients
    collapse_advice = "Raise loss.decorrelation, or lower training.lr."

    def __init__(self, inputs: RowInputs, config: CCASSGConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = build_encoder(config.encoder, inputs.num_features)

    def losses(self, inputs: GraphInputs, context: StepContext) -> dict[str, Tensor]:
        """Draw two views, standardise their embeddings, compare."""
        inputs, generator = encoder_inputs(inputs, self.config.encoder), context.numpy("mask")
        views = [draw_view(inputs, self.config.view, generator) for _ in range(2)]
        rows = self._sample(inputs.num_nodes, generator)
        one, two = (self.encoder(view, rows=rows) for view in views)
        invariance, decorrelation = cca_terms(one, two)
        loss = invariance + self.config.loss.decorrelation * decorrelation
        return {"loss": loss, "invariance": invariance, "decorrelation": decorrelation}

    def _sample(self, size: int, generator: np.random.Generator) -> Rows:
        """Which nodes the loss is computed on: the last layer is spared for all others."""
        subsample = self.config.loss.subsample
        if subsample is None or subsample >= size:
            return None
        rows = np.zeros(size, dtype=bool)
        rows[generator.choice(size, subsample, replace=False)] = True
        return rows


class CCASSG(TrainedEstimator):
    """Canonical correlation analysis between two views, by gradient descent."""

    name = "cca-ssg"
    title = "CCA-SSG"
    summary = "two views agree, dimensions do not"
    citation = "Zhang et al. 2021"
    presets = PRESETS
    config_class = CCASSGConfig
    task_class = CCASSGTask

    @classmethod
    def official(cls, dataset: str | None) -> CCASSGConfig:
        """Zhang et al.; a data set that they give no settings for takes those of Photo.

        On CS their encoder is a perceptron with one batch normalisation.
        """
        view, decorrelation, epochs = _OFFICIAL.get(dataset or "", _OFFICIAL["photo"])
        encoder = BaselineEncoderConfig(hidden=512, layers=2, norm="none")
        if dataset == "cs":
            encoder = BaselineEncoderConfig(kind="mlp", hidden=512, layers=2, norm="batch", norm_last=False)
        return CCASSGConfig(
            encoder,
            view,
            CCALossConfig(decorrelation, subsample=None),
            TrainingConfig(epochs=epochs, lr_end=1e-3, weight_decay=0.0, clip=None),
        )
