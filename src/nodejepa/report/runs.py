"""Chapters about runs.

A run folder: how training went, what came out, where the nodes lie. A file of embeddings: where the nodes
lie, and what the manifest of ``embed-graph``, if there is one, says of how it was made and scored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from nodejepa.config import dotted
from nodejepa.data import Dataset, load_dataset
from nodejepa.data.catalogue import CATALOGUE
from nodejepa.diagnostics import diagnose
from nodejepa.errors import CheckpointError, EvaluationError
from nodejepa.files import parse_json
from nodejepa.methods import METHODS, load_method
from nodejepa.progress import in_words
from nodejepa.report.maps import (
    MAX_POINTS,
    SampledNodes,
    embedding_map,
    error_sections,
    predict_test_nodes,
    sample,
)
from nodejepa.report.sections import (
    Chapter,
    Facts,
    Section,
    Text,
    training_curves,
    verdict,
    what_was_found,
)
from nodejepa.tables import read_columns, read_embeddings
from nodejepa.tables.embeddings import MANIFEST_FORMAT
from nodejepa.training.run import History, Run, check_epoch, check_history, load_tensors
from nodejepa.validation import of_type

PROBE_SEED = 42  # of the split that colours errors


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
        sections.append(Text((words,)))
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
    # a last line without its end was cut off by a kill
    lines = path.read_bytes().split(b"\n")[:-1] if path.is_file() else []
    history = []
    for number, line in enumerate(lines, start=1):
        try:
            history.append(check_epoch(parse_json(line)))
        except ValueError as error:
            why = f"line {number} is damaged: {error}"
            raise CheckpointError(why, where=str(path), fix="Delete that line.") from None
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
                "says little about the spread; nodejepa probe scores several, beside untrained baselines."
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
class WrittenFile:
    """A file that a manifest names."""

    file: str
    dimensions: int | None = None  # of embeddings


@dataclass(frozen=True)
class EmbeddingsManifest:
    """What ``embed-graph`` wrote beside its embeddings, as far as it is read again."""

    method: str
    embeddings: WrittenFile
    inputs: dict[str, dict[str, Any]]
    config: dict[str, Any] = field(default_factory=dict)
    read: dict[str, Any] = field(default_factory=dict)
    report: WrittenFile | None = None

    @property
    def graph(self) -> str:
        """The name of the file of its edges."""
        edges = self.inputs.get("edges", {}).get("path") or self.read.get("edge_file") or "a graph"
        return Path(str(edges)).name


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


@dataclass(frozen=True)
class EmbeddingsFile:
    """A file of embeddings, and what its manifest says, if there is one."""

    path: Path
    manifest: EmbeddingsManifest | None = None

    @classmethod
    def find(cls, source: Path) -> Self | None:
        """The embeddings that a file, or the manifest or page of ``embed-graph``, belongs to."""
        manifest = None if source.is_dir() else read_manifest(source.with_suffix(".json"))
        if source.suffix.lower() in (".parquet", ".npy") and source.is_file():
            told = manifest is not None and manifest.embeddings.file == source.name
            return cls(source, manifest if told else None)
        return None if manifest is None else cls(source.with_name(manifest.embeddings.file), manifest)


def embeddings_chapters(files: Sequence[EmbeddingsFile]) -> list[Chapter]:
    """A chapter for each file, under its name."""
    chapters = []
    for file, name in zip(files, _short_names([file.path for file in files]), strict=True):
        made = file.manifest
        title = name if made is None else f"{name}: {made.method} on {made.graph}"
        chapters.append(Chapter(title, _file_sections(file), subtitle=str(file.path)))
    return chapters


def _short_names(paths: Sequence[Path]) -> list[str]:
    """The name of each file, with as many of its folders as it takes to tell them apart."""
    places = [path.absolute().with_suffix("").parts for path in paths]
    depth = 1
    while len({place[-depth:] for place in places}) < len(set(places)):
        depth += 1
    return ["/".join(place[-depth:]) for place in places]


def _file_sections(file: EmbeddingsFile) -> tuple[Section, ...]:
    """Whether the embeddings are sound, where the nodes lie, and what the manifest says."""
    stored, columns = read_embeddings(file.path), read_columns(file.path)
    total = len(stored.ids)
    drawn = sample(total, MAX_POINTS, np.random.default_rng(0))
    labels, names = None, []
    if "label" in columns:
        given = columns["label"]
        names = sorted({str(label) for label in given if label is not None})
        code = {name: i for i, name in enumerate(names)}
        labels = np.array([-1 if given[i] is None else code[str(given[i])] for i in drawn])
    nodes = SampledNodes([str(stored.ids[i]) for i in drawn], None, total)
    clusters = np.asarray(columns["cluster"])[drawn] if "cluster" in columns else None
    found = embedding_map(nodes, stored.matrix[drawn], labels=labels, class_names=names, clusters=clusters)
    sections: list[Section] = [verdict(diagnose(stored.matrix)), found]
    if file.manifest is not None:
        made = file.manifest
        if made.report is not None:
            words = f"{made.report.file} beside the embeddings has their scores, errors and training."
            sections.append(Text((words,)))
        settings = {name: str(value) for name, value in dotted(made.config).items()}
        sections.append(Facts("Settings", settings, folded=True))
    return tuple(sections)
