"""The chapter about a run folder: how training went, what came out, where the nodes lie."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nodejepa.config import dotted
from nodejepa.data import Dataset, load_dataset
from nodejepa.data.catalogue import CATALOGUE
from nodejepa.diagnostics import diagnose
from nodejepa.errors import CheckpointError, EvaluationError
from nodejepa.files import parse_json
from nodejepa.methods import METHODS, load_method
from nodejepa.progress import in_words
from nodejepa.report.charts import training_curves, verdict, what_was_found
from nodejepa.report.maps import embedding_map, error_sections, predict_test_nodes
from nodejepa.report.sections import Chapter, Facts, Section, Text
from nodejepa.training.run import History, Run, check_epoch, check_history, load_tensors

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
