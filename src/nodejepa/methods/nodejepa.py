"""NodeJEPA: predict the embeddings of hidden k-hop neighbourhoods (the paper, Section 3.2, Algorithm 1)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
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
from nodejepa.methods.linear_jepa import LinearJEPA, hartley
from nodejepa.methods.trained import TrainedEstimator
from nodejepa.nn.encoders import pick_rows
from nodejepa.nn.hop_encoder import HopEncoder
from nodejepa.nn.inputs import GraphInputs, RowInputs
from nodejepa.nn.predictors import AttentionPredictor, MessagePassingPredictor
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
from nodejepa.training.logger import Logging
from nodejepa.training.run import History, Run
from nodejepa.training.task import StepContext, TrainingConfig

# What the encoder is before the first step. ``random``: the network that ``encoder.*`` describes, with random
# weights. ``closed-form``: LinearJEPA's solution, ``encoder.hidden`` columns wide. ``random-hops``: the same
# encoder with directions drawn at random, to tell what the start is worth.
Start = Literal["random", "closed-form", "random-hops"]


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
    # Standard deviation of the mask token's entries at the start; none: Glorot's, as for a weight; 0: zeros.
    # The paper does not say. Its geometry does not tell 0, 0.02 and Glorot's apart (studies/readings).
    token_std: NonNegative | None = 0.0
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
        if self.start == "random":
            return
        encoder, usual = self.encoder, EncoderConfig()
        for name, value in vars(encoder).items():
            if name not in ("hidden", "activation") and value != getattr(usual, name):
                raise ConfigError(
                    f"encoder.{name} is {value!r}, which an encoder with start={self.start} does not have",
                    where="start",
                    fix="Set start=random, or take preset paper, to train a network.",
                )
        whole = encoder.hidden >= 4 and encoder.hidden % 4 == 0
        require(whole, "encoder.hidden", encoder.hidden, f"a multiple of 4 with start={self.start}")


class Latents(nn.Module):
    """What is predicted and guarded of an encoder that starts at the closed form: latents before propagation.

    Both in the units of the start. Predicted latents are centred and, as a whole, of unit variance: among
    themselves they keep the closed form's weights. Guarded ones are of unit variance each, so that the guards
    ask to keep the start's shape and not to undo those weights.
    """

    mean: Tensor
    spread: Tensor

    def __init__(self, encoder: HopEncoder, inputs: RowInputs) -> None:
        super().__init__()
        self.count = encoder.weight.shape[1]
        with torch.no_grad():
            z = encoder.latents(inputs)
            mean, spread = z.mean(dim=0), z.std(dim=0, correction=0)
        self.register_buffer("mean", mean)
        self.register_buffer("spread", torch.where(spread > 0, spread, torch.ones_like(spread)))

    def predicted(self, encoder: HopEncoder, inputs: GraphInputs, rows: npt.NDArray[np.bool_]) -> Tensor:
        """What is to be predicted of ``rows`` (bool ``[N]``)."""
        return (encoder.latents_of(inputs, rows) - self.mean) / self.spread.square().mean().sqrt()

    def guarded(self, encoder: HopEncoder, inputs: GraphInputs, rows: npt.NDArray[np.bool_]) -> Tensor:
        """What must not collapse, of ``rows`` (bool ``[N]``)."""
        return (encoder.latents_of(inputs, rows) - self.mean) / self.spread


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
        spread = config.masking.token_std
        if spread is None:
            nn.init.xavier_normal_(self.token[None])
        elif spread:
            nn.init.normal_(self.token, std=spread)
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


class NodeJEPA(TrainedEstimator):
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
    solved_: LinearJEPA | None = None  # where training started; none: the encoder is a network

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
        """Algorithm 1, on a network or from the closed form on."""
        if self.config.start == "random":
            return NodeJEPATask(inputs, self.config)
        # not rotated yet: the guards take every latent in its own unit
        encoder, _ = self._solve(inputs, Logging(description="Solving the closed form"), rotated=False)
        entry = float(encoder.weight.double().square().mean().sqrt()) or 1.0  # root of the mean square
        encoder.unit = 2.0 ** round(math.log2(entry))
        encoder.weight.div_(encoder.unit)  # exact: a power of two
        return NodeJEPATask(inputs, self.config, encoder.requires_grad_(True))

    def learn(self, inputs: RowInputs, run: Run | None, logging: Logging) -> tuple[Any, History]:
        """As LinearJEPA where the start is kept as it is."""
        if self.config.start == "closed-form" and not self.config.training.epochs:
            return self._solve(inputs, logging)
        return super().learn(inputs, run, logging)

    # ---------------------------------------------------------------- the start at the closed form

    def solver(self, **settings: Any) -> LinearJEPA:
        """The closed form, as wide as the network would be."""
        return LinearJEPA(dim=self.config.encoder.hidden, device=self.device, **settings)

    def _solve(
        self, inputs: RowInputs, logging: Logging, *, rotated: bool = True
    ) -> tuple[HopEncoder, History]:
        solver = self.solved_ = self.solver(rotated=rotated)
        solver.process_group = self.process_group
        encoder, history = solver.learn(inputs, None, logging)
        if self.config.start == "random-hops":
            _redraw(encoder, inputs, solver.findings_.mean_kept)
        return encoder, history

    def trained_encoder(self, task: Any) -> Any:
        """The encoder to keep, its weights in plain units and rotated as LinearJEPA's are."""
        encoder = super().trained_encoder(task)
        if isinstance(encoder, HopEncoder):
            with torch.no_grad():
                encoder.weight.mul_(encoder.unit)
                if encoder.equal_rows:  # hops that stand side by side are neither
                    rotation = hartley(len(encoder.shift)).to(encoder.weight)
                    encoder.weight.copy_(encoder.weight @ rotation)
                    encoder.shift.copy_(encoder.shift @ rotation)
            encoder.unit = 1.0
            encoder.requires_grad_(False)
        return encoder

    def make_encoder(self, in_dim: int) -> Any:
        """What the settings ``encoder.*`` say, or LinearJEPA's, as large as the graph asked for."""
        return self.solved_.make_encoder(in_dim) if self.solved_ else super().make_encoder(in_dim)

    def width(self, graph: RowGraph) -> int:
        """As LinearJEPA's, where it starts there."""
        return super().width(graph) if self.config.start == "random" else self.solver().width(graph)

    def describe(self) -> str:
        """What the closed form found, where it was the start."""
        return self.solved_.describe() if self.solved_ else ""

    def spectrum(self) -> tuple[float, ...]:
        """rho of every latent of the closed form, where it was the start."""
        return self.solved_.spectrum() if self.solved_ else ()

    def own_facts(self) -> dict[str, Any]:
        """What the closed form found, which also says how large the encoder is."""
        return self.solved_.own_facts() if self.solved_ else {}

    def take_facts(self, facts: Mapping[str, Any]) -> None:
        """The findings back from a file."""
        self.solved_ = None if self.config.start == "random" else self.solver()
        if self.solved_:
            self.solved_.take_facts(facts)


def _redraw(encoder: HopEncoder, inputs: RowInputs, mean_kept: float) -> None:
    """Directions drawn at random, as long as those found; the mean's share and the mixture of hops stay."""
    length = encoder.weight.norm(dim=0) / math.sqrt(len(encoder.weight))
    encoder.weight.copy_(torch.randn(encoder.weight.shape).to(length.device) * length)
    if encoder.shift.any():
        encoder.shift.zero_()
        encoder.shift.copy_((1 - mean_kept) * encoder.latents(inputs).mean(dim=0))
