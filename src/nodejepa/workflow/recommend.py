"""Which embedding to trust, in plain words: by labels where there are any, else by what is known of others.

Scores that need no labels are shown and not followed: on graphs with labels they chose worse than always
taking LinearJEPA (``studies/compare``). The figures below are those of its table; a test compares them.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from nodejepa.config import DEFAULT_METHOD
from nodejepa.report.sections import mean_and_std, summarise

DEFAULT = DEFAULT_METHOD  # what is recommended where labels say nothing
POINT = 1.0  # of accuracy: closer is as good
FAR_BELOW = 5.0  # points of balanced accuracy: a row further below another is not as good
GRAPHS, DEFAULT_RIGHT, BEST_RULE_RIGHT = 10, 10, 7  # of studies/compare/recommendation.md


@dataclass(frozen=True)
class MethodRow:
    """What was measured of one method; ``problem`` says why nothing was."""

    method: str
    problem: str | None = None
    columns: int | None = None
    epochs: int = 0
    seconds: float | None = None  # of learning and embedding
    memory_mb: float | None = None  # of the whole process, at the peak of that
    links_auc: float | None = None
    links_mrr: float | None = None
    collapsed: bool = False
    verdict: str = ""
    accuracy: tuple[float, ...] = ()  # percent, one a split; empty without labels
    balanced_accuracy: tuple[float, ...] = ()
    macro_f1: tuple[float, ...] = ()
    roc_auc: tuple[float, ...] = ()  # of two classes only
    plane: tuple[tuple[float, float], ...] = ()  # the nodes of the map

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Recommendation:
    """The method to take, whether labels say so, and the reasons."""

    method: str
    by_labels: bool
    words: tuple[str, ...]


def recommend(rows: Sequence[MethodRow]) -> Recommendation | None:
    """One method of those that were measured; None if there is none."""
    done = [row for row in rows if row.problem is None]
    if not done:
        return None
    scored = [row for row in done if row.accuracy]
    return _by_labels(scored) if scored else _by_default(done)


def _by_labels(rows: Sequence[MethodRow]) -> Recommendation:
    means = {row.method: mean_and_std(row.accuracy) for row in rows}
    best = max(rows, key=lambda row: (means[row.method].mean, row.method == DEFAULT))
    level = [row.method for row in rows if row is not best and _as_good(row, best)]
    found = means[best.method]
    spread = "" if found.std is None else f" ± {found.std:.1f}"
    words = [
        f"Take {best.method}: its test accuracy of {found.mean:.1f}{spread} % is the highest of {len(rows)} "
        f"methods (mean over {found.n} splits).",
        "The best of several methods is partly best by chance: expect a little less on new nodes.",
    ]
    balanced = {row.method: float(np.mean(row.balanced_accuracy)) for row in rows if row.balanced_accuracy}
    other = max(balanced, key=lambda name: balanced[name], default=best.method)
    if best.method in balanced and balanced[other] - balanced[best.method] > FAR_BELOW:
        words.append(
            f"Its balanced accuracy, which counts every class alike, is {balanced[best.method]:.1f} %, that "
            f"of {other} {balanced[other]:.1f} %: take {other} if small classes matter."
        )
    if level:
        words.append(f"Not clearly below it: {', '.join(level)}.")
    else:
        words.append("Every other method is below it by more than one standard deviation over the splits.")
    return Recommendation(best.method, True, tuple(words))


def _as_good(row: MethodRow, best: MethodRow) -> bool:
    """Behind by no more than one standard deviation of the difference over draws, or than a point."""
    if len(row.accuracy) != len(best.accuracy):
        return False
    found = summarise([b - a for a, b in zip(row.accuracy, best.accuracy, strict=True)])
    return found is not None and found.mean <= max(found.std or 0.0, POINT)


def _by_default(rows: Sequence[MethodRow]) -> Recommendation:
    best = next((row for row in rows if row.method == DEFAULT), rows[0])
    words = [f"Take {best.method}, the default: without labels the best method for this graph is unknown."]
    if best.method == DEFAULT:
        words.append(
            f"We compared it with the untrained baselines on {GRAPHS} graphs with labels. It was within a "
            f"point of the best on {DEFAULT_RIGHT}. Its settings were chosen on these graphs, so expect less "
            "on others."
        )
    else:
        words[0] = f"Take {best.method}: {DEFAULT}, the default, could not be measured here."
    scored = [row for row in rows if row.links_auc is not None]
    if scored:
        preferred = max(scored, key=lambda row: row.links_auc or 0.0).method
        words.append(
            f"{preferred} predicts held-out links best. This does not change the recommendation: the best "
            f"rule without labels was within a point of the best on {BEST_RULE_RIGHT} of the {GRAPHS} graphs."
        )
    words.append("With about 20 labels per class, name their column to compare the methods on your task.")
    return Recommendation(best.method, False, tuple(words))
