"""One method against every other on every graph, corrected for the number of tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nodejepa.study.render.names import SELF_SUPERVISED
from nodejepa.study.render.selection import (
    Record,
    Values,
    by_method_and_dataset,
    datasets_of,
    means_on_shared_seeds,
    methods_of,
    shared_seeds,
    values_by,
)
from nodejepa.study.render.statistics import Comparison, Outcome, average_ranks, compare, holm, outcome


@dataclass(frozen=True)
class Contrast:
    """A comparison of ``method`` with ``opponent`` on one graph; ``None`` where one of them was not run."""

    method: str
    opponent: str
    dataset: str
    found: Comparison | None
    holm_p: float | None

    def outcome(self, *, corrected: bool = True) -> Outcome | None:
        """Win, tie or loss of ``method`` at 5 percent."""
        if self.found is None:
            return None
        return outcome(self.found.difference, self.holm_p if corrected else self.found.p)


def contrasts(records: Sequence[Record], method: str, field: str = "test_accuracy") -> list[Contrast]:
    """``method`` against every other method and floor. Holm's family: all tests of this method."""
    values = values_by(records, field, by_method_and_dataset)
    pairs = [
        (dataset, opponent)
        for dataset in datasets_of(records)
        for opponent in methods_of(records)
        if opponent != method
    ]
    nothing: Values = {}
    found = [
        compare(values.get((method, dataset), nothing), values.get((opponent, dataset), nothing))
        for dataset, opponent in pairs
    ]
    corrected = holm([None if comparison is None else comparison.p for comparison in found])
    return [
        Contrast(method, opponent, dataset, comparison, p)
        for (dataset, opponent), comparison, p in zip(pairs, found, corrected, strict=True)
    ]


@dataclass(frozen=True)
class Ranking:
    """Average ranks over the graphs on which all methods share seeds, and how many seeds these are."""

    average: dict[str, float]
    seeds: dict[str, int]  # by graph

    @property
    def datasets(self) -> tuple[str, ...]:
        """The graphs that count."""
        return tuple(self.seeds)


def rank_methods(
    records: Sequence[Record], candidates: Sequence[str] = SELF_SUPERVISED, field: str = "test_accuracy"
) -> Ranking:
    """Rank those ``candidates`` that the study has by their means over the seeds that all of them have.

    A graph on which they share no seed does not count.
    """
    values = values_by(records, field, by_method_and_dataset)
    methods = [name for name in candidates if any(method == name for method, _ in values)]
    tables, seeds = [], {}
    for dataset in datasets_of(records):
        here = {name: values.get((name, dataset), {}) for name in methods}
        if means := means_on_shared_seeds(here):
            tables.append(means)
            seeds[dataset] = len(shared_seeds(here.values()))
    return Ranking(average_ranks(tables), seeds)
