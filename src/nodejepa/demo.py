"""The demo: the paper's two methods, LinearJEPA and untrained baselines on the built-in digits.

Every method embeds the graph, is scored with few labels, and has a chapter in the report.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import stdev

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from pyarrow import csv

from nodejepa.data import Dataset, load_dataset
from nodejepa.diagnostics import Diagnostics, diagnose
from nodejepa.evaluation import ProbeResult, fewshot_probe
from nodejepa.files import atomic_path
from nodejepa.graph_checks import Features
from nodejepa.masking.khop import khop_mask
from nodejepa.methods import METHODS, make_method
from nodejepa.methods.nodejepa import NodeJEPAConfig
from nodejepa.progress import progress_bar
from nodejepa.report import footer, write_report
from nodejepa.report.charts import Dot, DotPlot, training_curves, verdict
from nodejepa.report.maps import embedding_map, predict_test_nodes
from nodejepa.report.sections import Chapter, Report, Section, SortableTable, Text
from nodejepa.report.table import Column, ReportTable, Summary, TableCell
from nodejepa.tables import write_embeddings
from nodejepa.training.run import History

DEMO_METHODS = ("linear-jepa", "nodejepa", "patchjepa", "raw", "sgc", "random-gcn")
_EPOCHS = {"nodejepa": 60, "patchjepa": 60}  # of the paper's 300, so that the demo stays short
SHOTS = (5, 20)  # labels per class


@dataclass(frozen=True, eq=False)
class DemoRow:
    """One method's embeddings of the demo graph and what they are worth."""

    method: str
    title: str  # the method's name, and how long it was trained
    embeddings: Features
    few_shot: dict[int, ProbeResult]
    diagnostics: Diagnostics
    history: History  # of the training; empty where there was none
    path: Path


@dataclass(frozen=True, eq=False)
class Demo:
    """What the demo found and where it wrote it."""

    dataset: Dataset
    rows: tuple[DemoRow, ...]
    comparison: str
    report: Path
    files: tuple[Path, Path]  # the graph as a user would bring it: edges and nodes


def run_demo(
    out: str | Path, *, methods: Sequence[str] = DEMO_METHODS, draws: int = 5, seed: int = 42
) -> Demo:
    """Embed ``digits`` with each method; write the graph, its embeddings and a report into ``out``.

    The graph is written as ``edges.csv`` and ``nodes.csv``, to try ``nodejepa embed-graph`` on.
    """
    dataset = load_dataset("digits")
    files = write_as_csv(dataset, Path(out))  # a folder that cannot be written fails before the work
    rows = tuple(_row(dataset, method, Path(out), draws, seed) for method in methods)
    comparison = compare_with_floors({row.method: row.few_shot for row in rows})
    report = Path(out) / "report.html"
    write_report(demo_report(dataset, rows, comparison, draws=draws, seed=seed), report)
    return Demo(dataset, rows, comparison, report, files)


def write_as_csv(dataset: Dataset, folder: Path) -> tuple[Path, Path]:
    """A labelled graph as people have theirs, two tables with text ids: ``edges.csv`` and ``nodes.csv``."""
    graph = dataset.graph
    names = np.array([f"{dataset.name}-{i:04d}" for i in range(graph.num_nodes)])
    upper = sp.triu(graph.adjacency, k=1).tocoo()
    features = np.asarray(graph.features)
    edges = pa.table({"source": names[upper.row], "target": names[upper.col]})
    nodes = pa.table(
        {"id": names, "label": dataset.labels}
        | {f"feature_{j}": features[:, j] for j in range(features.shape[1])}
    )
    paths = folder / "edges.csv", folder / "nodes.csv"
    for path, table in zip(paths, (edges, nodes), strict=True):
        with atomic_path(path) as temporary:
            csv.write_csv(table, temporary, csv.WriteOptions(quoting_style="none"))
    return paths


def compare_with_floors(results: Mapping[str, Mapping[int, ProbeResult]]) -> str:
    """What the scores of each trained method (by labels per class) mean beside the best untrained baseline.

    Both are scored on the same draws of the labels: a difference counts once it exceeds its standard
    deviation over draws.
    """
    floors = [name for name in results if not METHODS[name].trained]
    trained = [name for name in results if METHODS[name].trained]
    return " ".join(_compare(name, floors, results) for name in trained) if floors else ""


def _compare(name: str, floors: Sequence[str], results: Mapping[str, Mapping[int, ProbeResult]]) -> str:
    parts, gains = [], 0
    for shots, result in results[name].items():
        best = max(floors, key=lambda floor: results[floor][shots].test_accuracy_mean)
        floor = results[best][shots]
        # as rounded in the table, so that a reader who subtracts finds the same
        gain = round(result.test_accuracy_mean, 1) - round(floor.test_accuracy_mean, 1)
        pairs = zip(result.scores, floor.scores, strict=True)
        differences = [one.test_accuracy - other.test_accuracy for one, other in pairs]
        spread = stdev(differences) if len(differences) > 1 else 0.0
        size = f" ({'within' if abs(gain) <= spread else 'more than'} its standard deviation over draws)"
        if len(differences) == 1:
            size = ""
        side = "above" if gain > 0 else "below"
        parts.append(f"{abs(gain):.1f} points {side} {best} with {shots} labels per class{size}")
        gains += gain > spread
    verdict = "" if gains else " So this small graph does not show that learning helps."
    return f"Beside the best untrained baseline, {name} is {' and '.join(parts)}.{verdict}"


