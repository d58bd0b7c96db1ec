"""The HTML report on a user's own graph, composed of the report's sections."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nodejepa.config import flatten
from nodejepa.evaluation.clusters import Clusters, Labels, agreement
from nodejepa.methods import METHODS, UNTRAINED
from nodejepa.report import Report, footer
from nodejepa.report.charts import training_curves, verdict, what_was_found
from nodejepa.report.maps import embedding_map, error_sections
from nodejepa.report.sections import Chapter, Facts, Section, SortableTable, Text
from nodejepa.report.table import Column, ReportTable, TableCell
from nodejepa.tables import FeatureSchema
from nodejepa.tables.options import ReadReport, first_names
from nodejepa.workflow.inspect import Inspection
from nodejepa.workflow.scores import Found, Scores

# t-SNE can only show a few thousand nodes: in a graph much larger than that hardly any of them are neighbours
# of each other, and the picture would take longer than everything else that is written
MAX_NODES_FOR_NEIGHBOURS = 50_000
_MOSTLY_ONE_CLASS = 70.0  # percent of the test nodes


def graph_report(
    found: Found,
    inspection: Inspection,
    embeddings: npt.NDArray[np.float32],
    clusters: Clusters | None,
    out: Path,
    *,
    umap: bool = False,
) -> Report:
    """Everything worth seeing about one graph and its embeddings."""
    loaded, scores = inspection.loaded, found.scores
    words = () if clusters is None else (Text((cluster_words(clusters, loaded.labels),)),)
    shown = embedding_map(
        loaded.graph,
        embeddings,
        labels=loaded.labels,
        class_names=loaded.class_names,
        predicted=None if scores is None else scores.predicted,
        clusters=None if clusters is None else clusters.assigned,
        neighbours=loaded.graph.num_nodes <= MAX_NODES_FOR_NEIGHBOURS,
        umap=umap,
    )
    return report_on(
        found,
        loaded.report.edge_file,
        out,
        (*words, shown),
        warnings=inspection.warnings(),
        labels=loaded.labels,
        class_names=loaded.class_names,
        facts=inspection.facts(),
        schema=loaded.schema,
        read=loaded.report,
    )


def report_on(
    found: Found,
    graph: str,
    out: Path,
    maps: Sequence[Section],
    *,
    warnings: Sequence[str],
    labels: npt.NDArray[np.int64] | None,
    class_names: Sequence[str] | None,
    facts: Mapping[str, str],
    schema: FeatureSchema,
    read: ReadReport,
) -> Report:
    """The page on the embeddings of the graph of this name, which are written to ``out``."""
    estimator, scores = found.estimator, found.scores
    words = () if scores is None else (floor_words(scores, estimator.name), *largest_words(scores))
    doubtful = scores is not None and not beats_the_floors(scores, estimator.name)
    sections: list[Section] = [verdict(found.diagnostics, *words, doubtful=doubtful)]
    if said := (*warnings, *found.warnings):
        sections.append(Text(said, tone="warning"))
    if scores is not None:
        sections += score_sections(scores, estimator.name)
    sections += maps
    if scores is not None and labels is not None:
        sections += error_sections(labels, scores.predicted, class_names)
    sections.append(Facts("The graph", facts))
    if read.notes:
        sections.append(Text(("While reading:", *read.notes)))
    sections.append(columns_table(schema, read))
    sections += [*what_was_found(estimator), *training_curves(estimator.history_)]
    settings = {name: str(value) for name, value in flatten(estimator.config).items()}
    sections.append(Facts("Settings", {"seed": str(estimator.seed), **settings}, folded=True))
    chapter = Chapter(f"{estimator.name} on {graph}", tuple(sections), subtitle=str(out))
    return Report(chapter.title, (chapter,), footer=footer())


def score_sections(scores: Scores, method: str) -> list[Section]:
    """The scores beside the floors and the largest class."""
    rows = []
    for name, found in scores.table().items():
        about = "these embeddings" if name == method else METHODS[name].summary if name in UNTRAINED else ""
        about = about if name in scores.rows else "the largest class, whatever the node"
        means = (TableCell.mean(value, decimals=1) for value in found.values())
        rows.append((TableCell.name(name), TableCell.name(about), *means))
    titles = (Column.mean(f"{title} %") for title in scores.measures.values())
    columns = (Column.name("embeddings"), Column.name("what it is"), *titles)
    notes = (
        f"Fair linear probe on test labels; {scores.split}.",
        "The floors need no training. Balanced accuracy and macro-F1 count every class alike, however small.",
    )
    table = ReportTable("scores", "What the embeddings are worth", columns, (tuple(rows),), notes)
    sections: list[Section] = [SortableTable(table)]
    tuned = scores.finetuned
    if tuned is not None:
        scratch = "the same network from random weights", tuned.scratch_test_accuracy
        both = (f"{method}, fine-tuned", tuned.test_accuracy), scratch
        lines = tuple((TableCell.name(name), TableCell.number(value)) for name, value in both)
        note = "Trained end to end with labels, on one split: that says little about the spread."
        headings = (Column.name("encoder"), Column("test accuracy %"))
        sections.append(SortableTable(ReportTable("finetune", "Fine-tuning", headings, (lines,), (note,))))
    return sections


def floor_words(scores: Scores, method: str) -> str:
    """One honest sentence: are the embeddings better than what costs nothing?"""
    best = _best_floor(scores, method)
    ours, floor = (scores.rows[name].test_accuracy_mean for name in (method, best))
    compared = f"{ours:.1f} % of the test nodes are right, the best floor ({best}) has {floor:.1f} %"
    if beats_the_floors(scores, method):
        return f"{compared}."
    if method in UNTRAINED:
        return f"{compared}: another floor suits these labels better."
    return f"{compared}: on these labels training has gained nothing over features that need none."


def beats_the_floors(scores: Scores, method: str) -> bool:
    """Whether the mean accuracy is above that of every floor."""
    floor = scores.rows[_best_floor(scores, method)].test_accuracy_mean
    return scores.rows[method].test_accuracy_mean > floor


def largest_words(scores: Scores) -> tuple[str, ...]:
    """A word on accuracy where most nodes are of one class: guessing it looks good and says nothing."""
    share = scores.largest.test_accuracy_mean
    if share < _MOSTLY_ONE_CLASS:
        return ()
    words = f"{share:.1f} % of the test nodes are {scores.largest_class!r}: always guessing it is"
    return (f"{words} right as often. Read balanced accuracy and macro-F1 instead.",)


def _best_floor(scores: Scores, method: str) -> str:
    floors = (name for name in UNTRAINED if name in scores.rows and name != method)
    return max(floors, key=lambda name: scores.rows[name].test_accuracy_mean)


def cluster_words(clusters: Clusters, labels: Labels | None) -> str:
    """How many groups there are, why so many, and whether they are the classes."""
    sizes = ", ".join(f"{size:,}" for size in np.bincount(clusters.assigned)[:10].tolist())
    more = ", ..." if clusters.count > 10 else ""
    words = f"k-means puts the nodes into {clusters.count} groups (sizes: {sizes}{more})"
    if clusters.silhouettes:
        clear = max(clusters.silhouettes.values())
        words += f", the number with the highest silhouette ({clear:.2f}; 1: far apart, 0: no groups at all)"
    if labels is not None:
        found = agreement(clusters, labels)
        words += (
            f". With the labels they agree by NMI {found['nmi']:.2f}, ARI {found['ari']:.2f} (1: the same)"
        )
    return f"{words}."


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
