"""One method against every other on every graph, corrected for the number of tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nodejepa.study.names import SELF_SUPERVISED
from nodejepa.study.selection import Record, Values, by_method_and_dataset, datasets_of, methods_of, values_by
from nodejepa.study.statistics import Comparison, Outcome, average_ranks, compare, holm, outcome, summarise


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
    """Average ranks of ``methods`` over the graphs on which every one of them has a score."""

    average: dict[str, float]
    datasets: tuple[str, ...]


def rank_methods(
    records: Sequence[Record], candidates: Sequence[str] = SELF_SUPERVISED, field: str = "test_accuracy"
) -> Ranking:
    """Rank those ``candidates`` that the study has; a graph that lacks one of them does not count."""
    values = values_by(records, field, by_method_and_dataset)
    methods = [name for name in candidates if any(method == name for method, _ in values)]
    tables, complete = [], []
    for dataset in datasets_of(records):
        scores = {name: summarise(list(values.get((name, dataset), {}).values())) for name in methods}
        means = {name: score.mean for name, score in scores.items() if score is not None}
        if methods and len(means) == len(methods):
            tables.append(means)
            complete.append(dataset)
    return Ranking(average_ranks(tables), tuple(complete))
