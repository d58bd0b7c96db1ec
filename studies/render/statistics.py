"""Tests between methods over seeds, their correction for many tests, and ranks.

What cannot be said (one seed, no spread) is ``None``, never NaN.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from scipy import stats

from studies.render.frame import Place, datasets_of, means_on_shared_seeds, methods_of, values_by
from studies.render.paper import SELF_SUPERVISED

Outcome: TypeAlias = Literal["win", "tie", "loss"]


@dataclass(frozen=True)
class Comparison:
    """How far one method is from another: the difference of the means, of per-seed differences when paired.

    ``low``, ``high`` (95 % interval) and ``p`` (two-sided, that there is no difference) are ``None`` where
    there is no spread to tell them from; ``n`` are the seeds of either side.
    """

    difference: float
    low: float | None
    high: float | None
    p: float | None
    test: Literal["paired", "Welch"]
    n: tuple[int, int]


def compare(ours: pd.Series | None, theirs: pd.Series | None) -> Comparison | None:
    """t-test of two methods' scores by seed: paired when the seeds are the same, else Welch's.

    ``None`` when one of them has no score at all.
    """
    if ours is None or theirs is None or ours.empty or theirs.empty:
        return None
    paired = set(ours.index) == set(theirs.index)
    theirs = theirs[ours.index] if paired else theirs
    sides = [ours - theirs] if paired else [ours, theirs]
    difference = float(sides[0].mean()) if paired else float(ours.mean() - theirs.mean())
    # what is below the rounding of the scores themselves is no spread
    noise = 1e-12 * max(ours.abs().max(), theirs.abs().max())
    low = high = p = None
    if min(map(len, sides)) > 1:
        if max(side.std() for side in sides) > noise:
            test = stats.ttest_rel(ours, theirs) if paired else stats.ttest_ind(ours, theirs, equal_var=False)
            low, high = map(float, test.confidence_interval(0.95))
            p = float(test.pvalue)
        elif abs(difference) <= noise:  # every seed says that there is no difference at all
            low, high, p = difference, difference, 1.0
    return Comparison(difference, low, high, p, "paired" if paired else "Welch", (len(ours), len(theirs)))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction over one family; a test that gave no p is not part of it.

    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    tested = pd.Series(p_values, dtype=float).dropna().sort_values()
    corrected = (tested * np.arange(len(tested), 0, -1)).cummax().clip(upper=1.0)
    return [None if p is None else float(corrected[place]) for place, p in enumerate(p_values)]


def holm_of(found: Mapping[Any, Comparison | None]) -> dict[Any, float | None]:
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
    """``method`` compared with ``opponent`` on one data set; ``None`` where one of them was not run."""

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


def contrasts(frame: pd.DataFrame, method: str, field: str = "test_accuracy") -> list[Contrast]:
    """``method`` against every other method and baseline. Holm's family: all tests of this method."""
    values = values_by(frame, field)
    found: dict[Place, Comparison | None] = {
        (opponent, dataset): compare(values.get((method, dataset)), values.get((opponent, dataset)))
        for dataset in datasets_of(frame)
        for opponent in methods_of(frame)
        if opponent != method
    }
    corrected = holm_of(found)
    return [Contrast(method, *place, comparison, corrected[place]) for place, comparison in found.items()]


def average_ranks(tables: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Rank of each method (1 for the highest, equal ones share their places) averaged over data sets.

    >>> average_ranks([{"a": 70.0, "b": 90.0, "c": 70.0}])
    {'a': 2.5, 'b': 1.0, 'c': 2.5}
    """
    if len({frozenset(table) for table in tables}) > 1:
        raise ValueError("average ranks need the same methods on every graph")
    return pd.DataFrame(list(tables)).rank(axis=1, ascending=False).mean().to_dict()


@dataclass(frozen=True)
class Ranking:
    """Average ranks over the data sets on which all methods share seeds, and how many seeds these are."""

    average: dict[str, float]
    seeds: dict[str, int]  # by data set

    @property
    def datasets(self) -> tuple[str, ...]:
        """The data sets that count."""
        return tuple(self.seeds)


def rank_methods(
    frame: pd.DataFrame, candidates: Sequence[str] = SELF_SUPERVISED, field: str = "test_accuracy"
) -> Ranking:
    """Rank those ``candidates`` that the study has by their means over the seeds that all of them have.

    A data set on which they share no seed does not count.
    """
    values = values_by(frame, field)
    methods = [name for name in candidates if any(method == name for method, _ in values)]
    tables, seeds = [], {}
    for dataset in datasets_of(frame):
        here = {name: values.get((name, dataset)) for name in methods}
        if means := means_on_shared_seeds(here):
            tables.append(means)
            seeds[dataset] = len(
                set.intersection(*(set(mine.index) for mine in here.values() if mine is not None))
            )
    return Ranking(average_ranks(tables), seeds)
