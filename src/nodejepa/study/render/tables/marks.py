"""Bold and dagger: which mean is higher must not depend on which seeds happen to be measured.

Splits differ more from seed to seed than methods differ from each other, so a mean of one seed says little
beside a mean of five.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from nodejepa.report.summary import Summary
from nodejepa.report.table import DAGGER
from nodejepa.study.render.names import FLOORS
from nodejepa.study.render.selection import Values, means_on_shared_seeds


def best_of(scores: Iterable[Summary | None]) -> Summary | None:
    """The highest mean among those over the most seeds, for printing it bold."""
    known = [score for score in scores if score is not None]
    return max(known, key=lambda score: (score.n, score.mean), default=None)


def floor_mark(mine: Values | None, floors: Sequence[Values]) -> str:
    """A dagger where a method is not above the best floor on the seeds that both have (else on all)."""
    if not mine:
        return ""
    for floor in floors:
        means = means_on_shared_seeds({"mine": mine, "floor": floor})
        ours, theirs = means.values() if means else (fmean(mine.values()), fmean(floor.values()))
        if ours <= theirs:
            return DAGGER
    return ""


def floors_to_beat(values: Mapping[tuple[str, str], Values], method: str, dataset: str) -> list[Values]:
    """What the floors score on a graph; floors themselves have none to beat."""
    if method in FLOORS:
        return []
    return [values[floor, dataset] for floor in FLOORS if (floor, dataset) in values]
