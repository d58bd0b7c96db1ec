"""NodeJEPA: predict the embeddings of hidden k-hop neighbourhoods (the paper, Section 3.2, Algorithm 1)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

from nodejepa.config import (
    Depth,
    Hops,
    NonNegative,
    NonNegativeInt,
    OpenShare,
    PositiveInt,
    Settings,
    Width,
    require,
)
from nodejepa.errors import ConfigError, GraphError
from nodejepa.graph import RowGraph
from nodejepa.masking.khop import khop_mask
from nodejepa.methods.blocks import (
    EMAConfig,
    EncoderConfig,
    Keep,
    SIGRegConfig,
    TeacherTask,
)
from nodejepa.methods.start import Latents, Start, StartedEstimator, check_start
from nodejepa.nn.hop_encoder import HopEncoder
from nodejepa.nn.inputs import GraphInputs, RowInputs
from nodejepa.nn.predictors import AttentionPredictor, MessagePassingPredictor
from nodejepa.nn.stack import pick_rows
from nodejepa.objectives.latent import (
    CovarianceOver,
    cosine_distance,
    covariance_loss,
    covariance_matrix,
    l2_distance,
    laplacian_energy,
    variance_loss,
)
from nodejepa.structure.descriptors import DESCRIPTORS, descriptors
from nodejepa.training.task import StepContext, TrainingConfig


@dataclass(frozen=True)
class MaskingConfig(Settings):
    """Which nodes are hidden; values grow from ``*_start`` over the first ``curriculum_epochs``."""

    section = "masking."
    ratio: OpenShare = 0.5
    hops: Hops = 2
    ratio_start: OpenShare = 0.2
    hops_start: Hops = 1
    curriculum_epochs: NonNegativeInt = 50  # 0: the end values from the start
    isolation: bool = True  # hide targets' features from the context encoder; off: ablation E
    # The paper's "degree-capping neighborhood search" (Section 6), off as in its experiments
    max_neighbours: PositiveInt | None = None  # that the search follows; none: all

    def at(self, epoch: int) -> tuple[float, int]:
        """Mask ratio and hops of an epoch, counted from 0.

        Both move linearly and stay where they end. Hops are rounded half up: with the defaults epochs 0-24
        hide 1-hop and later ones 2-hop neighbourhoods (the paper: cheap epochs "in the first 25").

        >>> MaskingConfig().at(0), MaskingConfig().at(25), MaskingConfig().at(300)
        ((0.2, 1), (0.35, 2), (0.5, 2))
        """
        done = epoch / self.curriculum_epochs if epoch < self.curriculum_epochs else 1.0
        ratio = (1 - done) * self.ratio_start + done * self.ratio
        hops = (1 - done) * self.hops_start + done * self.hops
        return ratio, math.floor(hops + 0.5)


@dataclass(frozen=True)
class PredictorConfig(Settings):
    """The predictor: restricted message passing (3 x 256), or cross-attention (ablation C)."""

    section = "predictor."
    kind: Literal["message-passing", "attention"] = "message-passing"
    hidden: Width = 256
    layers: Depth = 3  # of message passing; attention has one
    heads: Depth = 4  # of attention only; the paper does not say
    descriptors: tuple[str, ...] = DESCRIPTORS  # none: ablation B
    spectral_dim: Depth = 8  # "low-dimensional"; the paper does not say

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind == "attention":
            require(
                self.hidden % self.heads == 0, "predictor.heads", self.heads, "a divisor of predictor.hidden"
            )
        unknown = [name for name in self.descriptors if name not in DESCRIPTORS]
        require(not unknown, "predictor.descriptors", unknown, f"some of {', '.join(DESCRIPTORS)}")
        if self.kind == "attention" and not self.descriptors:
            raise ConfigError(
                "the attention predictor asks with descriptors, and none are chosen",
                where="predictor.descriptors",
                fix="Choose some, or use predictor.kind=message-passing.",
            )


@dataclass(frozen=True)
class LossConfig(SIGRegConfig):
    """Weights of the loss terms (the paper, Eq. 2)."""

    prediction: Literal["cosine", "l2"] = "cosine"  # l2: ablation F
    prediction_weight: NonNegative = 1.0  # 0: ablation G
    variance: NonNegative = 0.2  # 0 with covariance 0: ablation D
    covariance: NonNegative = 0.2
    # The paper does not say what the squared covariances are divided by: "decorrelates dimension pairs".
    # VICReg's own formula divides by dimensions; studies/readings compares both with the printed geometry.
    covariance_over: CovarianceOver = "pairs"
    # "applied to the context encoder's embeddings": of all nodes, or of those it sees ("visible")
    regularised: Literal["all", "visible"] = "all"
    laplacian: NonNegative = 0.0  # promised in the abstract, absent from the loss


@dataclass(frozen=True)
class NodeJEPAConfig(Settings):
    """All settings of NodeJEPA; defaults are the paper's."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    predictor: PredictorConfig = field(default_factory=PredictorConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    ema: EMAConfig = field(default_factory=EMAConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    keep: Keep = "target"
    start: Start = "random"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_start(self.start, self.encoder)


