"""Does the paper's table of t-tests follow from the means and standard deviations that it prints?

Values by seed are not printed. Welch's test needs only what is printed, up to rounding, so its p can be
recomputed. A paired test also depends on how the seeds of both methods go together: between a correlation of
-1 and 1 the standard deviation of the differences runs from ``s1 + s2`` down to ``|s1 - s2|``, and the
printed p must lie between the p values of these two ends. It can still be wrong inside that range.

The printed standard deviations may be those of a sample (divided by n - 1) or of a population (by n): both
readings are offered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import stats
from studies.render.paper import JEPA, PrintedTest, paper_accuracy, paper_tests

from nodejepa.report.sections import Summary

_HALF = 0.005  # of the last digit of printed means and standard deviations


@dataclass(frozen=True)
class CheckedTest:
    """A printed test beside what its own table allows.

    Args:
        printed: the row.
        lowest, highest: p values that the printed (rounded) means and deviations allow.
        difference_fits: the printed difference is that of the printed means, up to rounding.
        p_fits: the printed p is in that range, up to its own rounding.
    """

    printed: PrintedTest
    lowest: float
    highest: float
    difference_fits: bool
    p_fits: bool


def check_printed_tests(*, population_std: bool = False) -> list[CheckedTest]:
    """Every row of both tables of t-tests against Table 1."""
    return [_check(row, population_std) for variant in JEPA for row in paper_tests(variant)]


def _check(row: PrintedTest, population_std: bool) -> CheckedTest:
    ours, theirs = paper_accuracy(row.variant, row.dataset), paper_accuracy(row.baseline, row.dataset)
    if ours is None or theirs is None:
        raise ValueError(f"the paper tests {row.baseline} on {row.dataset} without printing its accuracy")
    gap = abs(row.difference)
    lowest = _p(row.test, gap + _HALF, ours, theirs, -_HALF, population_std)
    highest = _p(row.test, max(gap - _HALF, 0.0), ours, theirs, _HALF, population_std)
    return CheckedTest(
        row,
        lowest,
        highest,
        # means and difference are rounded each for itself
        difference_fits=abs(ours.mean - theirs.mean - row.difference) < 3 * _HALF + 1e-9
        and (row.mean, row.baseline_mean) == (ours.mean, theirs.mean),
        p_fits=lowest - _p_rounding(row.p) <= row.p <= highest + _p_rounding(row.p),
    )


def _p(test: str, gap: float, ours: Summary, theirs: Summary, change: float, population_std: bool) -> float:
    """p with both deviations changed by ``change``; the correlation is that which goes the same way."""
    grow = math.sqrt(ours.n / (ours.n - 1)) if population_std else 1.0
    first, second = (grow * max((side.std or 0.0) + change, 0.0) for side in (ours, theirs))
    if test == "Welch":
        sides = (gap, first, ours.n, 0.0, second, theirs.n)
        return float(stats.ttest_ind_from_stats(*sides, equal_var=False).pvalue)
    # the least spread: perfectly correlated, and each deviation off by half a digit towards the other
    least = max(abs(first - second) - 2 * grow * _HALF, 0.0)
    spread = first + second if change > 0 else least
    return float(2 * stats.t.sf(gap / (spread / math.sqrt(ours.n)), ours.n - 1)) if spread else 0.0


def _p_rounding(p: float) -> float:
    """Printed are three digits, or four where three would be zero; 0.0001 also stands for anything below."""
    return 0.0001 if p == 0.0001 else 0.00005 if p < 0.001 else 0.0005
