"""The comparison for people: one table, maps side by side, and the recommendation above them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from nodejepa.diagnostics import diagnose
from nodejepa.graph import Graph
from nodejepa.masking.khop import khop_mask
from nodejepa.methods import METHODS, UNTRAINED
from nodejepa.methods.estimator import Estimator
from nodejepa.methods.nodejepa import NodeJEPA
from nodejepa.report import Report, footer
from nodejepa.report.maps import embedding_map, names_of_classes
from nodejepa.report.sections import (
    Chapter,
    Column,
    Dot,
    DotPlot,
    EmbeddingMap,
    ReportTable,
    Row,
    Section,
    SortableTable,
    TableCell,
    Text,
    summarise,
    training_curves,
    verdict,
)
from nodejepa.workflow.read import UserGraph
from nodejepa.workflow.recommend import MethodRow
from nodejepa.workflow.use import MADE_OF

if TYPE_CHECKING:
    from nodejepa.workflow.compare import Comparison

_BY_LABELS = {
    "accuracy": "accuracy %",
    "balanced_accuracy": "balanced %",
    "macro_f1": "F1 %",
    "roc_auc": "ROC-AUC %",
}
_UNLABELLED = {"links_auc": "links AUC", "links_mrr": "MRR"}
_NOTES = (
    "links AUC, MRR: a tenth of the links is hidden before training. AUC: how often a node is nearer to its "
    "hidden neighbour than to a node without a link to it. MRR: mean reciprocal rank among 20 such nodes.",
    "seconds: one training and embedding. MB: peak memory of the process.",
)


def comparison_table(rows: Sequence[MethodRow], chosen: str, split: str | None, made_of: str) -> ReportTable:
    """All scores of all methods that were measured, the chosen one marked."""
    labelled = [name for name in _BY_LABELS if any(getattr(row, name) for row in rows)]
    columns = (
        Column.name("method"),
        *(Column.mean(_BY_LABELS[name]) for name in labelled),
        *(Column(title) for title in _UNLABELLED.values()),
        *map(Column, ("seconds", "MB")),
    )

    def line(row: MethodRow) -> Row:
        return (
            TableCell.name(row.method, mark=" ✓" if row.method == chosen else ""),
            *(TableCell.mean(summarise(getattr(row, name)), decimals=1) for name in labelled),
            *(TableCell.number(getattr(row, name), decimals=3) for name in _UNLABELLED),
            TableCell.number(row.seconds, decimals=1),
            TableCell.number(row.memory_mb, decimals=0),
        )

    done = tuple(line(row) for row in rows if row.problem is None)
    probed = f"Fair linear probe; {split}. Balanced accuracy and F1 weight all classes equally."
    features = (
        f"All methods are given {MADE_OF[made_of]} as features; edges-only and node2vec only the edges."
    )
    notes = (*((probed,) if split else ()), features, *_NOTES)
    return ReportTable("compare", "All methods", columns, (done,), notes)


def problems(rows: Sequence[MethodRow]) -> tuple[str, ...]:
    """What a reader of the table should know: methods that have no numbers, and those that collapsed."""
    missing = (f"{row.method} is not in the table: {row.problem}." for row in rows if row.problem)
    bad = (f"{row.method}: {row.verdict}" for row in rows if row.collapsed)
    return (*missing, *bad)


def comparison_report(
    made: Comparison, data: UserGraph, drawn: npt.NDArray[np.int64], trained: Sequence[Estimator]
) -> Report:
    """The recommendation, the scores, a small map of every method, a large one of the chosen, the training.

    ``trained`` are the methods that were trained by gradient descent.
    """
    graph, chosen = data.graph, made.recommendation
    assert isinstance(graph, Graph)
    labels = None if data.labels is None else data.labels.astype(np.int64)
    sections: list[Section] = [Text(chosen.words, tone="good" if chosen.by_labels else "plain")]
    if said := (*made.notes, *problems(made.rows)):
        sections.append(Text(said, tone="warning"))
    sections.append(SortableTable(comparison_table(made.rows, chosen.method, made.split, made.made_of)))
    sections += _accuracies(made.rows)
    notes = [f"t-SNE of {len(drawn):,} nodes, the same on every map; distances between groups mean little."]
    names, degrees = data.ids_of(drawn), data.neighbour_counts(drawn)
    planes = {row.method: np.array(row.plane) for row in made.rows if row.plane}
    sections.append(
        EmbeddingMap(
            "The same nodes, seen by each method",
            names,
            degrees,
            planes,
            labels=None if labels is None else labels[drawn],
            names=names_of_classes(data.class_names, labels),
            notes=tuple(notes),
            side_by_side=True,
        )
    )
    shape = diagnose(made.embeddings)
    own = embedding_map(
        graph,
        made.embeddings,
        labels=labels,
        class_names=data.class_names,
        neighbours=False,
        title="All its nodes",
    )
    size = f"{graph.num_nodes:,} nodes, {graph.num_edges:,} edges (both directions)"
    chapters = [
        Chapter("Which embedding to trust", tuple(sections)),
        Chapter(f"The chosen one: {chosen.method}", (verdict(shape), own), METHODS[chosen.method].summary),
    ]
    for estimator in trained:
        how = list(training_curves(estimator.history_))
        if isinstance(estimator, NodeJEPA):
            masking = estimator.config.masking
            hidden = khop_mask(graph, masking.ratio, masking.hops, np.random.default_rng(estimator.seed))
            how.append(
                EmbeddingMap(
                    "The mask of one training step: embeddings of hidden nodes are predicted",
                    names,
                    degrees,
                    {estimator.name: planes[estimator.name]},
                    labels=hidden[drawn].astype(np.int64),
                    names=("visible", "hidden"),
                )
            )
        chapters.append(Chapter(f"How {estimator.title} was trained", tuple(how), estimator.summary))
    subtitle = f"{size}, {graph.num_features:,} features"
    return Report("Comparison of embeddings", tuple(chapters), subtitle, footer())


def _accuracies(rows: Sequence[MethodRow]) -> list[Section]:
    """Accuracy of every method as a chart; nothing without labels."""
    dots = []
    for row in rows:
        if score := summarise(row.accuracy):
            learned = row.method not in UNTRAINED
            dots.append(Dot(row.method, score.mean, score.std, row.accuracy, emphasised=learned))
    caption = "Hollow: untrained baselines. The axis does not start at zero."
    return [DotPlot("Accuracy", "test accuracy, %", {"": dots}, caption)] if dots else []
