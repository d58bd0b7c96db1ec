"""The labels that a supervised method is shown: those of training and validation nodes, and no others."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nodejepa.data.splits import Split
from nodejepa.errors import ConfigError, EvaluationError

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Supervision:
    """Training and validation nodes with their labels, as positions in ``classes``."""

    classes: Indices  # [k] ascending
    train: Indices
    train_codes: Indices
    val: Indices
    val_codes: Indices

    @property
    def hash(self) -> str:
        """16 hexadecimal digits that change with any node or label."""
        sha = hashlib.sha256()
        for part in (self.train, self.classes[self.train_codes], self.val, self.classes[self.val_codes]):
            sha.update(f"|{part.size}|".encode())
            sha.update(part.astype("<i8").tobytes())
        return sha.hexdigest()[:16]


def supervise(labels: Any, split: Any, num_nodes: int, where: str) -> Supervision:
    """What ``split`` lets a method see of ``labels``: the test nodes' are cut off here."""
    if labels is None or not isinstance(split, Split):
        raise ConfigError(
            "labels or split are missing, and a supervised method learns from them",
            where=where,
            fix="Call fit(graph, labels=dataset.labels, split=dataset.split(seed=42)).",
        )
    array = np.asarray(labels)
    if array.shape != (num_nodes,) or array.dtype.kind not in "iu":
        raise EvaluationError(
            f"labels are {array.dtype} with shape {array.shape} for {num_nodes} nodes",
            where=where,
            fix="Give one whole number a node, -1 where the label is unknown.",
        )
    shown = {
        name: _labels_of(array, nodes, name, where)
        for name, nodes in (("training", split.train), ("validation", split.val))
    }
    if len(np.unique(shown["training"])) < 2:
        raise EvaluationError(
            "all training nodes are of one class", where=where, fix="A classifier needs at least two."
        )
    classes, codes = np.unique(np.concatenate(list(shown.values())), return_inverse=True)
    return Supervision(classes, split.train, codes[: split.train.size], split.val, codes[split.train.size :])


def _labels_of(labels: npt.NDArray[Any], nodes: Indices, part: str, where: str) -> Indices:
    if nodes.size == 0:
        raise EvaluationError(
            f"there are no {part} nodes",
            where=where,
            fix="Use a split with training nodes to learn from and validation nodes to stop by.",
        )
    if nodes.max() >= len(labels):
        raise EvaluationError(
            f"{part} node {nodes.max()} does not exist ({len(labels)} labels)",
            where=where,
            fix="Make the split from the labels of the same graph.",
        )
    shown = labels[nodes].astype(np.int64)
    if shown.min() < 0:
        raise EvaluationError(
            f"{part} node {nodes[shown.argmin()]} has no label",
            where=where,
            fix="Leave unlabelled nodes out of the split.",
        )
    return shown
