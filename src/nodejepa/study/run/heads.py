"""What a supervised method's own classifier scores, beside the probe of its embeddings."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from nodejepa.data import Dataset, Split
from nodejepa.structure.components import largest_component
from nodejepa.structure.undirected import neighbours


@dataclass(frozen=True)
class HeadScore:
    """Accuracies (percent) of one trained head, and how long it was trained."""

    seed: int
    val_accuracy: float
    test_accuracy: float
    test_accuracy_connected: float | None  # of the test nodes in the largest component
    epochs: int


@dataclass(frozen=True)
class HeadResult:
    """One score a seed."""

    scores: tuple[HeadScore, ...]

    def mean_std(self, part: Literal["val", "test"]) -> tuple[float, float | None]:
        """Mean accuracy and its sample standard deviation; none for a single seed."""
        values = [score.test_accuracy if part == "test" else score.val_accuracy for score in self.scores]
        return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None

    def _connected_mean(self) -> float | None:
        known = [s.test_accuracy_connected for s in self.scores if s.test_accuracy_connected is not None]
        return float(np.mean(known)) if len(known) == len(self.scores) else None

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        (test, test_std), (val, val_std) = self.mean_std("test"), self.mean_std("val")
        return {
            "test_accuracy_mean": test,
            "test_accuracy_std": test_std,
            "test_accuracy_connected_mean": self._connected_mean(),
            "val_accuracy_mean": val,
            "val_accuracy_std": val_std,
            "scores": [asdict(score) for score in self.scores],
        }


def score_head(method: Any, dataset: Dataset, split: Split) -> HeadScore:
    """Ask a fitted supervised method for every node's class; test labels are read here for the first time."""
    right = method.predict(dataset.graph) == dataset.labels
    connected = np.intersect1d(split.test, largest_component(neighbours(dataset.graph)))
    return HeadScore(
        seed=split.seed,
        val_accuracy=100 * float(right[split.val].mean()),
        test_accuracy=100 * float(right[split.test].mean()),
        test_accuracy_connected=100 * float(right[connected].mean()) if connected.size else None,
        epochs=len(method.history_),
    )
