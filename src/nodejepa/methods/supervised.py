"""The supervised GCN: what the labels of a split are worth without pretraining (Kipf & Welling 2017)."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from nodejepa.config import NonNegative, Settings, ShareBelowOne, of_type
from nodejepa.errors import ConfigError, EvaluationError
from nodejepa.graph import RowGraph
from nodejepa.graph_checks import in_node_order
from nodejepa.methods.blocks import PRESETS, BaselineEncoderConfig, build_encoder, frozen_copy
from nodejepa.methods.estimator import as_row_graph
from nodejepa.methods.trained import TrainedEstimator
from nodejepa.nn.encoders import FirstWeight, pick_rows
from nodejepa.nn.inputs import GraphInputs, RowInputs
from nodejepa.nn.sparse import Rows
from nodejepa.training.logger import Logging
from nodejepa.training.task import StepContext, Task, TrainingConfig

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Supervision:
    """Labels of training and of validation nodes, as positions in ``classes``."""

    classes: npt.NDArray[Any]  # [k] ascending
    train: Indices  # [N], -1 where the label is not shown
    val: Indices  # [N]
    hash: str  # 16 hexadecimal digits that change with any node or label


def supervise(labels: Any, split: Any, num_nodes: int, where: str) -> Supervision:
    """What ``split`` lets a method see of ``labels``: the test nodes' are cut off here."""
    # the data sets come with it: only who has labels needs them
    from nodejepa.data.splits import Split, label_classes

    if labels is None or not isinstance(split, Split):
        raise ConfigError(
            "labels or split are missing, and a supervised method learns from them",
            where=where,
            fix="Call fit(graph, labels=dataset.labels, split=dataset.split(seed=42)).",
        )
    values, every = label_classes(labels)
    if len(every) != num_nodes:
        raise EvaluationError(
            f"{len(every)} labels for {num_nodes} nodes", where=where, fix="Give one label for every node."
        )
    split.check(every, "training", "validation")
    seen = np.unique(np.concatenate([every[split.train], every[split.val]]))
    sha, shown = hashlib.sha256(), []
    for nodes in (split.train, split.val):
        codes = np.full(num_nodes, -1, dtype=np.int64)
        codes[nodes] = np.searchsorted(seen, every[nodes])
        shown.append(codes)
        for part in (nodes, values[every[nodes]]):
            sha.update(f"|{part.size}|".encode())
            numbers = part.dtype.kind in "iu"
            sha.update(part.astype("<i8").tobytes() if numbers else "\0".join(part.tolist()).encode())
    return Supervision(values[seen], shown[0], shown[1], sha.hexdigest()[:16])


class Classifier(nn.Module):
    r"""An encoder f and a linear head: :math:`\mathrm{logits} = \mathrm{dropout}(f(G)) W + b`.

    Args:
        encoder: any encoder of this package.
        classes: how many.
        dropout: on the head's input, in training.
        propagate: put S before W, which makes the head the last layer of a GCN (Kipf & Welling).
    """

    def __init__(self, encoder: Any, classes: int, *, dropout: float = 0.0, propagate: bool = False) -> None:
        super().__init__()
        self.encoder, self.dropout, self.propagate = encoder, dropout, propagate
        self.out_dim: int = encoder.out_dim
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(self.out_dim, classes)))
        self.bias = nn.Parameter(torch.zeros(classes))
        # statistics of a batch are those of the whole graph, also where few rows are asked for
        self._mixes_rows = any(isinstance(module, nn.BatchNorm1d) for module in encoder.modules())

    def embed(self, inputs: GraphInputs, rows: Rows = None) -> Tensor:
        """What the head reads: the embeddings, as :meth:`nodejepa.nn.encoders.Encoder.embed`."""
        z: Tensor = self.encoder.embed(inputs, rows)
        return z

    def logits(self, inputs: GraphInputs, rows: Rows = None) -> Tensor:
        """``[N, classes]``, or only those of ``rows`` (bool ``[N]``), in order."""
        whole = rows is None or self.propagate or self._mixes_rows
        h: Tensor = self.encoder(inputs) if whole else self.encoder(inputs, rows=rows)
        h = nn.functional.dropout(h, self.dropout, self.training)
        if self.propagate:
            h = inputs.propagation.cut(rows)(h)
        elif whole:
            h = pick_rows(h, rows)
        return torch.addmm(self.bias, h, self.weight)


