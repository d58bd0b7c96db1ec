"""What are the embeddings of a user's graph worth? Scores beside the floors, where there are labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nodejepa.data.splits import Split, per_class_split
from nodejepa.errors import EvaluationError
from nodejepa.evaluation import FinetuneResult, ProbeResult, finetune, linear_probe
from nodejepa.graph import Graph
from nodejepa.graph_checks import Features
from nodejepa.methods import FLOORS, find_method, make_method
from nodejepa.methods.estimator import Estimator
from nodejepa.progress import progress_bar

SPLIT_SEEDS = (42, 43, 44, 45, 46)
TRAIN, VALIDATION = 20, 30  # labels per class

Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Scores:
    """Accuracies in percent; ``predicted``: the probe's guesses for the test nodes of the first split."""

    rows: dict[str, ProbeResult]  # the method first, then the floors
    finetuned: FinetuneResult | None
    split: str
    class_sizes: dict[str, int]
    predicted: Labels

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "split": self.split,
            "class_sizes": self.class_sizes,
            "probe": {name: result.to_dict() for name, result in self.rows.items()},
            "finetune": None if self.finetuned is None else self.finetuned.to_dict(),
        }


def score_embeddings(
    estimator: Estimator,
    graph: Graph,
    embeddings: Features,
    labels: Labels,
    class_names: Sequence[str],
    *,
    tune: bool = True,
) -> Scores:
    """Probe the embeddings and the floors on five splits, and fine-tune the encoder on the first.

    Training has ended before this is called: labels cannot reach it.

    Raises:
        EvaluationError: too few labels to learn from, choose on and test on.
    """
    splits = label_splits(labels, class_names)
    named: dict[str, Features] = {estimator.name: embeddings}
    floors = [name for name in FLOORS if name != estimator.name]
    with progress_bar("Embedding with the floors", total=len(floors)) as advance:
        for name in floors:
            named[name] = make_method(name, device=estimator.device).fit(graph).transform(graph)
            advance(note=name)
    rows = {  # fitting draws a bar of its own
        name: linear_probe(matrix, labels, splits, return_predictions=name == estimator.name)
        for name, matrix in named.items()
    }
    probed = rows[estimator.name].predictions
    assert probed is not None
    predicted = np.full(graph.num_nodes, -1, dtype=np.int64)
    predicted[splits[0].test] = probed[0]
    tune = tune and find_method(estimator.name).by_gradient
    tuned = finetune(estimator, graph, labels, splits[0], seed=splits[0].seed) if tune else None
    counts = np.bincount(labels[labels >= 0], minlength=len(class_names))
    sizes = {str(name): int(count) for name, count in zip(class_names, counts, strict=True)}
    return Scores(rows, tuned, describe_split(splits[0]), sizes, predicted)


def label_splits(labels: Labels, class_names: Sequence[str]) -> list[Split]:
    """Five draws of 20 training and 30 validation labels per class, fewer of classes that are smaller."""
    known = labels[labels >= 0]
    sizes = np.bincount(known, minlength=len(class_names))
    # 3 labels are the fewest of which one is for training, one for validation and one for testing
    if np.count_nonzero(sizes >= 3) < 2:
        raise EvaluationError(
            f"{known.size} labels in {np.count_nonzero(sizes)} classes are too few for a score",
            where="labels",
            fix="At least two classes need three labelled nodes each.",
        )
    return [per_class_split(labels, train=TRAIN, val=VALIDATION, seed=seed) for seed in SPLIT_SEEDS]


def describe_split(split: Split) -> str:
    """The split in words."""
    return (
        f"{split.train.size:,} training, {split.val.size:,} validation and {split.test.size:,} test labels: "
        f"at most {TRAIN} and {VALIDATION} of each class (of smaller classes at most 40 % and half of the "
        f"rest), drawn {len(SPLIT_SEEDS)} times"
    )