class NodeJEPATask(TeacherTask):
    """Algorithm 1; started at the closed form, it predicts and guards latents instead of embeddings."""

    sees = "micro-batches"
    collapse_advice: str | None = "Raise loss.variance or loss.sigreg, or lower training.lr."

    def __init__(self, inputs: RowInputs, config: NodeJEPAConfig, started: HopEncoder | None = None) -> None:
        super().__init__(inputs, config, started)
        self.latents = None if started is None else Latents(started, inputs)
        self.collapse_advice = self.collapse_advice if started is None else None  # it may start so
        if inputs.num_nodes < 2:
            raise GraphError(
                "the graph has one node", fix="At least two are needed: one to see, one to predict."
            )
        self.config = config
        self.token = nn.Parameter(torch.zeros(inputs.num_features))
        structure = descriptors(inputs.graph, config.predictor.descriptors, config.predictor.spectral_dim)
        self.descriptors = torch.from_numpy(structure).to(inputs.device)
        self.predictor = self._make_predictor(structure.shape[1])

    def _make_predictor(self, descriptor_dim: int) -> nn.Module:
        predictor, activation = self.config.predictor, self.config.encoder.activation
        wanted = None if self.latents is None else self.latents.count
        made: dict[str, Any] = {"hidden": predictor.hidden, "activation": activation, "out_dim": wanted}
        if predictor.kind == "attention":
            return AttentionPredictor(self.encoder.out_dim, descriptor_dim, heads=predictor.heads, **made)
        return MessagePassingPredictor(self.encoder.out_dim, descriptor_dim, layers=predictor.layers, **made)

    def losses(self, inputs: GraphInputs, context: StepContext) -> dict[str, Tensor]:
        """One step of Algorithm 1 (the paper, appendix)."""
        masking, loss, reduction = self.config.masking, self.config.loss, context.reduction
        ratio, hops = masking.at(context.epoch)
        least = 1 / inputs.num_nodes  # one node to predict, one to predict it from
        ratio = min(max(ratio, least), 1 - least)
        targets = khop_mask(  # line 1
            inputs, ratio, hops, context.numpy("mask"), max_neighbours=masking.max_neighbours
        )
        hidden = torch.from_numpy(targets).to(inputs.device)
        h = self.encoder(inputs.masked(hidden, self.token) if masking.isolation else inputs)  # lines 2-3
        with torch.no_grad():  # line 3
            teacher, latents = self.target_encoder, self.latents
            wanted = latents.predicted(teacher, inputs, targets) if latents else teacher(inputs, rows=targets)
        visible, structure = pick_rows(h, ~targets), inputs.take(self.descriptors)
        guess = self.predictor(visible, inputs.propagation, targets, structure)  # line 4
        distance = cosine_distance if loss.prediction == "cosine" else l2_distance
        terms = {"prediction": reduction.average(distance(guess, wanted), len(guess))}
        guarded = visible if loss.regularised == "visible" else h  # line 5: the guards against collapse
        guarded = latents.guarded(self.encoder, inputs, ~targets) if latents else guarded
        if loss.variance or loss.covariance:
            covariance = covariance_matrix(guarded, reduction)
            terms["variance"] = variance_loss(covariance)
            terms["covariance"] = covariance_loss(covariance, loss.covariance_over)
        if loss.sigreg:
            terms["sigreg"] = loss.sigreg_term(guarded, context)
        if loss.laplacian:
            terms["laplacian"] = reduction.average(laplacian_energy(h, inputs.propagation), len(h))
        weights = vars(loss) | {"prediction": loss.prediction_weight}
        total = sum((weights[name] * term for name, term in terms.items()), torch.zeros(()))  # line 6
        return {"loss": total} | terms

    def predicting(self, terms: Mapping[str, Tensor]) -> Tensor:
        """L_pred of Eq. 2."""
        return self.config.loss.prediction_weight * terms["prediction"]


class NodeJEPA(StartedEstimator):
    """Node embeddings by predicting, in latent space, neighbourhoods hidden from the encoder.

    >>> from nodejepa.data import load_dataset
    >>> graph = load_dataset("digits").graph
    >>> NodeJEPA(preset="paper", epochs=2).fit(graph).transform(graph).shape
    (1797, 256)
    """

    name = "nodejepa"
    title = "NodeJEPA"
    summary = "predicts embeddings of hidden k-hop neighbourhoods"
    citation = "Zhang et al., NodeJEPA"
    presets = ("default", "paper", "linear-start")
    about_presets = "default is paper; linear-start: trained on from LinearJEPA's solution"
    config_class = NodeJEPAConfig

    @classmethod
    def preset_config(cls, name: str, dataset: str | None) -> Any:
        """``paper`` and ``default``: the paper's; ``linear-start``: trained on from LinearJEPA's solution."""
        if name != "linear-start":
            return super().preset_config(name, dataset)
        return NodeJEPAConfig(
            loss=LossConfig(
                prediction="l2", variance=0.02, covariance=0.02, covariance_over="dimensions", sigreg=0.002
            ),
            ema=EMAConfig(0.98, 0.99),
            training=TrainingConfig(epochs=100, lr=0.01),
            start="closed-form",
        )

    def prepare(self, graph: RowGraph) -> None:
        """The descriptors that the predictor asks for, and parts."""
        super().prepare(graph)
        if self.config.training.epochs:
            descriptors(graph, self.config.predictor.descriptors, self.config.predictor.spectral_dim)

    def make_task(self, inputs: RowInputs) -> NodeJEPATask:
        """Algorithm 1."""
        return NodeJEPATask(inputs, self.config, self.start(inputs))
