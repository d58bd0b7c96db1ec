"""PatchJEPA: predict the pooled embeddings of METIS patches (the paper, Section 3.3, Algorithm 2)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from annotated_types import Ge
from torch import Tensor

from nodejepa.config import Depth, Hops, NonNegative, PositiveInt, Settings, Width
from nodejepa.errors import ConfigError
from nodejepa.graph import RowGraph
from nodejepa.machine import progress_bar
from nodejepa.masking.patches import Patches, patch_descriptors
from nodejepa.methods.blocks import (
    EMAConfig,
    EncoderConfig,
    Keep,
    SIGRegConfig,
    TeacherTask,
)
from nodejepa.methods.trained import TrainedEstimator
from nodejepa.nn.encoders import Encoder
from nodejepa.nn.inputs import GraphInputs, RowInputs
from nodejepa.nn.predictors import PatchPredictor
from nodejepa.nn.sparse import SparseOperator
from nodejepa.objectives.latent import cosine_distance, hyperbola_distance
from nodejepa.structure.partition import partition, recommended_parts
from nodejepa.training.task import StepContext, TrainingConfig

_PAPER_PATCHES = {
    "computers": 64,
    "photo": 64,
    "cs": 64,
    "physics": 128,
    "arxiv": 256,
    "synthetic-arxiv": 256,
}


@dataclass(frozen=True)
class PatchesConfig(Settings):
    """The masking unit: METIS parts, each expanded by one hop."""

    section = "patches."
    count: Annotated[int, Ge(2)] | None = None  # none: by the size of the graph; the paper: 64/64/64/128/256
    contexts: PositiveInt = 1
    targets: PositiveInt = 4
    hops: Hops = 1  # how far a patch is expanded; 0 keeps it as METIS made it
    # What the encoder sees: the whole graph, whose node embeddings are pooled by patch, or each patch alone.
    # The paper does not say; studies/readings compares both with the geometry that it prints.
    encode: Literal["graph", "patch"] = "graph"
    # The paper does not say. One step an epoch gives every method as many updates and comes closest to its
    # Table 1; ceil(count / (contexts + targets)) would draw every patch once an epoch, and scores less
    # (docs/log.md).
    steps_per_epoch: PositiveInt = 1


@dataclass(frozen=True)
class PatchPredictorConfig(Settings):
    """The MLP from a context patch and a target's descriptor to the target's embedding."""

    section = "predictor."
    hidden: Width = 256
    layers: Depth = 3


@dataclass(frozen=True)
class PatchLossConfig(SIGRegConfig):
    """Weights of the loss terms; SIGReg is the only collapse guard."""

    hyperbola: NonNegative = 1.0  # the paper gives no weight
    # Where SIGReg looks, which the paper does not say: at all nodes, at all pooled patches, at the nodes of
    # the step's context patches, or at those patches pooled, which meets most of the numbers that the paper
    # prints (studies/readings).
    sigreg_on: Literal["nodes", "patches", "context", "pooled-context"] = "pooled-context"

    @property
    def guards_context(self) -> bool:
        """Whether SIGReg needs the context patches alone."""
        return self.sigreg_on in ("context", "pooled-context")


@dataclass(frozen=True)
class PatchJEPAConfig(Settings):
    """All settings of PatchJEPA; defaults are the paper's."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    patches: PatchesConfig = field(default_factory=PatchesConfig)
    predictor: PatchPredictorConfig = field(default_factory=PatchPredictorConfig)
    loss: PatchLossConfig = field(default_factory=PatchLossConfig)
    ema: EMAConfig = field(default_factory=lambda: EMAConfig(start=0.996, end=0.996))
    training: TrainingConfig = field(default_factory=TrainingConfig)
    keep: Keep = "target"

    def __post_init__(self) -> None:
        if self.patches.encode == "patch" and not self.loss.guards_context:
            raise ConfigError(
                f"loss.sigreg_on is {self.loss.sigreg_on!r}, but only the patches of a step are encoded",
                where="patches.encode",
                fix='Set loss.sigreg_on to "context" or "pooled-context", or patches.encode=graph.',
            )