class ClassifierTask(Task):
    r"""Cross-entropy on the training nodes; the weights with the lowest L on validation nodes are kept.

    .. math:: L = -\frac{1}{|T|} \sum_{i \in T} \log \mathrm{softmax}(\mathrm{logits}_i)_{y_i}
        + \frac{\lambda}{2} \|W_1\|^2

    Args:
        inputs: the whole graph.
        classifier: what is trained.
        supervision: labels of training and validation nodes; there are no others here.
        feature_dropout: on single features, in training.
        row_normalise: divide rows of X by their sums before that, as the encoder would after it.
        l2: lambda, on the encoder's first weight only (Kipf & Welling).
    """

    watched = "val_loss"
    collapse_advice = None

    def __init__(
        self,
        inputs: RowInputs,
        classifier: Classifier,
        supervision: Supervision,
        *,
        feature_dropout: float = 0.0,
        row_normalise: bool = False,
        l2: float = 0.0,
    ) -> None:
        super().__init__()
        self.feature_dropout, self.row_normalise, self.l2 = feature_dropout, row_normalise, l2
        self.classifier, self.best = classifier, frozen_copy(classifier)
        self.train_codes = torch.from_numpy(supervision.train).to(inputs.device)
        self.val_codes = torch.from_numpy(supervision.val).to(inputs.device)

    def losses(
        self,
        inputs: GraphInputs,
        context: StepContext,  # noqa: ARG002 - dropout is seeded by the loop
    ) -> dict[str, Tensor]:
        """Drop out, classify the training nodes, compare."""
        inputs = inputs.row_normalised if self.row_normalise else inputs
        seen = inputs.with_dropout(self.feature_dropout) if self.feature_dropout else inputs
        error = nn.functional.cross_entropy(*self._classified(seen, self.train_codes))
        return {"loss": error + self._penalty(), "cross_entropy": error} if self.l2 else {"loss": error}

    @property
    def kept_encoder(self) -> Classifier:
        """The classifier as it is now, not at its best."""
        return self.classifier

    def _classified(self, inputs: GraphInputs, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and codes of the nodes that have a code."""
        codes = inputs.take(codes)
        known = codes >= 0
        return self.classifier.logits(inputs, known.cpu().numpy()), codes[known]

    def _penalty(self) -> Tensor:
        first = [m.weight for m in self.classifier.encoder.modules() if isinstance(m, FirstWeight)]
        return self.l2 / 2 * torch.stack([weight.square().sum() for weight in first]).sum()

    @torch.no_grad()
    def validate(self, inputs: GraphInputs) -> dict[str, float]:
        """Loss, penalty included (as by Shchur et al.), and accuracy (percent) on the validation nodes."""
        self.classifier.eval()
        logits, codes = self._classified(inputs, self.val_codes)
        self.classifier.train()
        right = (logits.argmax(dim=1) == codes).double().mean().item()
        loss = nn.functional.cross_entropy(logits, codes)
        loss = loss + self._penalty() if self.l2 else loss
        return {"val_loss": loss.item(), "val_accuracy": 100 * right}

    @torch.no_grad()
    def keep_best(self) -> None:
        """Weights and buffers as they are now."""
        self.best.load_state_dict(self.classifier.state_dict())


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
    title = "Supervised GCN"
    summary = "learns from the split's training labels"
    citation = "Kipf & Welling 2017, Shchur et al. 2018"
    supervised = True
    presets = PRESETS
    config_class = SupervisedGCNConfig
    classes_: npt.NDArray[Any]
    encoder_: Classifier
    _supervision: Supervision

    @classmethod
    def official(cls, dataset: str | None) -> SupervisedGCNConfig:  # noqa: ARG003 - one for all
        """Shchur et al. 2018 (their tuned GCN), whose features are binary and not normalised.

        Two layers, 64 wide, dropout 0.8 on the input of both, L2 on the first weight, Adam 0.01, at most
        100,000 epochs, stopped after 50 without a lower validation loss.
        """
        return SupervisedGCNConfig(
            BaselineEncoderConfig(hidden=64, layers=1, norm="none", activate_last=True),
            HeadConfig(dropout=0.8, propagate=True, feature_dropout=0.8, l2=1e-3),
            TrainingConfig(epochs=100_000, lr=0.01, lr_end=0.01, weight_decay=0.0, clip=None, patience=50),
        )

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
        graph = as_row_graph(graph, X)
        logging = logging or Logging(description=f"Training {self.name}")
        ordered = in_node_order(labels, getattr(graph, "node_ids", None), graph.num_nodes, "labels")
        self._supervision = supervise(ordered, split, graph.num_nodes, self.name)
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
        predicted: npt.NDArray[Any] = self.classes_[codes]
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

    def make_task(self, inputs: RowInputs) -> ClassifierTask:
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
        known: Any = list[int] | list[str]
        self.classes_ = np.asarray(of_type(known, facts.get("classes"), "classes"))

    def training_data(self, graph: RowGraph) -> dict[str, Any]:
        """The labels are part of what a run was trained on."""
        return {**super().training_data(graph), "labels": self._supervision.hash}
