"""What are the embeddings of a user's graph worth? Scores beside untrained baselines, if there are labels."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from nodejepa.data.splits import (
    SPLIT_SEEDS,
    TRAIN,
    VALIDATION,
    Split,
    default_splits,
    describe_scored,
    scored_nodes,
)
from nodejepa.diagnostics import RowArray
from nodejepa.errors import NodeJEPAError, TrainingError
from nodejepa.evaluation import FinetuneResult, ProbeResult, SplitScore, finetune, linear_probe
from nodejepa.evaluation.finetune import can_be_tuned
from nodejepa.evaluation.probe import MEASURES, class_codes, measure_guesses
from nodejepa.graph import Graph
from nodejepa.graph_checks import Features
from nodejepa.methods import UNTRAINED, make_method
from nodejepa.methods.baselines import RawFeatures
from nodejepa.methods.estimator import Estimator
from nodejepa.progress import progress_bar
from nodejepa.report.table import Summary, summarise
from nodejepa.tables import StoredGraph
from nodejepa.tables.store import stored_labels
from nodejepa.training.distributed import SINGLE, ProcessGroup
from nodejepa.workflow.read import UserGraph

BESIDE = {"columns": "linear-jepa, columns only", "structure": "linear-jepa, edges only"}
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores in percent."""

    rows: dict[str, ProbeResult]  # the method first, then the untrained baselines
    largest: ProbeResult  # always the largest class, whatever the node
    finetuned: FinetuneResult | None
    split: str
    class_sizes: dict[str, int]
    nodes: Labels  # that are scored
    predicted: Labels  # their classes by the probe of the first split; -1 but for its test nodes

    @property
    def largest_class(self) -> str:
        """The name of the class with most labels."""
        return max(self.class_sizes, key=lambda name: self.class_sizes[name])

    @property
    def measures(self) -> dict[str, str]:
        """What is measured and how it is called; the area under the curve is one of two classes only."""
        two = all(score.roc_auc is not None for score in self.largest.scores)
        return {name: title for name, title in MEASURES.items() if name != "roc_auc" or two}

    def table(self) -> dict[str, dict[str, Summary | None]]:
        """Every measure of every row, the largest class last."""
        rows = {**self.rows, f"always {self.largest_class!r}": self.largest}
        return {name: {m: summary(result, m) for m in self.measures} for name, result in rows.items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "split": self.split,
            "class_sizes": self.class_sizes,
            "largest_class": {"name": self.largest_class, **self._means(self.largest)},
            "means": {name: self._means(result) for name, result in self.rows.items()},
            "probe": {name: result.to_dict() for name, result in self.rows.items()},
            "finetune": None if self.finetuned is None else self.finetuned.to_dict(),
        }

    def _means(self, result: ProbeResult) -> dict[str, float | None]:
        found = {measure: summary(result, measure) for measure in self.measures}
        return {measure: None if value is None else value.mean for measure, value in found.items()}


def summary(result: ProbeResult, measure: str) -> Summary | None:
    """Mean and spread of one measure over the splits."""
    values = [getattr(score, measure) for score in result.scores]
    return summarise([value for value in values if value is not None])