def accuracy(result: ProbeResult) -> str:
    """Mean and standard deviation of the test accuracy, percent."""
    spread = result.test_accuracy_std
    return f"{result.test_accuracy_mean:.1f}" + (f" ± {spread:.1f}" if spread is not None else "")


def demo_report(
    dataset: Dataset, rows: Sequence[DemoRow], comparison: str, *, draws: int, seed: int
) -> Report:
    """Scores and what they mean, then a chapter a method with its verdict, training and map."""
    graph = dataset.graph
    how = (
        "Each method saw the graph and never a label. A linear classifier then learned from a few labels per "
        f"class; scores are its accuracy on labels it had not seen, over {draws} draws of the labels."
    )
    words = Text((how, comparison) if comparison else (how,))
    chapters = [Chapter("Scores", (words, _dots(rows), SortableTable(_scores_table(rows))))]
    with progress_bar("Maps", total=len(rows)) as advance:
        for row in rows:
            chapters.append(Chapter(row.title, _sections(dataset, row, seed), METHODS[row.method].summary))
            advance(note=row.method)
    subtitle = (
        f"{graph.num_nodes:,} nodes, {graph.num_edges:,} edges (both directions), "
        f"{graph.num_features} features, {dataset.num_classes} classes"
    )
    return Report(f"Demo: {dataset.name}", tuple(chapters), subtitle, footer())


def _sections(dataset: Dataset, row: DemoRow, seed: int) -> tuple[Section, ...]:
    shots = max(SHOTS)
    split = dataset.split(f"{shots}-30", seed=seed)
    found = embedding_map(
        dataset.graph,
        row.embeddings,
        labels=dataset.labels,
        class_names=dataset.class_names,
        predicted=predict_test_nodes(row.embeddings, dataset, split),
        neighbours=METHODS[row.method].trained,  # the slow plane: for what was learned only
    )
    words = Text(
        (
            f"Errors on the map are those of the classifier with {shots} labels per class, first draw.",
            f"Embeddings: {row.path.parent.name}/{row.path.name}, a row a node.",
        )
    )
    mask = (_mask_of_a_step(dataset, row, seed),) if row.method == "nodejepa" else ()
    return (verdict(row.diagnostics), found, *training_curves(row.history), *mask, words)


def _mask_of_a_step(dataset: Dataset, row: DemoRow, seed: int) -> Section:
    """Which nodes a step at the end of the curriculum hides from the encoder."""
    masking = NodeJEPAConfig().masking
    hidden = khop_mask(dataset.graph, masking.ratio, masking.hops, np.random.default_rng(seed))
    return embedding_map(
        dataset.graph,
        row.embeddings,
        title="The mask of one training step: embeddings of hidden nodes are predicted",
        labels=hidden.astype(np.int64),
        class_names=("visible", "hidden"),
        neighbours=False,
    )


def _scores_table(rows: Sequence[DemoRow]) -> ReportTable:
    cells = tuple(
        (
            TableCell.name(row.title),
            TableCell.name(METHODS[row.method].summary),
            *(TableCell.score(_summary(result), decimals=1) for result in row.few_shot.values()),
        )
        for row in rows
    )
    columns = (
        Column.name("Method"),
        Column.name("What it is"),
        *(Column.score(f"{shots} labels per class") for shots in rows[0].few_shot),
    )
    note = "Mean ± standard deviation, in brackets the draws of the labels. Probe: fair."
    return ReportTable("demo", "Test accuracy (%)", columns, (cells,), (note,))


def _dots(rows: Sequence[DemoRow]) -> DotPlot:
    panels = {
        f"{shots} labels per class": [
            Dot(
                row.title,
                row.few_shot[shots].test_accuracy_mean,
                row.few_shot[shots].test_accuracy_std,
                tuple(score.test_accuracy for score in row.few_shot[shots].scores),
                emphasised=METHODS[row.method].trained,
            )
            for row in rows
        ]
        for shots in rows[0].few_shot
    }
    caption = "Hollow: untrained baselines. The axes do not start at zero."
    return DotPlot("Accuracy", "test accuracy, %", panels, caption)


def _summary(result: ProbeResult) -> Summary:
    return Summary(result.test_accuracy_mean, result.test_accuracy_std, len(result.scores))


def _row(dataset: Dataset, method: str, out: Path, draws: int, seed: int) -> DemoRow:
    graph = dataset.graph
    epochs = _EPOCHS.get(method)
    settings = {} if epochs is None else {"training.epochs": epochs}
    made = make_method(method, dataset=dataset.name, seed=seed, settings=settings).fit(graph)
    embeddings = made.transform(graph)
    path = out / "embeddings" / f"{method}.parquet"
    write_embeddings(path, graph, embeddings)
    few_shot = fewshot_probe(embeddings, dataset.labels, shots=SHOTS, draws=draws, seed=seed)
    title = method if epochs is None else f"{method}, {epochs} of 300 epochs"
    return DemoRow(method, title, embeddings, few_shot, diagnose(embeddings), made.history_, path)
