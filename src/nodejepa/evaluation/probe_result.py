"""What a probe gives back: one score a split, and their mean and spread."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

JSONValue: TypeAlias = str | int | float | bool | None


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
