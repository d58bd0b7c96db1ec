"""The supervised GCN: what the labels of a split are worth without pretraining (Kipf & Welling 2017)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch

from nodejepa.graph import RowGraph
from nodejepa.methods.blocks import BaselineEncoderConfig, build_encoder, check_preset, matched_training
from nodejepa.methods.classifier import Classifier, ClassifierTask
from nodejepa.methods.habits import with_own_features
from nodejepa.methods.supervision import Supervision, supervise
from nodejepa.methods.trained import TrainedEstimator
from nodejepa.nn.inputs import WholeGraph
from nodejepa.training.logger import Logging
from nodejepa.training.task import TrainingConfig
from nodejepa.validation import NonNegative, Settings, ShareBelowOne, of_type


@dataclass(frozen=True)
class HeadConfig(Settings):
    """The classifier on top of the encoder, and how features and first weight are regularised."""

    section = "head."
    dropout: ShareBelowOne = 0.5  # on the head's input
    propagate: bool = False  # the head is a GCN layer, not a linear map
    feature_dropout: ShareBelowOne = 0.0
    l2: NonNegative = 0.0  # on the first weight


@dataclass(frozen=True)
class SupervisedGCNConfig(Settings):
    """All settings of the supervised GCN; defaults are those of the paper's matched comparison.

    The paper gives the encoder, dropout 0.5 and cross-entropy; that training may stop early comes with a
    patience that is a third of its epochs.
    """

    encoder: BaselineEncoderConfig = field(default_factory=lambda: BaselineEncoderConfig(dropout=0.5))
    head: HeadConfig = field(default_factory=HeadConfig)
    training: TrainingConfig = field(default_factory=lambda: TrainingConfig(patience=100))


# Shchur et al. 2018 (their tuned GCN): two layers, 64 wide, dropout 0.8 on the input of both, L2 on the first
# weight, Adam 0.01, at most 100,000 epochs, stopped after 50 without a lower validation loss. Features are
# binary and not normalised.
_OFFICIAL = SupervisedGCNConfig(
    BaselineEncoderConfig(hidden=64, layers=1, norm="none", activate_last=True),
    HeadConfig(dropout=0.8, propagate=True, feature_dropout=0.8, l2=1e-3),
    TrainingConfig(epochs=100_000, lr=0.01, lr_end=0.01, weight_decay=0.0, clip=None, patience=50),
)


class SupervisedGCN(TrainedEstimator):
    """A GCN trained on the labels of a split; the only method that is shown labels.

    ``transform`` gives what its head reads, so that the same probe can be applied; ``predict`` asks the head.

    >>> from nodejepa.data import load_dataset
    >>> data = load_dataset("digits")
    >>> model = SupervisedGCN(epochs=2).fit(data.graph, labels=data.labels, split=data.split(seed=42))
    >>> model.predict(data.graph).shape
    (1797,)
    """

    name = "supervised-gcn"
    config_class = SupervisedGCNConfig
    classes_: npt.NDArray[np.int64]
    encoder_: Classifier
    _supervision: Supervision

    @classmethod
    def preset(cls, name: str, dataset: str | None = None) -> SupervisedGCNConfig:
        """``paper``: matched comparison; ``official``: tuned as by Shchur et al.; ``default``: ``paper``."""
        check_preset(cls.name, name)
        if name == "official":
            return _OFFICIAL
        return SupervisedGCNConfig(training=replace(matched_training(dataset), patience=100))

    def fit(
        self,
        graph: Any,
        X: Any = None,
        *,
        labels: npt.ArrayLike | None = None,
        split: Any = None,
        out: str | Path | None = None,
        resume: bool = False,
        logging: Logging | None = None,
    ) -> Self:
        """Train on a graph and the labels of a split.

        Args:
            graph: as in :meth:`TrainedEstimator.fit`, and so are ``X``, ``out``, ``resume`` and ``logging``.
            labels: one a node; only those of the split's training and validation nodes are read.
            split: training nodes to learn from, validation nodes to stop by; its test nodes play no part.
        """
        graph = with_own_features(graph, X)
        logging = logging or Logging(description=f"Training {self.name}")
        self._supervision = supervise(labels, split, graph.num_nodes, self.name)
        self.classes_ = self._supervision.classes
        try:
            return super().fit(graph, out=out, resume=resume, logging=logging)
        finally:
            del self._supervision

    def predict(self, graph: Any) -> npt.NDArray[np.int64]:
        """The class of each node by the method's own head, rows in the graph's order."""
        inputs = self.inputs_to_encode(graph)
        with torch.no_grad():
            codes = self.encoder_.logits(inputs).argmax(dim=1).cpu().numpy()
        predicted: npt.NDArray[np.int64] = self.classes_[codes]
        return predicted

    def make_encoder(self, in_dim: int) -> Classifier:
        """The encoder with its head, which embeds like an encoder."""
        head = self.config.head
        return Classifier(
            build_encoder(self.config.encoder, in_dim),
            len(self.classes_),
            dropout=head.dropout,
            propagate=head.propagate,
        )

    def make_task(self, inputs: WholeGraph) -> ClassifierTask:
        """Cross-entropy on the training nodes."""
        return ClassifierTask(
            inputs,
            self.make_encoder(inputs.num_features),
            self._supervision,
            feature_dropout=self.config.head.feature_dropout,
            row_normalise=self.config.encoder.row_normalise,
            l2=self.config.head.l2,
        )

    def trained_encoder(self, task: ClassifierTask) -> Classifier:
        """The weights that were best on validation."""
        return task.best

    def own_facts(self) -> dict[str, Any]:
        """The classes: how wide the head is, and what its columns mean."""
        return {"classes": self.classes_.tolist()}

    def take_facts(self, facts: Mapping[str, Any]) -> None:
        """The classes back from a file."""
        self.classes_ = np.asarray(of_type(list[int], facts.get("classes")), dtype=np.int64)

    def training_data(self, graph: RowGraph) -> dict[str, Any]:
        """The labels are part of what a run was trained on."""
        return {**super().training_data(graph), "labels": self._supervision.hash}
