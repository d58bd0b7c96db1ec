"""Chapters about runs.

A run folder: how training went, what came out, where the nodes lie. A run of ``embed-graph``: its manifest
says what was made and how it scored. The page beside it has map and tables, which are taken over as they are.
Its digest is in the manifest: a page that was changed is not shown.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from nodejepa.config import dotted
from nodejepa.data import Dataset, load_dataset
from nodejepa.data.catalogue import CATALOGUE
from nodejepa.diagnostics import diagnose
from nodejepa.errors import RESUME, Advice, CheckpointError, EvaluationError
from nodejepa.evaluation.probe import MEASURES
from nodejepa.files import parse_json
from nodejepa.methods import METHODS, load_method
from nodejepa.progress import in_words
from nodejepa.report.charts import Dot, DotPlot, training_curves, verdict, what_was_found
from nodejepa.report.maps import embedding_map, error_sections, predict_test_nodes
from nodejepa.report.sections import Chapter, Facts, Section, SortableTable, Text
from nodejepa.report.table import Column, ReportTable, Summary, TableCell, summarise
from nodejepa.tables.embeddings import MANIFEST_FORMAT
from nodejepa.training.run import History, Run, check_epoch, check_history, load_tensors
from nodejepa.validation import of_type

PROBE_SEED = 42  # of the split that colours errors
_MEASURES = {name: f"{title} %" for name, title in MEASURES.items()}
_BEGIN, _END = b'<script type="application/json" id="data">', b"</script>"


def is_run_folder(folder: Path) -> bool:
    """Whether a run was begun or a model saved there."""
    return (folder / "config.json").is_file() or (folder / "model.safetensors").is_file()


def run_chapter(folder: Path, *, dataset: str | None = None, data_root: Path | None = None) -> Chapter:
    """Everything the files of a run say, and its embeddings where the graph is at hand."""
    run = Run(folder)
    finished = run.model.is_file()
    facts, history = _read(run)
    sections: list[Section] = []
    data = find_dataset(_graph_facts(facts), dataset, data_root) if finished else None
    if not finished:
        words = f"Training is not finished: {len(history)} epochs are recorded, and there is no model yet."
        sections.append(Text((words,), tone="warning"))
    elif data is None:
        words = (
            "No map of the embeddings: the graph of this run is not among the named graphs at the data root. "
            "Name it, or the folder of its data; of a graph of your own, the embeddings."
        )
        sections += [*_last_watch(history), Text((words,))]
    sections.append(Facts("The run", _overview(facts, history)))
    if data is not None:
        sections = [*_embedding_sections(run.folder, data, facts), *sections]
    sections += training_curves(history)
    settings = {name: str(value) for name, value in dotted(facts.get("config") or {}).items()}
    sections.append(Facts("Settings", settings, folded=True))
    seed = facts.get("seed")
    graph = f" on {data.name}" if data is not None else ""
    return Chapter(f"{facts.get('method')}{graph}, seed {seed}", tuple(sections), subtitle=str(folder))


def find_dataset(
    graph: Mapping[str, Any] | None, name: str | None = None, data_root: Path | None = None
) -> Dataset | None:
    """The dataset called ``name``; else the one at hand with counts and hash of ``graph``; else None.

    Nothing is downloaded for a search.
    """
    if name is not None:
        return load_dataset(name, data_root)
    if not graph:
        return None
    counts = tuple(graph.get(what) for what in ("nodes", "edges", "features"))
    for entry in CATALOGUE.values():
        if (entry.nodes, entry.edges, entry.features) == counts and entry.is_present(data_root):
            dataset = load_dataset(entry.name, data_root)
            if dataset.graph.content_hash == graph.get("hash"):
                return dataset
    return None


def _read(run: Run) -> tuple[dict[str, Any], History]:
    """Settings and history from the folder, or from the model where only that was saved."""
    if not (run.folder / "config.json").is_file():
        facts = load_tensors(run.model)[1]
        history = check_history(facts.get("history", []), run.model)
    else:
        facts = run.read_config()
        history = _read_history(run.folder / "history.jsonl")
    if not isinstance(facts.get("method"), str) or not isinstance(facts.get("seed"), int):
        raise CheckpointError(
            "the settings name no method and seed, so this is no run of nodejepa",
            where=str(run.folder),
            fix="Name a folder that nodejepa pretrain made.",
        )
    return facts, history


def _read_history(path: Path) -> History:
    try:
        lines = path.read_bytes().split(b"\n")[:-1]  # a last line without its end was cut off by a kill
    except FileNotFoundError:
        return []
    history = []
    for number, line in enumerate(lines, start=1):
        try:
            history.append(check_epoch(parse_json(line)))
        except ValueError as error:
            raise CheckpointError(
                f"line {number} is damaged: {error}", where=str(path), fix="Delete that line."
            ) from None
    return history


def _embedding_sections(folder: Path, data: Dataset, facts: Mapping[str, Any]) -> list[Section]:
    estimator = load_method(folder)
    embeddings = estimator.transform(data.graph)
    sections: list[Section] = [verdict(diagnose(embeddings)), *what_was_found(estimator)]
    trained_on = _graph_facts(facts).get("hash")
    if trained_on not in (None, data.graph.content_hash):
        sections.append(Text((f"The model was trained on another graph than {data.name}.",), tone="warning"))
    predicted, words = None, "No probe: the graph has too few labels."
    if data.num_classes > 1:
        try:
            split = data.split(seed=PROBE_SEED)
            predicted = predict_test_nodes(embeddings, data, split)
        except EvaluationError as error:
            words = f"No probe: {error}"
        else:
            right = 100 * np.mean(predicted[split.test] == data.labels[split.test])
            words = (
                f"Fair linear probe, split {split.name}, seed {PROBE_SEED}: "
                f"{right:.1f} % of {len(split.test):,} test nodes are right. One split "
                "says little about the spread; nodejepa probe scores several, beside the floors."
            )
    sections.append(Text((words,)))
    sections.append(
        embedding_map(
            data.graph, embeddings, labels=data.labels, class_names=data.class_names, predicted=predicted
        )
    )
    if predicted is not None:
        sections += error_sections(data.labels, predicted, data.class_names)
    return sections


def _last_watch(history: History) -> list[Section]:
    for record in reversed(history):
        if "mean_std" in record:
            rank = record.get("effective_rank")
            ranks = "" if rank is None else f"effective rank {rank:.1f}, "
            words = f"In epoch {record['epoch']} the embeddings had {ranks}mean std {record['mean_std']:.2g}."
            return [Text((words,))]
    return []


def _overview(facts: Mapping[str, Any], history: History) -> dict[str, str]:
    entry, graph = METHODS.get(str(facts.get("method"))), _graph_facts(facts)
    values = {"method": str(facts.get("method"))}
    if entry is not None:
        values |= {"what it is": entry.summary, "citation": entry.citation}
    sizes = {name: graph.get(name) for name in ("nodes", "edges", "features")}
    if all(isinstance(size, int) for size in sizes.values()):
        values["graph"] = ", ".join(f"{size:,} {name}" for name, size in sizes.items())
    values["epochs"] = f"{len(history):,}"
    if history:
        seconds = sum(record.get("seconds", 0.0) for record in history)
        values |= {
            "training time": in_words(seconds, precise=True),
            "seconds per epoch": f"{seconds / len(history):.3g}",
            "peak memory": f"{max(record.get('peak_memory_mb', 0.0) for record in history):,.0f} MB",
            "last loss": f"{history[-1].get('loss', float('nan')):.4g}",
        }
    versions = facts.get("versions") or {}
    return values | {"versions": ", ".join(f"{name} {version}" for name, version in versions.items())}


def _graph_facts(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    graph = facts.get("graph")
    return graph if isinstance(graph, dict) else {}


@dataclass(frozen=True)
class StoredSection(Section):
    """A section of a page that was written before."""

    stored: Mapping[str, Any]
    kind: ClassVar[str] = "stored"

    def content(self) -> dict[str, Any]:
        """As it was; its own kind is among the values."""
        return dict(self.stored)


@dataclass(frozen=True)
class WrittenFile:
    """A file that a manifest names."""

    file: str
    sha256: str = ""
    dimensions: int | None = None  # of embeddings


@dataclass(frozen=True)
class Probed:
    """The scores of one row, by measure, for every split."""

    scores: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Scores:
    """Of the method and of the floors, by name."""

    probe: dict[str, Probed]


@dataclass(frozen=True)
class EmbeddingsManifest:
    """What ``embed-graph`` wrote beside its embeddings, as far as it is read again."""

    method: str
    embeddings: WrittenFile
    run: dict[str, Any]
    diagnostics: dict[str, Any]
    seconds: dict[str, float]
    inputs: dict[str, dict[str, Any]]
    read: dict[str, Any] = field(default_factory=dict)
    report: WrittenFile | None = None
    scores: Scores | None = None

    @property
    def verdict(self) -> str:
        """What was said of the embeddings."""
        return str(self.diagnostics.get("verdict", "not judged"))


@dataclass(frozen=True)
class OwnRun:
    """One run of ``embed-graph``: where its manifest is, and what it says."""

    path: Path
    manifest: EmbeddingsManifest

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.manifest.method

    @property
    def graph(self) -> tuple[str, str]:
        """The file of its edges and the digest of all files: what must be the same to be compared."""
        inputs = self.manifest.inputs
        edges = inputs.get("edges", {}).get("path") or self.manifest.read.get("edge_file") or ""
        return Path(str(edges)).name, "-".join(str(inputs[name].get("sha256")) for name in sorted(inputs))

    def scores(self, method: str, measure: str) -> list[float]:
        """One measure of a row of the scores, a value a split; nothing where there are none."""
        row = self._rows.get(method)
        values = [] if row is None else [score.get(measure) for score in row.scores]
        return [float(value) for value in values if value is not None]

    @property
    def _rows(self) -> dict[str, Probed]:
        return {} if self.manifest.scores is None else self.manifest.scores.probe

    def best_floor(self) -> tuple[str, Summary] | None:
        """The floor with the highest accuracy."""
        names = [name for name in self._rows if name != self.method]
        floors = ((name, summarise(self.scores(name, "test_accuracy"))) for name in names)
        known = [(name, found) for name, found in floors if found is not None]
        return max(known, key=lambda pair: pair[1].mean) if known else None


def find_own_run(source: Path) -> OwnRun | None:
    """The run that a manifest, embeddings, page or run folder belongs to, if ``embed-graph`` made it."""
    path = source if source.suffix == ".json" else source.with_suffix(".json")
    manifest = read_manifest(path)
    if manifest is None:
        return None
    folder = Path(str(manifest.run.get("folder"))).name
    return None if source.is_dir() and folder != source.name else OwnRun(path, manifest)


def read_manifest(path: Path) -> EmbeddingsManifest | None:
    """What ``embed-graph`` wrote beside its embeddings; None if this is something else."""
    try:
        content = parse_json(path.read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict) or content.get("format") != MANIFEST_FORMAT:
        return None
    try:
        return of_type(EmbeddingsManifest, content)
    except ValueError as error:
        raise CheckpointError(
            f"the manifest of the embeddings is damaged: {error}",
            where=str(path),
            fix="Delete it, and make the embeddings again.",
        ) from None


def own_chapters(runs: Sequence[OwnRun]) -> list[Chapter]:
    """A chapter that compares the runs, where there are several, and one for each, under its name."""
    names = run_names(runs)
    chapters = []
    for run, name in zip(runs, names, strict=True):
        title = f"{name}: {run.method} on {run.graph[0] or 'a graph'}"
        chapters.append(Chapter(title, _stored_sections(run), subtitle=str(run.path)))
    return [_comparison(runs, names), *chapters] if len(runs) > 1 else chapters


def run_names(runs: Sequence[OwnRun]) -> list[str]:
    """The name of each run's embeddings, with as many of its folders as it takes to tell them apart."""
    places = [run.path.absolute().with_suffix("").parts for run in runs]
    depth = 1
    while len({place[-depth:] for place in places}) < len(set(places)):
        depth += 1
    return ["/".join(place[-depth:]) for place in places]


