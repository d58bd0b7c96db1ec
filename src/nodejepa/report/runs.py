"""The page that ``nodejepa report`` writes: a chapter for each run, and for each file of embeddings.

A run folder: how training went, what came out, where the nodes lie. A file of embeddings: where the nodes
lie, and what the manifest of ``embed-graph``, if there is one, says of how it was made.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from nodejepa.config import dotted, flatten, of_type
from nodejepa.data import Dataset, load_dataset
from nodejepa.data.catalogue import CATALOGUE
from nodejepa.diagnostics import diagnose
from nodejepa.errors import CheckpointError, EvaluationError, NodeJEPAError
from nodejepa.evaluation import linear_probe
from nodejepa.files import parse_json
from nodejepa.machine import in_words, progress_bar
from nodejepa.methods import Estimator, load_method
from nodejepa.report.maps import (
    MAX_POINTS,
    SampledNodes,
    embedding_map,
    error_sections,
    sample,
)
from nodejepa.report.sections import (
    Chapter,
    Facts,
    Report,
    Section,
    Text,
    footer,
    training_curves,
    verdict,
    what_was_found,
)
from nodejepa.tables import read_columns, read_embeddings
from nodejepa.tables.embeddings import MANIFEST_FORMAT
from nodejepa.tables.table import near_path
from nodejepa.training.run import Run

PROBE_SEED = 42  # of the split that colours errors


def build_report(sources: Sequence[Path], data_root: Path | None = None) -> Report:
    """The report on runs and embeddings, one chapter each.

    ``sources`` are folders that ``nodejepa pretrain`` wrote, files of embeddings, or the manifest beside
    them. Maps of runs show the nodes of the named graph that has the hash of the run's graph.
    """
    folders = list(dict.fromkeys(Path(source) for source in sources))
    if not folders:
        raise NodeJEPAError("there is nothing to report on", fix="Name a run folder.")
    own = {folder: file for folder in folders if (file := EmbeddingsFile.find(folder)) is not None}
    runs = [folder for folder in folders if folder not in own]
    for folder in runs:  # all of them, before the work
        _require_finished(folder)
    chapters = [_file_chapter(file) for file in {file.path: file for file in own.values()}.values()]
    with progress_bar("Report", total=len(runs)) as advance:
        for folder in runs:
            chapters.append(run_chapter(folder, data_root))
            advance(note=str(folder))
    titles = Counter(chapter.title for chapter in chapters)
    chapters = [c if titles[c.title] == 1 else replace(c, title=f"{c.title}: {c.subtitle}") for c in chapters]
    title = chapters[0].title if len(chapters) == 1 else "nodejepa report"
    return Report(title, tuple(chapters), footer=footer())


def _require_finished(folder: Path) -> None:
    if (folder / "model.safetensors").is_file():
        return
    begun = (folder / "config.json").is_file()
    what = "this is no run or embeddings" if folder.exists() else "there is no such folder"
    raise NodeJEPAError(
        "the run is not finished: there is no model in it yet" if begun else what,
        where=str(folder),
        fix="Wait for it, or go on with it: run `nodejepa pretrain` with the same options and resume=True."
        if begun
        else f"{'' if folder.exists() else near_path(folder)}Name a folder with model.safetensors (nodejepa "
        "pretrain), or a file of embeddings (.parquet or .npy).",
    )


# ------------------------------------------------------------------ a run folder


def run_chapter(folder: Path, data_root: Path | None = None) -> Chapter:
    """Everything the files of a run say, and its embeddings where the graph is at hand."""
    estimator, graph = load_method(folder), _graph_facts(folder)
    data = find_dataset(graph, data_root)
    sections: list[Section] = [] if data is None else _embedding_sections(estimator, data)
    if data is None:
        words = (
            "No map of the embeddings: the graph of this run is not among the named graphs at the data root. "
            "Name the folder of its data; of a graph of your own, the embeddings."
        )
        sections.append(Text((words,)))
    sections.append(Facts("The run", _overview(estimator, graph)))
    sections += training_curves(estimator.history_)
    settings = {name: str(value) for name, value in flatten(estimator.config).items()}
    sections.append(Facts("Settings", settings, folded=True))
    on = f" on {data.name}" if data is not None else ""
    return Chapter(f"{estimator.name}{on}, seed {estimator.seed}", tuple(sections), subtitle=str(folder))


def _graph_facts(folder: Path) -> Mapping[str, Any]:
    """What the run says of its graph; nothing where only the model was saved."""
    if not (folder / "config.json").is_file():
        return {}
    graph = Run(folder).read_config().get("graph")
    return graph if isinstance(graph, dict) else {}


def find_dataset(graph: Mapping[str, Any], data_root: Path | None = None) -> Dataset | None:
    """The dataset at hand with counts and hash of ``graph``; nothing is downloaded for a search."""
    counts = tuple(graph.get(what) for what in ("nodes", "edges", "features"))
    for entry in CATALOGUE.values():
        if (entry.nodes, entry.edges, entry.features) == counts and entry.is_present(data_root):
            dataset = load_dataset(entry.name, data_root)
            if dataset.graph.content_hash == graph.get("hash"):
                return dataset
    return None


def _embedding_sections(estimator: Estimator, data: Dataset) -> list[Section]:
    """Whether the embeddings are sound, where nodes lie, and which test nodes of one split are right."""
    z, predicted = estimator.transform(data.graph), None
    try:
        split = data.split(seed=PROBE_SEED)
        probed = linear_probe(z, data.labels, [split], return_predictions=True)
    except EvaluationError as error:
        words = f"No probe: {error}"
    else:
        assert probed.predictions is not None
        predicted = np.full(data.graph.num_nodes, -1, dtype=np.int64)
        predicted[split.test] = probed.predictions[0]
        words = (
            f"Fair linear probe, split {split.name}, seed {PROBE_SEED}: {probed.test_accuracy_mean:.1f} % of "
            f"{len(split.test):,} test nodes are right. One split says little about the spread; nodejepa "
            "probe scores several, beside untrained baselines."
        )
    names = data.class_names
    drawn = embedding_map(data.graph, z, labels=data.labels, class_names=names, predicted=predicted)
    errors = () if predicted is None else error_sections(data.labels, predicted, names)
    return [verdict(diagnose(z)), *what_was_found(estimator), Text((words,)), drawn, *errors]


def _overview(estimator: Estimator, graph: Mapping[str, Any]) -> dict[str, str]:
    history = estimator.history_
    values = {"method": f"{estimator.name}: {estimator.summary}"}
    sizes = {name: graph.get(name) for name in ("nodes", "edges", "features")}
    if all(isinstance(size, int) for size in sizes.values()):
        values["graph"] = ", ".join(f"{size:,} {name}" for name, size in sizes.items())
    values["epochs"] = f"{len(history):,}"
    if history:
        values |= {
            "training time": in_words(sum(record["seconds"] for record in history), precise=True),
            "peak memory": f"{max(record['peak_memory_mb'] for record in history):,.0f} MB",
            "last loss": f"{history[-1].get('loss', float('nan')):.4g}",
        }
    return values


# ------------------------------------------------------------------ a file of embeddings


@dataclass(frozen=True)
class WrittenFile:
    """A file that a manifest names."""

    file: str


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


def _file_chapter(file: EmbeddingsFile) -> Chapter:
    """Whether the embeddings are sound, where the nodes lie, and what the manifest says."""
    stored, columns, made = read_embeddings(file.path), read_columns(file.path), file.manifest
    total = len(stored.ids)
    drawn = sample(total, MAX_POINTS, np.random.default_rng(0))
    labels, names = None, []
    if "label" in columns:
        given = columns["label"]
        names = sorted({str(label) for label in given if label is not None})
        code = {name: i for i, name in enumerate(names)}
        labels = np.array([-1 if given[i] is None else code[str(given[i])] for i in drawn])
    nodes = SampledNodes([str(stored.ids[i]) for i in drawn], None, total)
    found = embedding_map(nodes, stored.matrix[drawn], labels=labels, class_names=names)
    sections: list[Section] = [verdict(diagnose(stored.matrix)), found]
    title = file.path.stem
    if made is not None:
        title = f"{title}: {made.method} on {made.graph}"
        if made.report is not None:
            words = f"{made.report.file} beside the embeddings has their scores, errors and training."
            sections.append(Text((words,)))
        settings = {name: str(value) for name, value in dotted(made.config).items()}
        sections.append(Facts("Settings", settings, folded=True))
    return Chapter(title, tuple(sections), subtitle=str(file.path))
