"""GraphMAE: reconstruct the features of masked nodes (Hou et al. 2022)."""

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import numpy.typing as npt
import torch
from annotated_types import Ge
from torch import Tensor, nn

from nodejepa.config import OpenShare, Settings
from nodejepa.errors import GraphError
from nodejepa.methods.blocks import (
    BaselineEncoderConfig,
    build_encoder,
    encoder_inputs,
)
from nodejepa.methods.trained import TrainedEstimator
from nodejepa.nn.inputs import GraphInputs, RowInputs
from nodejepa.nn.predictors import FeatureDecoder
from nodejepa.nn.sparse import SparseOperator, row_normalise
from nodejepa.objectives.baselines import linear_scaled_cosine_error, scaled_cosine_error
from nodejepa.training.task import StepContext, Task, TrainingConfig


@dataclass(frozen=True)
class GraphMAEMaskConfig(Settings):
    """What the encoder does not see: the features of a share of the nodes."""

    section = "masking."
    ratio: OpenShare = 0.5


@dataclass(frozen=True)
class GraphMAEConfig(Settings):
    """All settings of GraphMAE; defaults are those of the paper's matched comparison (its method table)."""

    encoder: BaselineEncoderConfig = field(default_factory=BaselineEncoderConfig)
    masking: GraphMAEMaskConfig = field(default_factory=GraphMAEMaskConfig)
    alpha: Annotated[float, Ge(1)] = 2.0  # exponent of the scaled cosine error
    training: TrainingConfig = field(default_factory=TrainingConfig)


class GraphMAETask(Task):
    """Encoder, mask token and decoder."""

    sees = "micro-batches"

    def __init__(self, inputs: RowInputs, config: GraphMAEConfig) -> None:
        super().__init__()
        if inputs.num_nodes < 2:
            raise GraphError(
                "the graph has one node", fix="At least two are needed: one to see, one to reconstruct."
            )
        self.config, features = config, inputs.num_features
        self.encoder = build_encoder(config.encoder, features)
        self.token = nn.Parameter(torch.zeros(features))
        self.decoder = FeatureDecoder(config.encoder.width, features)
        blocks = (inputs.feature_rows(*span) for span in inputs.graph.spans())
        shown = (row_normalise(x) for x in blocks) if config.encoder.row_normalise else blocks
        self.feature_squares = torch.cat([_row_squares(x) for x in shown])

    def losses(self, inputs: GraphInputs, context: StepContext) -> dict[str, Tensor]:
        """Mask, encode, mask again, decode, compare."""
        inputs = encoder_inputs(inputs, self.config.encoder)
        masked = self._mask(inputs.num_nodes, context.numpy("mask"))
        hidden = torch.from_numpy(masked).to(inputs.device)
        # masked again: nobody reads the others
        visible = self.encoder(inputs.masked(hidden, self.token), rows=~masked)
        codes = self.decoder(visible, inputs.propagation, masked)
        error = self._error(inputs, codes, masked, hidden)
        return {"loss": context.reduction.average(error, int(masked.sum()))}

    def _mask(self, size: int, generator: np.random.Generator) -> npt.NDArray[np.bool_]:
        count = min(max(round(self.config.masking.ratio * size), 1), size - 1)
        masked = np.zeros(size, dtype=bool)
        masked[generator.choice(size, count, replace=False)] = True
        return masked

    def _error(
        self, inputs: GraphInputs, codes: Tensor, masked: npt.NDArray[np.bool_], hidden: Tensor
    ) -> Tensor:
        """The error of the guesses ``codes @ weight``, which are written out only if they are narrow."""
        weight, alpha = self.decoder.weight, self.config.alpha
        features = inputs.features
        if isinstance(features, Tensor) and features.shape[1] <= codes.shape[1]:
            return scaled_cosine_error(features[hidden], codes @ weight, alpha)
        wanted, squares = inputs.transform_features(weight.T, masked), inputs.take(self.feature_squares)
        return linear_scaled_cosine_error(wanted, squares[hidden], codes, weight, alpha)


def _row_squares(features: Tensor | SparseOperator) -> Tensor:
    """Squared length of every row ``[N]``."""
    if isinstance(features, Tensor):
        return features.square().sum(dim=1)
    squares = np.asarray(features.matrix.power(2).sum(axis=1), dtype=np.float32).ravel()
    return torch.from_numpy(squares).to(features.device)


class GraphMAE(TrainedEstimator):
    """The masked graph autoencoder."""

    name = "graphmae"
    title = "GraphMAE"
    summary = "reconstructs features of masked nodes"
    citation = "Hou et al. 2022"
    presets = ("default", "paper")
    config_class = GraphMAEConfig
    task_class = GraphMAETask
