"""Do embeddings, labels and splits fit together? Everything that does not is refused here, with advice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nodejepa.data.splits import Split
from nodejepa.diagnostics import Embeddings, check_embeddings
from nodejepa.errors import EvaluationError


@dataclass(frozen=True, eq=False)
class ProbeInput:
    """Checked input of a probe: ``embeddings[i]`` belongs to ``splits[i]``; often all are one matrix."""

    embeddings: list[Embeddings]
    splits: list[Split]
    classes: npt.NDArray[np.int64]  # [k], the labels there are
    codes: npt.NDArray[np.int64]  # [N], position of each node's label in ``classes``; -1 if unknown


def check_probe_input(
    embeddings: Embeddings | Sequence[Embeddings],
    labels: npt.ArrayLike,
    splits: Sequence[Split],
    *,
    needs_validation: bool,
) -> ProbeInput:
    """The input of a probe, or an :class:`EvaluationError` about the first thing wrong with it."""
    classes, codes = _check_labels(labels)
    splits = [splits] if isinstance(splits, Split) else list(splits)
    if not splits:
        raise EvaluationError("no split was given", where="probe", fix="Give at least one split.")
    matrices = _check_matrices(embeddings, len(splits), len(codes))
    for split in splits:
        _check_split(split, codes, needs_validation)
    return ProbeInput(matrices, splits, classes, codes)


def _check_labels(labels: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    array = np.asarray(labels)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise EvaluationError(
            f"labels are {array.dtype} with shape {array.shape}",
            where="labels",
            fix="Give one whole number a node, -1 where the label is unknown.",
        )
    known = array >= 0
    classes, codes = np.unique(array[known], return_inverse=True)
    if len(classes) < 2:
        raise EvaluationError(
            f"there are {len(classes)} classes", where="labels", fix="A classifier needs at least two."
        )
    everywhere = np.full(array.shape, -1, dtype=np.int64)
    everywhere[known] = codes
    return classes.astype(np.int64), everywhere


def _check_matrices(
    embeddings: Embeddings | Sequence[Embeddings], num_splits: int, num_nodes: int
) -> list[Embeddings]:
    one_each = isinstance(embeddings, (list, tuple))
    given: list[Embeddings] = list(embeddings) if one_each else [embeddings] * num_splits
    if len(given) != num_splits:
        raise EvaluationError(
            f"{len(given)} embedding matrices for {num_splits} splits",
            where="probe",
            fix="Give one matrix for all splits, or exactly one a split.",
        )
    checked: dict[int, Embeddings] = {}  # the same object is checked once and stays one object
    for matrix in given:
        if id(matrix) not in checked:
            checked[id(matrix)] = check_embeddings(matrix)
    for matrix in checked.values():
        if matrix.shape[0] != num_nodes:
            raise EvaluationError(
                f"embeddings have {matrix.shape[0]} rows for {num_nodes} labels",
                where="probe",
                fix="Give one row and one label for every node.",
            )
    return [checked[id(matrix)] for matrix in given]


def _check_split(split: Split, codes: npt.NDArray[np.int64], needs_validation: bool) -> None:
    where = f"split {split.name}, seed {split.seed}"
    parts = {"training": split.train, "validation": split.val, "test": split.test}
    for name, nodes in parts.items():
        if nodes.size == 0 and (name != "validation" or needs_validation):
            raise EvaluationError(
                f"there are no {name} nodes",
                where=where,
                fix="Use a split that leaves some; the fair probe chooses its settings on validation nodes.",
            )
        if nodes.size and nodes.max() >= len(codes):
            raise EvaluationError(
                f"{name} node {nodes.max()} does not exist ({len(codes)} labels)",
                where=where,
                fix="Make the split from the labels of the same graph.",
            )
        if np.any(codes[nodes] < 0):
            raise EvaluationError(
                f"{name} node {nodes[codes[nodes] < 0][0]} has no label",
                where=where,
                fix="Leave unlabelled nodes out of the split.",
            )
    if len(np.unique(codes[split.train])) < 2:
        raise EvaluationError(
            "all training nodes are of one class",
            where=where,
            fix="Use more training labels: a classifier needs at least two classes.",
        )
