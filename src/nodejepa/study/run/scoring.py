"""One cell of every table: a method, a dataset, a split, some seeds -> an honest score."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from nodejepa.config import to_dict
from nodejepa.data import Dataset
from nodejepa.diagnostics import Diagnostics, diagnose
from nodejepa.errors import Advice, EvaluationError, Setting
from nodejepa.evaluation import ProbeResult, linear_probe
from nodejepa.evaluation.probe import ProbeMode
from nodejepa.graph import Graph
from nodejepa.graph_checks import Features
from nodejepa.methods import find_method, load_method, make_method
from nodejepa.provenance import versions
from nodejepa.study.run.heads import HeadResult, score_head


@dataclass(frozen=True, eq=False)
class MethodScore:
    """What a method is worth on a dataset, and all that is needed to get the same number again."""

    dataset: str
    method: str
    preset: str
    split: str
    seeds: tuple[int, ...]
    result: ProbeResult
    config: dict[str, Any]
    training_seed: int | None  # of all rows, where they share one trained run; none: each row's own seed
    graph_hash: str
    diagnostics: Diagnostics  # of the first seed's embeddings
    embed_seconds: float
    probe_seconds: float
    head: HeadResult | None = None  # of a supervised method: its own classifier beside the probe

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON; accuracies in percent."""
        return {
            "dataset": self.dataset,
            "method": self.method,
            "preset": self.preset,
            "split": self.split,
            "seeds": list(self.seeds),
            "config": self.config,
            "training_seed": self.training_seed,
            "graph_hash": self.graph_hash,
            **self.result.to_dict(),
            **({} if self.head is None else {"head": self.head.to_dict()}),
            "diagnostics": {"seed": self.seeds[0], **self.diagnostics.to_dict()},
            "seconds": {"embed": round(self.embed_seconds, 3), "probe": round(self.probe_seconds, 3)},
            "threads": torch.get_num_threads(),
            "versions": versions(),
        }


def embed_seeds(
    graph: Graph,
    method: str,
    seeds: Sequence[int],
    *,
    preset: str = "default",
    dataset: str | None = None,
    settings: Mapping[str, object] | None = None,
) -> list[Features]:
    """The method's embeddings for every seed; computed once where the seed makes no difference."""

    def embed(seed: int) -> Features:
        made = make_method(method, preset=preset, dataset=dataset, seed=seed, settings=settings)
        embeddings: Features = made.fit(graph).transform(graph)
        return embeddings

    if find_method(method).seeded:
        return [embed(seed) for seed in seeds]
    return [embed(seeds[0])] * len(seeds) if seeds else []


def score_method(
    dataset: Dataset,
    method: str,
    seeds: Sequence[int],
    *,
    preset: str = "default",
    settings: Mapping[str, object] | None = None,
    split: str | None = None,
    probe: ProbeMode = "fair",
) -> MethodScore:
    """Embed and probe: seed s draws split s and, for methods with randomness, trains with seed s.

    Args:
        dataset: the graph and its labels; only the probe is shown the labels, and a supervised method those
            of each split's training and validation nodes.
        method: a name in :data:`nodejepa.methods.METHODS`.
        seeds: one split and one set of embeddings each.
        preset: of the method.
        settings: changes against the preset, by dotted name.
        split: name of the split, the dataset's default if not given.
        probe: ``"fair"`` or ``"paper"``.
    """
    started, head = time.perf_counter(), None
    if find_method(method).supervised:
        embeddings, head = _train_and_embed(
            dataset, method, seeds, preset=preset, settings=settings, split=split
        )
    else:
        embeddings = embed_seeds(
            dataset.graph, method, seeds, preset=preset, dataset=dataset.name, settings=settings
        )
    seconds = time.perf_counter() - started
    made: Any = make_method(method, preset=preset, dataset=dataset.name, settings=settings)
    identity = {"method": method, "preset": preset, "config": to_dict(made.config), "training_seed": None}
    score = _score(dataset, identity, embeddings, seconds, seeds, split, probe)
    return replace(score, head=head)


def _train_and_embed(
    dataset: Dataset,
    method: str,
    seeds: Sequence[int],
    *,
    preset: str,
    settings: Mapping[str, object] | None,
    split: str | None,
) -> tuple[list[Features], HeadResult]:
    """Of a supervised method: each seed's split trains a model, whose own head is scored too."""
    embeddings, heads = [], []
    for seed in seeds:
        drawn = dataset.split(split, seed=seed)
        made: Any = make_method(method, preset=preset, dataset=dataset.name, seed=seed, settings=settings)
        made.fit(dataset.graph, labels=dataset.labels, split=drawn)
        embeddings.append(made.transform(dataset.graph))
        heads.append(score_head(made, dataset, drawn))
    return embeddings, HeadResult(tuple(heads))


def score_run(
    dataset: Dataset,
    folder: str | Path,
    seeds: Sequence[int],
    *,
    split: str | None = None,
    probe: ProbeMode = "fair",
) -> MethodScore:
    """Probe the model in a run folder: one set of embeddings, one split a seed."""
    started = time.perf_counter()
    estimator = load_method(folder)
    if find_method(estimator.name).supervised:
        raise EvaluationError(
            f"the model was trained with labels that are test labels of other splits: a {estimator.name}",
            where=str(folder),
            fix=Advice(
                f"Let every split train its own: nodejepa probe {dataset.name} ",
                Setting("method", estimator.name),
                ".",
            ),
        )
    embeddings = estimator.transform(dataset.graph)
    seconds = time.perf_counter() - started
    identity = {
        "method": estimator.name,
        "preset": "as trained",
        "config": to_dict(estimator.config),
        "training_seed": estimator.seed,
    }
    return _score(dataset, identity, [embeddings] * len(seeds), seconds, seeds, split, probe)


def _score(
    dataset: Dataset,
    identity: dict[str, Any],
    embeddings: list[Features],
    embed_seconds: float,
    seeds: Sequence[int],
    split: str | None,
    probe: ProbeMode,
) -> MethodScore:
    if not seeds:
        raise EvaluationError("no seed was given", where="seeds", fix="Give at least one seed.")
    splits = [dataset.split(split, seed=seed) for seed in seeds]
    started = time.perf_counter()
    result = linear_probe(embeddings, dataset.labels, splits, mode=probe)
    return MethodScore(
        dataset=dataset.name,
        split=splits[0].name,
        seeds=tuple(seeds),
        result=result,
        graph_hash=dataset.graph.content_hash,
        diagnostics=diagnose(embeddings[0]),
        embed_seconds=embed_seconds,
        probe_seconds=time.perf_counter() - started,
        **identity,
    )
