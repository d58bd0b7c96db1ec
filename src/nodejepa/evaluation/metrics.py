"""Scores of a classifier's guesses beside accuracy, in percent: accuracy alone flatters the largest class."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import f1_score, roc_auc_score

Codes = npt.NDArray[np.int64]


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
