"""Fine-tuning: a pretrained encoder trained on with labels, beside the same network from random weights."""

import copy
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from nodejepa.config import NonNegativeInt, Settings, ShareBelowOne, require, setting_of_type
from nodejepa.data.splits import Split, label_classes
from nodejepa.errors import ConfigError
from nodejepa.graph_checks import in_node_order
from nodejepa.methods.estimator import Estimator
from nodejepa.methods.supervised import Classifier, ClassifierTask, supervise
from nodejepa.methods.trained import TrainedEstimator
from nodejepa.nn.hop_encoder import HopEncoder
from nodejepa.tables import as_graph
from nodejepa.training.logger import Logging
from nodejepa.training.loop import train
from nodejepa.training.task import Source, TrainingConfig, seeded


@dataclass(frozen=True)
class FinetuneConfig(Settings):
    """How an encoder is trained on; the same for every method and for the network from random weights.

    The rate and its schedule are the paper's shared ones, dropout that of its supervised GCN. Encoder and
    head share the rate: a slower encoder would handicap the network that has yet to learn everything.
    """

    dropout: ShareBelowOne = 0.5  # on the input of every layer but the first, and of the head
    training: TrainingConfig = field(default_factory=lambda: TrainingConfig(epochs=200, patience=50))

    def __post_init__(self) -> None:
        super().__post_init__()
        parts = self.training.parts
        require(parts == 1, "training.parts", parts, "1: fine-tuning sees the whole graph in every step")


@dataclass(frozen=True)
class FinetuneResult:
    """Accuracies in percent; ``scratch``: of the same network that began with random weights."""

    split: str
    split_hash: str
    seed: int
    test_accuracy: float
    val_accuracy: float
    epochs: int
    scratch_test_accuracy: float
    scratch_val_accuracy: float
    scratch_epochs: int

    def to_dict(self) -> dict[str, str | int | float]:
        """Plain values, ready for JSON."""
        return asdict(self)


def finetune(
    estimator: Estimator,
    graph: Any,
    labels: npt.ArrayLike,
    split: Split,
    *,
    config: FinetuneConfig | None = None,
    seed: int = 0,
) -> FinetuneResult:
    """Train a fitted method's encoder with a linear head on the training labels, end to end.

    The same network is trained from random weights, too, with the same budget. Validation nodes say when to
    stop and which weights to keep; test nodes are read once, at the end. The estimator is left as it is.

    Args:
        estimator: fitted; its encoder is where training begins.
        graph: usually the one of pretraining.
        labels: one a node; a pandas Series is aligned by its index of ids.
        split: training, validation and test nodes.
        config: settings of the fine-tuning, not of the method.
        seed: of the head, of dropout and of the random weights.
    """
    encoder = getattr(estimator, "encoder_", None)
    if not isinstance(estimator, TrainedEstimator) or isinstance(encoder, HopEncoder | None):
        raise ConfigError(
            "only a fitted method whose encoder is trained can be fine-tuned",
            where="finetune",
            fix="Fit it first; untrained baselines and closed forms have nothing to train on.",
        )
    graph = as_graph(graph)
    inputs = estimator.inputs_to_encode(graph)
    seed = int(setting_of_type(NonNegativeInt, seed, "seed"))
    labels = np.asarray(in_node_order(labels, graph.node_ids, graph.num_nodes, "labels"))
    supervision = supervise(labels, split, graph.num_nodes, "finetune")
    split.check(label_classes(labels)[1])
    config = config or FinetuneConfig()

    def tuned(encoder: Any, description: str) -> tuple[float, float, int]:
        """Test accuracy, validation accuracy and epochs of the encoder, trained with a new head."""
        encoder.requires_grad_(True)  # what is kept of a method may be a frozen target network
        encoder.dropout = config.dropout
        with seeded(seed, "init", 0):
            classifier = Classifier(encoder, len(supervision.classes), dropout=config.dropout)
        task = ClassifierTask(inputs, classifier, supervision).to(inputs.device)
        logging = Logging(description=description)
        history = train(task, Source(inputs), config.training, seed=seed, logging=logging)
        with torch.no_grad():
            codes = task.best.logits(inputs).argmax(dim=1).cpu().numpy()
        right = supervision.classes[codes] == labels
        test, val = (100 * float(np.mean(right[nodes])) for nodes in (split.test, split.val))
        return test, val, len(history)

    own = tuned(copy.deepcopy(_encoder(encoder)), f"Fine-tuning {estimator.name}")
    with seeded(seed, "init", 1):  # position 0 is the head's
        fresh = _encoder(estimator.make_encoder(estimator.in_dim_))
    scratch = tuned(fresh, f"{estimator.name}'s network from scratch")
    return FinetuneResult(split.name, split.hash, seed, *own, *scratch)


def _encoder(module: nn.Module) -> nn.Module:
    """The encoder alone, where a method keeps a head with it."""
    inner: nn.Module = module.encoder if isinstance(module, Classifier) else module
    return inner