def score_embeddings(
    estimator: Estimator,
    data: UserGraph,
    embeddings: Features | RowArray,
    *,
    tune: bool = True,
    group: ProcessGroup = SINGLE,
) -> Scores:
    """Probe the embeddings and the untrained baselines on five splits; fine-tune the encoder on the first.

    Training has ended before this is called: labels cannot reach it. Only rows that are scored are read.
    The processes of a group embed a baseline each; the others call :func:`help_to_score`.

    Raises:
        EvaluationError: too few labels to learn from, choose on and test on.
    """
    graph, known = data.graph, data.labels
    assert known is not None
    nodes = scored_nodes(known)
    labels = known[nodes].astype(np.int64)
    splits = default_splits(labels)
    every = len(nodes) == graph.num_nodes and isinstance(graph, Graph)  # then nothing is copied

    def scored_rows(z: Any) -> Features:
        found: Features = z if every else z[nodes]
        return found

    rows = {estimator.name: linear_probe(scored_rows(embeddings), labels, splits, return_predictions=True)}
    probed = rows[estimator.name].predictions
    assert probed is not None
    predicted = np.full(labels.shape, -1, dtype=np.int64)
    predicted[splits[0].test] = probed[0]
    if data.material is not None and data.choice is not None:
        for taken, title in BESIDE.items():  # what was not taken of columns and structure
            known_of = data.material.graph.num_features if taken == "columns" else data.material.is_described
            if taken != data.choice.taken and known_of:
                with suppress(NodeJEPAError):  # no edges, no memory: one row less, and the others are there
                    rows[title] = linear_probe(scored_rows(data.material.embedded(taken)), labels, splits)
        graph = data.material.graph if data.material.graph.num_features else graph  # columns as they are
    for name in UNTRAINED:
        if name != estimator.name:  # one after the other: only one is in memory
            with progress_bar(f"Embedding with {name}"):
                z = _sent(name, graph, len(nodes), group)
                if z is None:
                    z = scored_rows(_embedded(name, estimator, graph, group))
            rows[name] = linear_probe(z, labels, splits)
    counts = np.bincount(known[known >= 0], minlength=len(data.class_names))
    sizes = {str(name): int(count) for name, count in zip(data.class_names, counts, strict=True)}
    tuned = None
    if tune and isinstance(data.graph, Graph) and every and can_be_tuned(estimator):
        tuned = finetune(estimator, data.graph, labels, splits[0], seed=splits[0].seed)
    drawn = describe_scored(nodes, graph.num_nodes)
    split = f"{describe_split(splits[0])}; {drawn}" if drawn else describe_split(splits[0])
    return Scores(rows, always_largest(labels, splits), tuned, split, sizes, nodes, predicted)


def help_to_score(estimator: Estimator, graph: StoredGraph, group: ProcessGroup) -> None:
    """Embed some of the untrained baselines for :func:`score_embeddings`, which the first process calls."""
    known = stored_labels(graph)
    if known is None:
        return
    nodes = scored_nodes(known.codes)
    with suppress(TrainingError):  # the first process does without: it has stopped, or too few have labels
        for name in UNTRAINED:
            if name != estimator.name and _owner(name, group) == group.rank:
                group.send(torch.from_numpy(_embedded(name, estimator, graph, group)[nodes]))


def _owner(name: str, group: ProcessGroup) -> int:
    """The process that embeds a baseline; the features themselves are only read, and may be sparse."""
    return 0 if name == RawFeatures.name else UNTRAINED.index(name) % group.size


def _sent(name: str, graph: Any, rows: int, group: ProcessGroup) -> Features | None:
    """The rows of a baseline that another process embeds; none if this one must."""
    owner = _owner(name, group)
    if owner == group.rank:
        return None
    with suppress(TrainingError):  # it is gone
        return group.receive(owner, rows, make_method(name).width(graph)).numpy()
    return None


def _embedded(name: str, estimator: Estimator, graph: Any, group: ProcessGroup) -> Any:
    baseline = make_method(name, device=estimator.device)
    baseline.memory_limit = estimator.memory_limit
    baseline.process_group = ProcessGroup(local=group.local)  # alone with it, beside others in memory
    scratch = graph.folder if isinstance(graph, StoredGraph) else None
    return baseline.fit(graph).transform(graph, scratch=scratch)


def always_largest(labels: Labels, splits: Sequence[Split]) -> ProbeResult:
    """What guessing the largest class for every node scores: so much accuracy needs no embeddings."""
    classes, codes = class_codes(labels)
    largest = np.bincount(codes[codes >= 0]).argmax()
    scores = []
    for split in splits:
        truth = codes[split.test]
        guesses = np.full(truth.shape, largest)
        known: dict[str, Any] = {
            "split": split.name,
            "seed": split.seed,
            "split_hash": split.hash,
            "val_accuracy": None,
        }
        measured = measure_guesses(guesses, np.zeros((len(truth), len(classes))), truth)
        scores.append(SplitScore(**known, scaling="none", C=0.0, converged=True, **measured))
    return ProbeResult("largest class", tuple(scores))


def describe_split(split: Split) -> str:
    """The split in words."""
    return (
        f"{split.train.size:,} training, {split.val.size:,} validation and {split.test.size:,} test labels: "
        f"at most {TRAIN} and {VALIDATION} of each class (of smaller classes at most 40 % and half of the "
        f"rest), drawn {len(SPLIT_SEEDS)} times"
    )
