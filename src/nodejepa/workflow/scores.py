"""What are the embeddings of a user's graph worth? Scores beside untrained baselines, if there are labels.

And the account of all that was done: the manifest, for programs, and the HTML report.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import torch

from nodejepa.config import flatten, to_dict
from nodejepa.data.splits import (
    SPLIT_SEEDS,
    TRAIN,
    VALIDATION,
    Split,
    default_splits,
    describe_scored,
    scored_nodes,
)
from nodejepa.diagnostics import Diagnostics, RowArray
from nodejepa.errors import NodeJEPAError, TrainingError
from nodejepa.evaluation import ProbeResult, linear_probe
from nodejepa.evaluation.probe import MEASURES
from nodejepa.files import described, versions, write_json
from nodejepa.graph_checks import Features
from nodejepa.machine import progress_bar
from nodejepa.methods import METHODS, UNTRAINED, make_method
from nodejepa.methods.baselines import RawFeatures
from nodejepa.methods.estimator import Estimator
from nodejepa.report import Report, footer, write_report
from nodejepa.report.maps import MAX_POINTS, SampledNodes, embedding_map, error_sections
from nodejepa.report.sections import (
    Chapter,
    Column,
    EmbeddingMap,
    Facts,
    ReportTable,
    Section,
    SortableTable,
    Summary,
    TableCell,
    Text,
    summarise,
    training_curves,
    verdict,
    what_was_found,
)
from nodejepa.tables import FeatureSchema, StoredGraph
from nodejepa.tables.embeddings import MANIFEST_FORMAT
from nodejepa.tables.options import ReadReport, first_names
from nodejepa.tables.store import stored_labels
from nodejepa.training.distributed import SINGLE, ProcessGroup
from nodejepa.workflow.read import Inspection, UserGraph
from nodejepa.workflow.recommend import FAR_BELOW
from nodejepa.workflow.use import MADE_OF

if TYPE_CHECKING:
    from nodejepa.workflow.embed import OutputPaths

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
    made_of: str | None = None  # "columns", "structure" or "both"; none if the graph was taken as it is
    baselines_of: str | None = None  # the same of the baselines

    @property
    def measures(self) -> dict[str, str]:
        """What is measured and how it is called; the area under the curve is one of two classes only."""
        two = len(self.class_sizes) == 2
        return {name: title for name, title in MEASURES.items() if name != "roc_auc" or two}

    def best_baseline(self, method: str) -> str:
        """The untrained baseline with the highest accuracy, of those that beat the method if any does."""
        baselines = [name for name in UNTRAINED if name in self.rows and name != method]
        level = [name for name in baselines if self._as_good(name, method)]
        return max(level or baselines, key=lambda name: self.rows[name].test_accuracy_mean)

    def beats_baselines(self, method: str) -> bool:
        """Whether no untrained baseline is as good."""
        return not self._as_good(self.best_baseline(method), method)

    def _as_good(self, name: str, method: str) -> bool:
        """Whether a row has the accuracy of the method, and not by guessing the large classes."""
        one, ours = self.rows[name], self.rows[method]
        lost = ours.balanced_accuracy_mean - one.balanced_accuracy_mean
        return one.test_accuracy_mean >= ours.test_accuracy_mean and lost <= FAR_BELOW

    def findings(self, method: str) -> tuple[str, ...]:
        """Are the embeddings better than what needs no training, than the edges alone, than guessing?"""
        best, ours = self.best_baseline(method), self.rows[method].test_accuracy_mean
        theirs = self.rows[best].test_accuracy_mean
        said = [f"The test accuracy is {ours:.1f} %. The best untrained baseline ({best}) has {theirs:.1f} %"]
        balanced = [self.rows[name].balanced_accuracy_mean for name in (method, best)]
        if not self.beats_baselines(method):
            said[0] += ". On these labels, the method gains nothing over features that need no training"
            use = f', use="{self.baselines_of}"' if self.baselines_of else ""
            said.append(f'Next step: use {best} itself (method="{best}"{use}), or compare several methods')
        elif (theirs >= ours) or balanced[1] - balanced[0] > FAR_BELOW:
            said.append(
                f"Balanced accuracy, which counts every class alike, is {balanced[0]:.1f} %, that of {best} "
                f"{balanced[1]:.1f} %: the lower one mostly guesses large classes"
            )
        edges = BESIDE["structure"]
        alone = self.rows[edges].test_accuracy_mean if edges in self.rows else ours
        if alone > ours and self._as_good(edges, method):
            said.append(
                f"The edges alone score {alone:.1f} %, without the columns of the nodes: "
                'let validation labels choose what to use with use="auto"'
            )
        largest = max(self.class_sizes, key=lambda name: self.class_sizes[name])
        share = 100 * self.class_sizes[largest] / sum(self.class_sizes.values())
        if share >= _MOSTLY_ONE_CLASS:
            said.append(
                f"{share:.1f} % of the labels are {largest!r}, so a constant guess has that accuracy. Read "
                "balanced accuracy and macro-F1 instead"
            )
        return tuple(f"{words}." for words in said)

    def table(self) -> dict[str, dict[str, Summary | None]]:
        """Mean and spread over the splits of every measure of every row."""
        return {
            name: {
                measure: summarise([v for one in result.scores if (v := getattr(one, measure)) is not None])
                for measure in self.measures
            }
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
    of: tuple[str, ...] = ()
    if data.material is not None and data.choice is not None:
        of = data.choice.taken, "columns" if data.material.graph.num_features else "structure"
    return Scores(rows, scored.words, sizes, scored.nodes, predicted, *of)


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


# ---------------------------------------------------------------- the manifest and the report that say so


_VERSION = 1  # of the manifest
# t-SNE can only show a few thousand nodes: in a graph much larger than that hardly any of them are neighbours
# of each other, and the picture would take longer than everything else that is written
MAX_NODES_FOR_NEIGHBOURS = 50_000
_ABOUT = {
    BESIDE["columns"]: "the closed form on the columns of the nodes alone",
    BESIDE["structure"]: "the closed form on the structure alone",
}


@dataclass(eq=False)
class EmbeddedGraph:
    """What :func:`nodejepa.workflow.embed_graph` made and where it is.

    ``embeddings`` is an array, or read by rows (``z[low:high]``) where the graph is on disk; ``manifest`` is
    the content of the JSON file.
    """

    embeddings: Features | RowArray
    inspection: Inspection
    estimator: Estimator
    preset: str
    paths: OutputPaths
    diagnostics: Diagnostics
    scores: Scores | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    manifest: dict[str, Any] = field(default_factory=dict)

    @property
    def labels(self) -> npt.NDArray[np.integer[Any]] | None:
        """The class of every node, -1 where unknown."""
        return self.inspection.data.labels

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """Those of the data report and those of the work, each once."""
        return tuple(dict.fromkeys((*self.inspection.warnings(), *self.warnings)))

    def write(self, drawn: GraphMap | None) -> None:
        """The report, if it has a map, and last the manifest, which has the digests of all other files."""
        if drawn is not None:
            with progress_bar("Writing the report"):
                write_report(graph_report(self, drawn), self.paths.page)
        self.manifest = self._make_manifest()
        write_json(self.paths.manifest, self.manifest)

    def _make_manifest(self) -> dict[str, Any]:
        estimator, data, paths = self.estimator, self.inspection.data, self.paths
        written: dict[str, Any] = {
            name: self.manifest[name] for name in ("embeddings", "run") if name in self.manifest
        }
        if not written:  # else they were hashed before, and have not changed
            nodes, dimensions = self.embeddings.shape
            written = {
                "embeddings": described(paths.embeddings) | {"nodes": nodes, "dimensions": dimensions},
                "run": {"folder": str(paths.run), "model": described(paths.run / "model.safetensors")},
            }
        return {
            "format": MANIFEST_FORMAT,
            "version": _VERSION,
            **written,
            "report": described(paths.page) if paths.page.exists() else None,
            **self.inspection.to_dict(),
            "features": None if data.schema is None else data.schema.summary(),
            "use": None if data.choice is None else data.choice.to_dict(),
            "method": estimator.name,
            "preset": self.preset,
            "config": to_dict(estimator.config),
            "dim": estimator.max_columns,
            "seed": estimator.seed,
            "epochs": sum("loss" in record for record in estimator.history_),
            "found": estimator.describe() or None,
            "threads": torch.get_num_threads(),
            "versions": versions(),
            "seconds": dict(self.seconds),
            "diagnostics": self.diagnostics.to_dict(),
            "scores": None if self.scores is None else self.scores.to_dict(),
            "warnings": [*self.all_warnings],
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
    if said := made.all_warnings:
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
        about = "these embeddings" if name == method else _ABOUT.get(name) or METHODS[name].summary
        if name not in _ABOUT and (made := scores.made_of if name == method else scores.baselines_of):
            about += f", of {MADE_OF[made]}"
        means = (TableCell.mean(value, decimals=1) for value in found.values())
        rows.append((TableCell.name(name), TableCell.name(about), *means))
    titles = (Column.mean(f"{title} %") for title in scores.measures.values())
    columns = (Column.name("embeddings"), Column.name("what it is"), *titles)
    notes = (
        f"Fair linear probe on test labels; {scores.split}.",
        f"{_features_of(scores)} Balanced accuracy and macro-F1 count every class alike.",
    )
    return ReportTable("scores", "What the embeddings are worth", columns, (tuple(rows),), notes)


def _features_of(scores: Scores) -> str:
    if scores.made_of is None or scores.baselines_of is None:
        return "The baselines need no training."
    ours, theirs = MADE_OF[scores.made_of], MADE_OF[scores.baselines_of]
    return f"The embeddings are made of {ours}, the baselines, which need no training, of {theirs}."


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
