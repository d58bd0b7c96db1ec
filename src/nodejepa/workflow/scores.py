"""What are the embeddings of a user's graph worth? Scores beside untrained baselines, if there are labels."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

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
from nodejepa.evaluation import ProbeResult, linear_probe
from nodejepa.evaluation.probe import MEASURES
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
_MOSTLY_ONE_CLASS = 70.0  # percent of the labels
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores in percent."""

    rows: dict[str, ProbeResult]  # the method first, then the untrained baselines
    split: str
    class_sizes: dict[str, int]
    nodes: Labels  # that are scored
    predicted: Labels  # their classes by the probe of the first split; -1 but for its test nodes

    @property
    def measures(self) -> dict[str, str]:
        """What is measured and how it is called; the area under the curve is one of two classes only."""
        two = len(self.class_sizes) == 2
        return {name: title for name, title in MEASURES.items() if name != "roc_auc" or two}

    def best_baseline(self, method: str) -> str:
        """The untrained baseline with the highest accuracy."""
        baselines = (name for name in UNTRAINED if name in self.rows and name != method)
        return max(baselines, key=lambda name: self.rows[name].test_accuracy_mean)

    def beats_baselines(self, method: str) -> bool:
        """Whether the mean accuracy is above that of every untrained baseline."""
        theirs = self.rows[self.best_baseline(method)].test_accuracy_mean
        return self.rows[method].test_accuracy_mean > theirs

    def findings(self, method: str) -> tuple[str, ...]:
        """Are the embeddings better than what needs no training, than the edges alone, than guessing?"""
        best, ours = self.best_baseline(method), self.rows[method].test_accuracy_mean
        said = [
            f"{ours:.1f} % of the test nodes are right, the best untrained baseline ({best}) has "
            f"{self.rows[best].test_accuracy_mean:.1f} %"
        ]
        if not self.beats_baselines(method):
            said[0] += ": on these labels training has gained nothing over features that need none"
            said.append(f'Next step: take {best} itself with method="{best}", or let compare try them all')
        edges = self.rows.get(BESIDE["structure"])
        if edges is not None and edges.test_accuracy_mean > ours:
            said.append(
                f"The edges alone score {edges.test_accuracy_mean:.1f} %, without the columns of the nodes: "
                'let validation labels choose what to use with use="auto"'
            )
        largest = max(self.class_sizes, key=lambda name: self.class_sizes[name])
        share = 100 * self.class_sizes[largest] / sum(self.class_sizes.values())
        if share >= _MOSTLY_ONE_CLASS:
            said.append(
                f"{share:.1f} % of the labels are {largest!r}: always guessing it is right as often. Read "
                "balanced accuracy and macro-F1 instead"
            )
        return tuple(f"{words}." for words in said)

    def table(self) -> dict[str, dict[str, Summary | None]]:
        """Mean and spread over the splits of every measure of every row."""
        return {
            name: {measure: _summary(result, measure) for measure in self.measures}
            for name, result in self.rows.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "split": self.split,
            "class_sizes": self.class_sizes,
            "means": {
                name: {measure: found and found.mean for measure, found in row.items()}
                for name, row in self.table().items()
            },
            "probe": {name: result.to_dict() for name, result in self.rows.items()},
        }


def _summary(result: ProbeResult, measure: str) -> Summary | None:
    values = [getattr(score, measure) for score in result.scores]
    return summarise([value for value in values if value is not None])


@dataclass(frozen=True, eq=False)
class Labelled:
    """The nodes that are scored, their classes and how these are split."""

    nodes: Labels
    labels: Labels
    splits: list[Split]
    words: str

    @classmethod
    def of(cls, known: npt.NDArray[np.integer[Any]]) -> Self:
        """Of a class per node, -1 where unknown.

        Raises:
            EvaluationError: too few labels to learn from, choose on and test on.
        """
        nodes = scored_nodes(known)
        labels = known[nodes].astype(np.int64)
        splits = default_splits(labels)
        drawn, first = describe_scored(nodes, len(known)), splits[0]
        words = (
            f"{first.train.size:,} training, {first.val.size:,} validation and {first.test.size:,} test "
            f"labels: at most {TRAIN} and {VALIDATION} of each class (of smaller classes at most 40 % and "
            f"half of the rest), drawn {len(SPLIT_SEEDS)} times"
        )
        return cls(nodes, labels, splits, f"{words}; {drawn}" if drawn else words)

    def probe(self, rows: Any, *, return_predictions: bool = False) -> ProbeResult:
        """Score the embeddings of the nodes that are scored."""
        return linear_probe(rows, self.labels, self.splits, return_predictions=return_predictions)


def score_embeddings(
    estimator: Estimator, data: UserGraph, embeddings: Features | RowArray, *, group: ProcessGroup = SINGLE
) -> Scores:
    """Probe the embeddings and the untrained baselines on five splits.

    Training has ended before this is called: labels cannot reach it. Only rows that are scored are read.
    The processes of a group embed a baseline each; the others call :func:`help_to_score`.

    Raises:
        EvaluationError: too few labels to learn from, choose on and test on.
    """
    graph, known = data.graph, data.labels
    assert known is not None
    scored = Labelled.of(known)
    ours = scored.probe(embeddings[scored.nodes], return_predictions=True)
    rows = {estimator.name: ours}
    predicted = np.full(scored.labels.shape, -1, dtype=np.int64)
    if ours.predictions is not None:
        predicted[scored.splits[0].test] = ours.predictions[0]
    if data.material is not None and data.choice is not None:
        for taken, title in BESIDE.items():  # what was not taken of columns and structure
            known_of = data.material.graph.num_features if taken == "columns" else data.material.is_described
            if taken != data.choice.taken and known_of:
                with suppress(NodeJEPAError):  # no edges, no memory: one row less, and the others are there
                    rows[title] = scored.probe(data.material.embedded(taken)[scored.nodes])
        graph = data.material.graph if data.material.graph.num_features else graph  # columns as they are
    for name in UNTRAINED:
        if name != estimator.name:  # one after the other: only one is in memory
            with progress_bar(f"Embedding with {name}"):
                z = _sent(name, graph, len(scored.nodes), group)
                if z is None:
                    z = _embedded(name, estimator, graph, group)[scored.nodes]
            rows[name] = scored.probe(z)
    counts = np.bincount(known[known >= 0], minlength=len(data.class_names))
    sizes = {str(name): int(count) for name, count in zip(data.class_names, counts, strict=True)}
    return Scores(rows, scored.words, sizes, scored.nodes, predicted)


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
