"""Statistics of a study: ranks, tests between methods and their correction for many tests.

Sums are exact (``math.fsum``), so that a table does not depend on the order of its records. What cannot be
said (one seed, no spread) is ``None``, never NaN.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from scipy.special import stdtr, stdtrit

from nodejepa.report.table import Summary, mean_and_std
from studies.render.paper import SELF_SUPERVISED
from studies.render.selection import (
    Key,
    Record,
    datasets_of,
    means_on_shared_seeds,
    methods_of,
    shared_seeds,
    values_of,
)

Outcome: TypeAlias = Literal["win", "tie", "loss"]


@dataclass(frozen=True)
class Comparison:
    """How far one method is from another: the difference of the means, of per-seed differences when paired.

    ``low``, ``high`` (confidence interval) and ``p`` (two-sided, that there is no difference) are ``None``
    where there is no spread to tell them from; ``n`` are the seeds of either side.
    """

    difference: float
    low: float | None
    high: float | None
    p: float | None
    test: Literal["paired", "Welch"]
    n: tuple[int, int]


def ranks(scores: Mapping[str, float]) -> dict[str, float]:
    """1 for the highest; equal scores share the mean of their places.

    >>> ranks({"a": 70.0, "b": 90.0, "c": 70.0})
    {'a': 2.5, 'b': 1.0, 'c': 2.5}
    """
    values = list(scores.values())
    return {
        name: 1 + sum(other > score for other in values) + (values.count(score) - 1) / 2
        for name, score in scores.items()
    }


def average_ranks(tables: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Rank of each method averaged over graphs; every graph must have the same methods."""
    if len({frozenset(table) for table in tables}) > 1:
        raise ValueError("average ranks need the same methods on every graph")
    placed = [ranks(table) for table in tables]
    return {name: math.fsum(place[name] for place in placed) / len(placed) for name in (placed or [{}])[0]}


def compare(
    ours: Mapping[int, float], theirs: Mapping[int, float], *, confidence: float = 0.95
) -> Comparison | None:
    """t-test of two methods' scores by seed: paired when the seeds are the same, else Welch's.

    ``None`` when one of them has no score at all.
    """
    if not ours or not theirs:
        return None
    # what is below the rounding of the scores themselves is no spread
    noise = 1e-12 * max(abs(value) for value in (*ours.values(), *theirs.values()))
    if ours.keys() == theirs.keys():
        gaps = mean_and_std([ours[seed] - theirs[seed] for seed in sorted(ours)])
        error = None if gaps.std is None else gaps.std / math.sqrt(gaps.n) if gaps.std > noise else 0.0
        return _tested(gaps.mean, error, gaps.n - 1, confidence, noise, "paired", (gaps.n, gaps.n))
    left, right = mean_and_std(list(ours.values())), mean_and_std(list(theirs.values()))
    error, freedom = welch_error(left, right)
    return _tested(left.mean - right.mean, error, freedom, confidence, noise, "Welch", (left.n, right.n))


def welch_error(left: Summary, right: Summary) -> tuple[float | None, float]:
    """Standard error of the difference of two means, and its degrees of freedom (Welch-Satterthwaite)."""
    if left.std is None or right.std is None:
        return None, 0.0
    a, b = left.std**2 / left.n, right.std**2 / right.n
    if a + b == 0:
        return 0.0, 0.0
    share = a / (a + b)  # squares of tiny variances would vanish, those of their shares do not
    return math.sqrt(a + b), 1 / (share**2 / (left.n - 1) + (1 - share) ** 2 / (right.n - 1))


def two_sided_p(t: float, freedom: float) -> float:
    """Probability of a |t| at least this large when there is no difference."""
    return float(2 * stdtr(freedom, -abs(t)))


def _tested(
    difference: float,
    error: float | None,
    freedom: float,
    confidence: float,
    noise: float,
    test: Literal["paired", "Welch"],
    n: tuple[int, int],
) -> Comparison:
    if error is None:
        return Comparison(difference, None, None, None, test, n)
    if error == 0:  # every seed says the same: no difference at all, or one without any spread to judge it by
        if abs(difference) > noise:
            return Comparison(difference, None, None, None, test, n)
        return Comparison(difference, difference, difference, 1.0, test, n)
    reach = float(stdtrit(freedom, 0.5 + confidence / 2)) * error
    p = two_sided_p(difference / error, freedom)
    return Comparison(difference, difference - reach, difference + reach, p, test, n)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction over one family; a test that gave no p is not part of it.

    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    tested = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    worst = 0.0
    for step, (p, place) in enumerate(tested):
        worst = max(worst, min(1.0, (len(tested) - step) * p))
        corrected[place] = worst
    return corrected


def holm_of(found: Mapping[Key, Comparison | None]) -> dict[Key, float | None]:
    """:func:`holm` over all of some comparisons."""
    corrected = holm([None if comparison is None else comparison.p for comparison in found.values()])
    return dict(zip(found, corrected, strict=True))


def outcome(difference: float, p: float | None, level: float = 0.05) -> Outcome | None:
    """A win or a loss where the test says so, else a tie; ``None`` where nothing could be tested."""
    if p is None:
        return None
    if p >= level or difference == 0:
        return "tie"
    return "win" if difference > 0 else "loss"


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
    values = values_of(records, field)
    found = {
        (opponent, dataset): compare(values.get((method, dataset), {}), values.get((opponent, dataset), {}))
        for dataset in datasets_of(records)
        for opponent in methods_of(records)
        if opponent != method
    }
    corrected = holm_of(found)
    return [Contrast(method, *place, comparison, corrected[place]) for place, comparison in found.items()]


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
    values = values_of(records, field)
    methods = [name for name in candidates if any(method == name for method, _ in values)]
    tables, seeds = [], {}
    for dataset in datasets_of(records):
        here = {name: values.get((name, dataset), {}) for name in methods}
        if means := means_on_shared_seeds(here):
            tables.append(means)
            seeds[dataset] = len(shared_seeds(here.values()))
    return Ranking(average_ranks(tables), seeds)
