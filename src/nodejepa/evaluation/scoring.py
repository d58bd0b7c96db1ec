"""A method or a trained run on a data set, with labels where it is to see them -> an honest score."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch

from nodejepa.config import to_dict
from nodejepa.data import Dataset, Split
from nodejepa.diagnostics import Diagnostics, diagnose
from nodejepa.errors import EvaluationError
from nodejepa.evaluation import ProbeResult, linear_probe
from nodejepa.evaluation.probe import ProbeMode, mean_std
from nodejepa.files import versions
from nodejepa.graph_checks import Features
from nodejepa.methods import Estimator, find_method, load_method, make_method


def fit_on(estimator: Estimator, dataset: Dataset, split: Split, **how: Any) -> Estimator:
    """Fit on the dataset's graph; only a supervised method is shown labels, and the split says which.

    ``how``: ``out``, ``resume`` and ``logging`` of ``fit``.
    """
    if find_method(estimator.name).supervised:
        how |= {"labels": dataset.labels, "split": split}
    return estimator.fit(dataset.graph, **how)


@dataclass(frozen=True)
class HeadScore:
    """Accuracies (percent) of one trained head, and how long it was trained."""

    seed: int
    val_accuracy: float
    test_accuracy: float
    epochs: int


def score_head(method: Any, dataset: Dataset, split: Split) -> HeadScore:
    """Ask a fitted supervised method for every node's class; test labels are read here for the first time."""
    right = method.predict(dataset.graph) == dataset.labels
    val, test = (100 * float(right[nodes].mean()) for nodes in (split.val, split.test))
    return HeadScore(split.seed, val, test, len(method.history_))


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
    heads: tuple[HeadScore, ...] = ()  # of a supervised method: its own classifier beside the probe
    sampled: str = ""  # which nodes of a large graph on disk were scored

    def head_mean_std(self, part: Literal["val", "test"]) -> tuple[float | None, float | None]:
        """Mean accuracy of the heads and its sample standard deviation; none for a single seed."""
        return mean_std([getattr(score, f"{part}_accuracy") for score in self.heads])

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON; accuracies in percent."""
        names = ("dataset", "method", "preset", "split", "seeds", "config", "training_seed", "graph_hash")
        return {
            **{name: getattr(self, name) for name in names},
            **({"sampled": self.sampled} if self.sampled else {}),
            **self.result.to_dict(),
            **({"head": self._heads()} if self.heads else {}),
            "diagnostics": {"seed": self.seeds[0], **self.diagnostics.to_dict()},
            "seconds": {"embed": round(self.embed_seconds, 3), "probe": round(self.probe_seconds, 3)},
            "threads": torch.get_num_threads(),
            "versions": versions(),
        }

    def _heads(self) -> dict[str, object]:
        (test, test_std), (val, val_std) = self.head_mean_std("test"), self.head_mean_std("val")
        return {
            "test_accuracy_mean": test,
            "test_accuracy_std": test_std,
            "val_accuracy_mean": val,
            "val_accuracy_std": val_std,
            "scores": [asdict(score) for score in self.heads],
        }


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

    The graph may be on disk. Only the probe is shown the labels, and a supervised method those of each
    split's training and validation nodes. The dataset's default split is taken if none is named.
    """
    started, embeddings, heads = time.perf_counter(), list[Features](), list[HeadScore]()
    entry = find_method(method)
    stored = dataset.nodes is not None
    if entry.supervised and stored:
        raise EvaluationError(
            f"{method} learns from labels, and with labels nothing learns from a graph on disk",
            where=dataset.name,
            fix="Use a method that needs none, or the files in memory.",
        )
    known = None if stored else dataset.name  # of which presets may know
    made = make_method(method, preset=preset, dataset=known, settings=settings)
    for seed in seeds if entry.seeded else seeds[:1]:  # once where the seed makes no difference
        drawn = dataset.split(split, seed=seed)
        made = make_method(method, preset=preset, dataset=known, seed=seed, settings=settings)
        embeddings.append(_embedded(fit_on(made, dataset, drawn), dataset))
        if entry.supervised:
            heads.append(score_head(made, dataset, drawn))
    if not entry.seeded:
        embeddings *= len(seeds)
    seconds = time.perf_counter() - started
    identity = {"method": method, "preset": preset, "config": to_dict(made.config), "training_seed": None}
    score = _score(dataset, identity, embeddings, seconds, seeds, split, probe)
    return replace(score, heads=tuple(heads))


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
            fix=f'Let every split train its own: nodejepa probe {dataset.name} method="{estimator.name}".',
        )
    embeddings = _embedded(estimator, dataset)
    seconds = time.perf_counter() - started
    identity = {
        "method": estimator.name,
        "preset": "as trained",
        "config": to_dict(estimator.config),
        "training_seed": estimator.seed,
    }
    return _score(dataset, identity, [embeddings] * len(seeds), seconds, seeds, split, probe)


def _embedded(estimator: Estimator, dataset: Dataset) -> Features:
    """Of a graph on disk only the embeddings of the nodes that are scored come into memory."""
    if dataset.nodes is None:
        return estimator.transform(dataset.graph)
    z: Features = estimator.transform(dataset.graph, scratch=getattr(dataset.graph, "folder", None))
    return z[dataset.nodes]


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
        sampled=dataset.sampled,
        **identity,
    )
