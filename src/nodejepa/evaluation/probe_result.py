"""What goes into a probe, checked, and what comes out: one score a split, their mean and spread."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.metrics import f1_score, roc_auc_score

from nodejepa.data.splits import Split, label_array
from nodejepa.diagnostics import Embeddings, check_embeddings
from nodejepa.errors import EvaluationError

Codes = npt.NDArray[np.int64]
JSONValue: TypeAlias = str | int | float | bool | None
MEASURES = {  # of a SplitScore, and what tables call them
    "test_accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "macro_f1": "macro-F1",
    "roc_auc": "ROC-AUC",
}


def measure_guesses(guesses: Codes, logits: npt.NDArray[np.floating], truth: Codes) -> dict[str, Any]:
    """All of them by the names that a ``SplitScore`` has for them."""
    return {
        "test_accuracy": accuracy(guesses, truth),
        "balanced_accuracy": balanced_accuracy(guesses, truth),
        "macro_f1": macro_f1(guesses, truth),
        "roc_auc": roc_auc(logits, truth),
    }


def accuracy(guesses: Codes, truth: Codes) -> float:
    """Share of right guesses."""
    return float(100 * np.mean(guesses == truth))


def balanced_accuracy(guesses: Codes, truth: Codes) -> float:
    """Mean over the classes that occur of the share of their nodes that are guessed right."""
    return float(100 * np.mean([np.mean(guesses[truth == code] == code) for code in np.unique(truth)]))


def macro_f1(guesses: Codes, truth: Codes) -> float:
    """Mean over the classes that occur of the harmonic mean of precision and recall."""
    return float(100 * f1_score(truth, guesses, average="macro", labels=np.unique(truth), zero_division=0.0))


def roc_auc(logits: npt.NDArray[np.floating], truth: Codes) -> float | None:
    """For two classes: how often a node of the second is ranked above one of the first; else none."""
    if logits.shape[1] != 2 or len(np.unique(truth)) != 2 or not np.isfinite(logits).all():
        return None
    return float(100 * roc_auc_score(truth == 1, logits[:, 1] - logits[:, 0]))


@dataclass(frozen=True)
class SplitScore:
    """Accuracies (percent) on one split, and the classifier they belong to."""

    split: str
    seed: int
    split_hash: str
    val_accuracy: float | None  # None where the split has no validation nodes
    test_accuracy: float
    scaling: str
    C: float
    converged: bool  # False: the optimiser gave up before its tolerance, the score may move a little
    balanced_accuracy: float  # this and what follows: on the test nodes
    macro_f1: float
    roc_auc: float | None  # of two classes only


@dataclass(frozen=True, eq=False)
class ProbeResult:
    """Scores of all splits; ``predictions`` (on request) has the predicted label of each test node."""

    mode: str
    scores: tuple[SplitScore, ...]
    predictions: tuple[npt.NDArray[np.int64], ...] | None = None

    @property
    def test_accuracy_mean(self) -> float:
        """Mean test accuracy over splits, percent."""
        return float(np.mean([score.test_accuracy for score in self.scores]))

    @property
    def test_accuracy_std(self) -> float | None:
        """Sample standard deviation (n - 1) over splits; None for a single split."""
        return _std([score.test_accuracy for score in self.scores])

    @property
    def val_accuracy_mean(self) -> float | None:
        """Mean validation accuracy over splits, percent; None if a split has no validation nodes."""
        values = self._val_accuracies()
        return None if values is None else float(np.mean(values))

    @property
    def val_accuracy_std(self) -> float | None:
        """As :attr:`test_accuracy_std`, of the validation accuracy."""
        values = self._val_accuracies()
        return None if values is None else _std(values)

    def to_dict(self) -> dict[str, JSONValue | list[dict[str, JSONValue]]]:
        """Plain values, ready for JSON; predictions are left out."""
        return {
            "probe": self.mode,
            "test_accuracy_mean": self.test_accuracy_mean,
            "test_accuracy_std": self.test_accuracy_std,
            "val_accuracy_mean": self.val_accuracy_mean,
            "val_accuracy_std": self.val_accuracy_std,
            "scores": [asdict(score) for score in self.scores],
        }

    def _val_accuracies(self) -> list[float] | None:
        known = [score.val_accuracy for score in self.scores if score.val_accuracy is not None]
        return known if len(known) == len(self.scores) else None


def _std(values: list[float]) -> float | None:
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


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
    classes, codes = class_codes(labels)
    splits = [splits] if isinstance(splits, Split) else list(splits)
    if not splits:
        raise EvaluationError("no split was given", where="probe", fix="Give at least one split.")
    matrices = _check_matrices(embeddings, len(splits), len(codes))
    for split in splits:
        _check_split(split, codes, needs_validation)
    return ProbeInput(matrices, splits, classes, codes)


def class_codes(labels: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The classes there are, and the position of each node's among them; -1 if it is unknown."""
    array = label_array(labels)
    known = array >= 0
    classes, codes = np.unique(array[known], return_inverse=True)
    if len(classes) < 2:
        raise EvaluationError(
            f"there are {len(classes)} classes", where="labels", fix="A classifier needs at least two."
        )
    everywhere = np.full(array.shape, -1, dtype=np.int64)
    everywhere[known] = codes
    return classes, everywhere


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