class PatchJEPATask(TeacherTask):
    """Algorithm 2. Patches are those of the whole graph; of each, a step sees the nodes it is handed.

    On a part of the graph the step draws among the patches that have nodes of their own there.
    """

    sees = "micro-batches"
    collapse_advice = "Raise loss.sigreg, or lower training.lr."

    def __init__(self, inputs: RowInputs, config: PatchJEPAConfig) -> None:
        super().__init__(inputs, config)
        self.config = config
        self._pooled: SparseOperator | None = None
        count = config.patches.count or recommended_parts(inputs.num_nodes)
        self.patches = Patches.from_partition(
            inputs.graph, partition(inputs.graph, count), hops=config.patches.hops
        )
        self.steps_per_epoch = config.patches.steps_per_epoch
        self.descriptors = torch.from_numpy(patch_descriptors(inputs.graph, self.patches)).to(inputs.device)
        self.predictor = PatchPredictor(
            config.encoder.hidden,
            self.descriptors.shape[1],
            hidden=config.predictor.hidden,
            layers=config.predictor.layers,
            activation=config.encoder.activation,
        )

    def losses(self, inputs: GraphInputs, context: StepContext) -> dict[str, Tensor]:
        """One step of Algorithm 2 (the paper, appendix)."""
        loss, asked = self.config.loss, self.config.patches
        here = self.patches.with_core_in(inputs.nodes)
        contexts, targets = self.patches.sample(
            context.numpy("mask"), asked.contexts, asked.targets, among=here
        )  # line 1
        alone = asked.encode == "patch"
        encode = self._encode_patches if alone else self._encode_members
        with torch.no_grad():
            wanted, _ = encode(self.target_encoder, inputs, targets)  # line 2
        if loss.guards_context:
            pooled, nodes = encode(self.encoder, inputs, contexts)  # line 2
            guarded = nodes if loss.sigreg_on == "context" else pooled
        else:
            pooled, guarded = self._encode_all(inputs, contexts)
        # line 3: every context predicts every target
        guess = self.predictor(
            pooled.repeat_interleave(len(targets), dim=0),
            self.descriptors[targets].to(pooled.device).repeat(len(contexts), 1),
        )
        wanted = wanted.repeat(len(contexts), 1)
        reduction, count = context.reduction, len(guess)
        terms = {"prediction": reduction.average(cosine_distance(guess, wanted), count)}
        if loss.hyperbola:
            terms["hyperbola"] = reduction.average(hyperbola_distance(guess, wanted), count)
        total = self.predicting(terms)
        if loss.sigreg:
            terms["sigreg"] = loss.sigreg_term(guarded, context)
            total = total + loss.sigreg * terms["sigreg"]
        return {"loss": total} | terms

    def predicting(self, terms: Mapping[str, Tensor]) -> Tensor:
        """Both distances between guess and target."""
        if not self.config.loss.hyperbola:
            return terms["prediction"]
        return terms["prediction"] + self.config.loss.hyperbola * terms["hyperbola"]

    def _encode_members(
        self, encoder: Encoder, inputs: GraphInputs, patches: npt.NDArray[np.int64]
    ) -> tuple[Tensor, Tensor]:
        """Means ``[patches, D]`` over expanded patches, and the embeddings of the nodes in them."""
        members = self.patches.pooling_over(patches, inputs.nodes)
        rows = np.zeros(inputs.num_nodes, dtype=bool)
        rows[members.indices] = True
        h = encoder(inputs, rows=rows)
        return SparseOperator(members[:, rows], device=inputs.device)(h), h

    def _encode_all(self, inputs: GraphInputs, contexts: npt.NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Means over the context patches, and what SIGReg sees: all nodes, or all patches."""
        h = self.encoder(inputs)
        if self.config.loss.sigreg_on == "nodes":
            members = self.patches.pooling_over(contexts, inputs.nodes)
            return SparseOperator(members, device=inputs.device)(h), h
        here = self.patches.with_core_in(inputs.nodes)
        pooled = self._pooling(inputs, here)(h)
        places = torch.from_numpy(np.searchsorted(here, contexts)).to(inputs.device)
        return pooled.index_select(0, places), pooled

    def _pooling(self, inputs: GraphInputs, patches: npt.NDArray[np.int64]) -> SparseOperator:
        """Means over all patches of a step; those of the whole graph are the same in every step."""
        if inputs.num_nodes < len(self.patches.part):
            return SparseOperator(self.patches.pooling_over(patches, inputs.nodes), device=inputs.device)
        if self._pooled is None:
            self._pooled = SparseOperator(self.patches.pooling, device=inputs.device)
        return self._pooled

    def _encode_patches(
        self, encoder: Encoder, inputs: GraphInputs, patches: npt.NDArray[np.int64]
    ) -> tuple[Tensor, Tensor]:
        """The same where each expanded patch is a graph of its own."""
        lists = [
            np.flatnonzero(np.isin(inputs.nodes, self.patches.expanded(int(p)))).astype(np.int32)
            for p in patches
        ]
        h = encoder(inputs.induced(lists))
        parts = torch.split(h, [len(part) for part in lists])
        return torch.stack([part.mean(dim=0) for part in parts]), h


class PatchJEPA(TrainedEstimator):
    """Node embeddings by predicting pooled embeddings of graph patches from one another.

    >>> from nodejepa.data import load_dataset
    >>> graph = load_dataset("digits").graph
    >>> PatchJEPA(epochs=1, count=16).fit(graph).transform(graph).shape
    (1797, 256)
    """

    name = "patchjepa"
    title = "PatchJEPA"
    summary = "predicts pooled embeddings of METIS patches"
    citation = "Zhang et al., NodeJEPA"
    presets = ("default", "paper")
    about_presets = "no default of its own: both are the paper's"
    config_class = PatchJEPAConfig
    task_class = PatchJEPATask

    @classmethod
    def preset_config(cls, name: str, dataset: str | None) -> Any:
        """``paper``: the paper's patches and epochs for its data sets; ``default`` is the same."""
        patches = PatchesConfig(count=_PAPER_PATCHES.get(dataset or ""))
        return replace(super().preset_config(name, dataset), patches=patches)

    def prepare(self, graph: RowGraph) -> None:
        """The patches, and parts."""
        super().prepare(graph)
        with progress_bar("Partitioning the graph"):
            partition(graph, self.config.patches.count or recommended_parts(graph.num_nodes))
