"""PatchJEPA: predict the pooled embeddings of METIS patches (the paper, Section 3.3, Algorithm 2)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import numpy.typing as npt
import torch
from annotated_types import Ge
from torch import Tensor

from nodejepa.graph import Graph
from nodejepa.masking.patches import Patches, patch_descriptors
from nodejepa.methods.blocks import EMAConfig, EncoderConfig
from nodejepa.methods.teacher import Keep, SIGRegConfig, TeacherTask, paper_training
from nodejepa.methods.trained import TrainedEstimator
from nodejepa.nn.inputs import GraphInputs, WholeGraph
from nodejepa.nn.predictors import PatchPredictor
from nodejepa.nn.stack import Encoder
from nodejepa.nn.stored_inputs import StoredInputs
from nodejepa.objectives.hyperbola import hyperbola_distance
from nodejepa.objectives.prediction import cosine_distance
from nodejepa.progress import progress_bar
from nodejepa.store.graph import StoredGraph
from nodejepa.structure.partition import partition, recommended_parts
from nodejepa.training.task import StepContext, TrainingConfig
from nodejepa.validation import NonNegative, NonNegativeInt, PositiveInt, Settings

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
    hops: NonNegativeInt = 1  # how far a patch is expanded; 0 keeps it as METIS made it
    # The paper does not say. One step an epoch gives every method as many updates and comes closest to its
    # Table 1; ceil(count / (contexts + targets)) would draw every patch once an epoch, and scores less
    # (docs/log.md).
    steps_per_epoch: PositiveInt = 1


@dataclass(frozen=True)
class PatchPredictorConfig(Settings):
    """The MLP from a context patch and a target's descriptor to the target's embedding."""

    section = "predictor."
    hidden: PositiveInt = 256
    layers: PositiveInt = 3


@dataclass(frozen=True)
class PatchLossConfig(SIGRegConfig):
    """Weights of the loss terms; SIGReg, on the nodes of the context patch, is the only collapse guard."""

    hyperbola: NonNegative = 1.0  # the paper gives no weight


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


class PatchJEPATask(TeacherTask):
    """Algorithm 2. Patches are those of the whole graph; of each, a step sees the nodes it is handed.

    On a part of the graph the step draws among the patches that have nodes of their own there.
    """

    sees = "micro-batches"
    collapse_advice = "Raise loss.sigreg, or lower training.lr."

    def __init__(self, inputs: WholeGraph | StoredInputs, config: PatchJEPAConfig) -> None:
        super().__init__(inputs, config)
        self.config = config
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
        nodes, pooled = self._encode(self.encoder, inputs, contexts)  # line 2
        with torch.no_grad():
            _, wanted = self._encode(self.target_encoder, inputs, targets)  # line 2
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
            terms["sigreg"] = loss.sigreg_term(nodes, context)
            total = total + loss.sigreg * terms["sigreg"]
        return {"loss": total} | terms

    def predicting(self, terms: Mapping[str, Tensor]) -> Tensor:
        """Both distances between guess and target."""
        if not self.config.loss.hyperbola:
            return terms["prediction"]
        return terms["prediction"] + self.config.loss.hyperbola * terms["hyperbola"]

    def _encode(
        self, encoder: Encoder, inputs: GraphInputs, patches: npt.NDArray[np.int64]
    ) -> tuple[Tensor, Tensor]:
        """Node embeddings of expanded patches, one after another, and their means ``[patches, D]``."""
        lists = [
            np.flatnonzero(np.isin(inputs.nodes, self.patches.expanded(int(p)))).astype(np.int32)
            for p in patches
        ]
        h = encoder(inputs.induced(lists))
        parts = torch.split(h, [len(part) for part in lists])
        return h, torch.stack([part.mean(dim=0) for part in parts])


class PatchJEPA(TrainedEstimator):
    """Node embeddings by predicting pooled embeddings of graph patches from one another.

    >>> from nodejepa.data import load_dataset
    >>> graph = load_dataset("digits").graph
    >>> PatchJEPA(epochs=1, count=16).fit(graph).transform(graph).shape
    (1797, 256)
    """

    name = "patchjepa"
    config_class = PatchJEPAConfig

    @classmethod
    def preset(cls, name: str, dataset: str | None = None) -> PatchJEPAConfig:
        """``paper``: the paper's patches and epochs for its data sets; ``default`` is the same."""
        return PatchJEPAConfig(
            patches=PatchesConfig(count=_PAPER_PATCHES.get(dataset or "")),
            training=paper_training(cls.name, name, dataset),
        )

    def prepare(self, graph: Graph | StoredGraph) -> None:
        """The patches, and parts."""
        super().prepare(graph)
        with progress_bar("Partitioning the graph"):
            partition(graph, self.config.patches.count or recommended_parts(graph.num_nodes))

    def make_task(self, inputs: WholeGraph | StoredInputs) -> PatchJEPATask:
        """Algorithm 2."""
        return PatchJEPATask(inputs, self.config)