def _comparison(runs: Sequence[OwnRun], names: Sequence[str]) -> Chapter:
    graphs: dict[tuple[str, str], list[int]] = {}
    for i, run in enumerate(runs):
        graphs.setdefault(run.graph, []).append(i)
    measures = {m: title for m, title in _MEASURES.items() if any(run.scores(run.method, m) for run in runs)}
    rows, panels, words = [], {}, []
    for number, ((file, _), members) in enumerate(graphs.items(), start=1):
        graph = file if sum(f == file for f, _ in graphs) == 1 else f"{file} ({number})"
        dots = []
        for i in members:
            run, values = runs[i], runs[i].scores(runs[i].method, "test_accuracy")
            found = summarise(values)
            cells = [TableCell.mean(summarise(run.scores(run.method, m)), decimals=1) for m in measures]
            rows.append((*map(TableCell.name, (names[i], run.method, graph)), *cells, *_rest(run)))
            if found is not None:
                dots.append(Dot(names[i], found.mean, found.std, tuple(values)))
        floors = [best for i in members if (best := runs[i].best_floor()) is not None]
        if floors:
            name, floor = max(floors, key=lambda pair: pair[1].mean)
            dots.append(Dot(f"best floor ({name})", floor.mean, floor.std, emphasised=False))
        if dots:
            panels[graph] = dots
            words.append(_standing(graph, [dot for dot in dots if dot.emphasised]))
    columns = (*map(Column.name, ("run", "method", "graph")), *map(Column.mean, measures.values()))
    last = (*map(Column, ("best floor %", "columns", "seconds")), Column.name("embeddings"))
    notes = ("Mean ± standard deviation over splits; seconds of training. Only rows of one graph compare.",)
    table = ReportTable("own", "The runs", (*columns, *last), (tuple(rows),), notes)
    sections: list[Section] = [SortableTable(table, choices=("graph", "method"))]
    if panels:
        caption = "Hollow: the best floor, which needs no training. The axes do not start at zero."
        sections = [Text(tuple(words)), DotPlot("Accuracy", "test accuracy, %", panels, caption), *sections]
    return Chapter("Runs compared", tuple(sections))


