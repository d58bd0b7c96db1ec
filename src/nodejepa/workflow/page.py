"""The HTML report on a user's own graph, composed of the report's sections."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from nodejepa.config import flatten
from nodejepa.methods import METHODS
from nodejepa.report import Report, footer
from nodejepa.report.maps import MAX_POINTS, SampledNodes, embedding_map, error_sections
from nodejepa.report.sections import (
    Chapter,
    EmbeddingMap,
    Facts,
    Section,
    SortableTable,
    Text,
    training_curves,
    verdict,
    what_was_found,
)
from nodejepa.report.table import Column, ReportTable, TableCell
from nodejepa.tables import FeatureSchema
from nodejepa.tables.options import ReadReport, first_names
from nodejepa.workflow.scores import BESIDE, Scores

if TYPE_CHECKING:
    from nodejepa.workflow.embed import EmbeddedGraph

# t-SNE can only show a few thousand nodes: in a graph much larger than that hardly any of them are neighbours
# of each other, and the picture would take longer than everything else that is written
MAX_NODES_FOR_NEIGHBOURS = 50_000
_ABOUT = {
    BESIDE["columns"]: "the closed form on the columns of the nodes alone",
    BESIDE["structure"]: "the closed form on the structure alone",
}


@dataclass(frozen=True, eq=False)
class GraphMap:
    """The map of a graph's embeddings, and which nodes it shows: drawn once, before anything is scored."""

    section: EmbeddingMap
    drawn: npt.NDArray[np.int64]

    @classmethod
    def of(cls, made: EmbeddedGraph) -> Self:
        """Of all nodes, or of a sample: labelled ones first."""
        data = made.inspection.data
        drawn = _nodes_to_draw(data.graph.num_nodes, made.labels)
        section = embedding_map(
            SampledNodes(data.ids_of(drawn), data.neighbour_counts(drawn), data.graph.num_nodes),
            made.embeddings[drawn],
            labels=None if made.labels is None else made.labels[drawn].astype(np.int64),
            class_names=data.class_names,
            neighbours=data.graph.num_nodes <= MAX_NODES_FOR_NEIGHBOURS,
        )
        return cls(section, drawn)

    def with_errors(self, scores: Scores | None) -> EmbeddingMap:
        """The map with the probe's predictions, where there are some."""
        if scores is None:
            return self.section
        at = np.minimum(np.searchsorted(scores.nodes, self.drawn), len(scores.nodes) - 1)
        predicted = np.where(scores.nodes[at] == self.drawn, scores.predicted[at], -1)
        return replace(self.section, predicted=predicted)


def _nodes_to_draw(nodes: int, labels: npt.NDArray[np.integer[Any]] | None) -> npt.NDArray[np.int64]:
    if nodes <= MAX_POINTS:
        return np.arange(nodes)
    rng = np.random.default_rng(0)
    known = np.zeros(0, dtype=np.int64) if labels is None else np.flatnonzero(labels >= 0)
    if len(known) > MAX_POINTS:
        return np.sort(rng.choice(known, MAX_POINTS, replace=False))
    others = rng.choice(nodes, MAX_POINTS, replace=False)  # some may be labelled: they are drawn once
    return np.unique(np.concatenate([known, others[: MAX_POINTS - len(known)]]))


def graph_report(made: EmbeddedGraph, shown: GraphMap) -> Report:
    """Everything worth seeing about one graph and its embeddings."""
    estimator, scores, data = made.estimator, made.scores, made.inspection.data
    words = () if scores is None else scores.findings(estimator.name)
    doubtful = scores is not None and not scores.beats_baselines(estimator.name)
    sections: list[Section] = [verdict(made.diagnostics, *words, doubtful=doubtful)]
    if said := (*made.inspection.warnings(), *made.warnings):
        sections.append(Text(said, tone="warning"))
    if scores is not None:
        sections.append(SortableTable(score_table(scores, estimator.name)))
    sections.append(shown.with_errors(scores))
    if scores is not None and made.labels is not None:
        labels = made.labels[scores.nodes].astype(np.int64)
        sections += error_sections(labels, scores.predicted, data.class_names)
    sections.append(Facts("The graph", made.inspection.facts()))
    if data.report.notes:
        sections.append(Text(("While reading:", *data.report.notes)))
    if data.schema is not None:
        sections.append(columns_table(data.schema.features, data.report))
    sections += [*what_was_found(estimator), *training_curves(estimator.history_)]
    settings = {name: str(value) for name, value in flatten(estimator.config).items()}
    sections.append(Facts("Settings", {"seed": str(estimator.seed), **settings}, folded=True))
    chapter = Chapter(
        f"{estimator.name} on {data.name}", tuple(sections), subtitle=str(made.paths.embeddings)
    )
    return Report(chapter.title, (chapter,), footer=footer())


def score_table(scores: Scores, method: str) -> ReportTable:
    """The scores beside those of the untrained baselines."""
    rows = []
    for name, found in scores.table().items():
        about = _ABOUT[name] if name in _ABOUT else METHODS[name].summary
        about = "these embeddings" if name == method else about
        means = (TableCell.mean(value, decimals=1) for value in found.values())
        rows.append((TableCell.name(name), TableCell.name(about), *means))
    titles = (Column.mean(f"{title} %") for title in scores.measures.values())
    columns = (Column.name("embeddings"), Column.name("what it is"), *titles)
    notes = (
        f"Fair linear probe on test labels; {scores.split}.",
        "The baselines need no training. Balanced accuracy and macro-F1 count every class alike.",
    )
    return ReportTable("scores", "What the embeddings are worth", columns, (tuple(rows),), notes)


def columns_table(schema: FeatureSchema, report: ReadReport) -> Section:
    """What became of every column of the node table."""
    made = [(first_names(g.names, 20), f"{g.kind}, {g.treatment}", g.width) for g in schema.groups()]
    if schema.matrix_width:
        made.append(("(matrix)", "as it is", schema.matrix_width))
    if schema.structural:
        made.append(("(structure)", ", ".join(schema.described_by), schema.structural))
    dropped: dict[str, list[str]] = {}
    for name, why in report.dropped_columns.items():
        dropped.setdefault(why, []).append(name)
    made += [(first_names(names, 20), f"left out: {why}", 0) for why, names in dropped.items()]
    rows = [
        (TableCell.name(name), TableCell.name(how), TableCell.number(width, decimals=0))
        for name, how, width in made
    ]
    columns = (Column.name("columns"), Column.name("read as"), Column("features"))
    return SortableTable(ReportTable("columns", "What the features are made of", columns, (tuple(rows),), ()))
