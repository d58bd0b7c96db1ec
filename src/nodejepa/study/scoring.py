"""One cell of every table: a method, a dataset, a split, some seeds -> an honest score."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from nodejepa.data import Dataset
from nodejepa.diagnostics import Diagnostics, diagnose
from nodejepa.errors import EvaluationError
from nodejepa.evaluation import ProbeResult, linear_probe
from nodejepa.evaluation.probe import ProbeMode
from nodejepa.graph import Graph
from nodejepa.graph_checks import Features
from nodejepa.methods import find_method, make_method
from nodejepa.methods.estimator import versions


@dataclass(frozen=True, eq=False)
class MethodScore:
    """What a method is worth on a dataset, and all that is needed to get the same number again."""

    dataset: str
    method: str
    preset: str
    split: str
    seeds: tuple[int, ...]
    result: ProbeResult
    diagnostics: Diagnostics  # of the first seed's embeddings
    embed_seconds: float
    probe_seconds: float

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON; accuracies in percent."""
        return {
            "dataset": self.dataset,
            "method": self.method,
            "preset": self.preset,
            "split": self.split,
            "seeds": list(self.seeds),
            **self.result.to_dict(),
            "diagnostics": {"seed": self.seeds[0], **self.diagnostics.to_dict()},
            "seconds": {"embed": round(self.embed_seconds, 3), "probe": round(self.probe_seconds, 3)},
            "versions": versions(),
        }


def embed_seeds(
    graph: Graph, method: str, seeds: Sequence[int], *, preset: str = "default", dataset: str | None = None
) -> list[Features]:
    """The method's embeddings for every seed; computed once where the seed makes no difference."""

    def embed(seed: int) -> Features:
        return make_method(method, preset=preset, dataset=dataset, seed=seed).fit(graph).transform(graph)

    if find_method(method).seeded:
        return [embed(seed) for seed in seeds]
    return [embed(seeds[0])] * len(seeds)


def score_method(
    dataset: Dataset,
    method: str,
    seeds: Sequence[int],
    *,
    preset: str = "default",
    split: str | None = None,
    probe: ProbeMode = "fair",
) -> MethodScore:
    """Embed and probe: seed s draws split s and, for methods with randomness, trains with seed s.

    Args:
        dataset: the graph and its labels; only the probe is shown the labels.
        method: a name in :data:`nodejepa.methods.METHODS`.
        seeds: one split and one set of embeddings each.
        preset: of the method.
        split: name of the split, the dataset's default if not given.
        probe: ``"fair"`` or ``"paper"``.
    """
    if not seeds:
        raise EvaluationError("no seed was given", where="seeds", fix="Give at least one seed.")
    splits = [dataset.split(split, seed=seed) for seed in seeds]
    started = time.perf_counter()
    embeddings = embed_seeds(dataset.graph, method, seeds, preset=preset, dataset=dataset.name)
    embedded = time.perf_counter()
    result = linear_probe(embeddings, dataset.labels, splits, mode=probe)
    probed = time.perf_counter()
    return MethodScore(
        dataset.name,
        method,
        preset,
        splits[0].name,
        tuple(seeds),
        result,
        diagnose(embeddings[0]),
        embedded - started,
        probed - embedded,
    )
