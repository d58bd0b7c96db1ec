"""DGI: tell the graph's own nodes from nodes with other nodes' features (Velickovic et al. 2019)."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from nodejepa.config import Settings
from nodejepa.methods.blocks import (
    BaselineEncoderConfig,
    build_encoder,
    encoder_inputs,
)
from nodejepa.methods.trained import TrainedEstimator
from nodejepa.nn.inputs import GraphInputs, RowInputs
from nodejepa.objectives.baselines import infomax_loss
from nodejepa.training.task import StepContext, Task, TrainingConfig


@dataclass(frozen=True)
class DGIConfig(Settings):
    """All settings of DGI; defaults are those of the paper's matched comparison."""

    encoder: BaselineEncoderConfig = field(default_factory=BaselineEncoderConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)


class DGITask(Task):
    """Encoder and bilinear discriminator."""

    sees = "parts"  # every node's loss depends on the summary: a micro-batch would need the others' gradients

    def __init__(self, inputs: RowInputs, config: DGIConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = build_encoder(config.encoder, inputs.num_features)
        width = config.encoder.width
        self.discriminator = nn.Parameter(nn.init.xavier_uniform_(torch.empty(width, width)))

    def losses(self, inputs: GraphInputs, context: StepContext) -> dict[str, Tensor]:
        """Shuffle the features, embed both, tell them apart."""
        order = torch.from_numpy(context.numpy("mask").permutation(inputs.num_nodes))
        both = encoder_inputs(inputs, self.config.encoder).shuffled(order)
        real, corrupted = (self.encoder(shown) for shown in both)
        return {"loss": infomax_loss(real, corrupted, self.discriminator)}


class DGI(TrainedEstimator):
    """Deep Graph Infomax: node embeddings that share information with a summary of the graph."""

    name = "dgi"
    title = "DGI"
    summary = "tells nodes from nodes with shuffled features"
    citation = "Velickovic et al. 2019"
    presets = ("default", "paper")
    config_class = DGIConfig
    task_class = DGITask