def _rest(run: OwnRun) -> tuple[Any, ...]:
    floor, made = run.best_floor(), run.manifest
    return (
        TableCell.number(None if floor is None else floor[1].mean, decimals=1),
        TableCell.number(made.embeddings.dimensions, decimals=0),
        TableCell.number(made.seconds.get("training"), decimals=1),
        TableCell.name(made.verdict.partition(":")[0]),
    )


def _standing(graph: str, dots: Sequence[Dot]) -> str:
    """Which run is ahead on a graph, and whether that is more than the draw of the labels does."""
    best, *others = sorted(dots, key=lambda dot: -dot.value)
    words = f"{graph}: {best.label} has the highest accuracy, {best.value:.1f} %"
    if not others:
        return f"{graph}: {best.label} has {best.value:.1f} %."
    gap, spread = best.value - others[0].value, max(best.spread or 0.0, others[0].spread or 0.0)
    size = "no more than" if gap <= spread else "more than"
    return f"{words}, {gap:.1f} points above {others[0].label}: {size} the spread over draws of the labels."


def _stored_sections(run: OwnRun) -> tuple[Section, ...]:
    described = run.manifest.report
    missing = (
        Text((f"Embeddings: {run.manifest.verdict}",)),
        Text(("No map: the run was made without its page. Resume it with its page to have one.",)),
    )
    if described is None:
        return missing
    page = run.path.with_name(Path(described.file).name)
    try:
        content = page.read_bytes()
    except FileNotFoundError:
        return missing
    if hashlib.sha256(content).hexdigest() != described.sha256:
        raise CheckpointError(
            "the page is not the one that the manifest tells of",
            where=str(page),
            fix=Advice.saying("Make it again: the same run with {}.", RESUME),
        )
    chapters = parse_json(content.partition(_BEGIN)[2].partition(_END)[0])["chapters"]
    return tuple(StoredSection(section) for chapter in chapters for section in chapter["sections"])
