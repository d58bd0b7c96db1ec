"""How far the family of settings could go on the paper's graphs; ``python ceiling.py`` prints it.

For every graph the variant of ``studies/ingredients`` that is best on the *test* labels, which no honest rule
could pick, against the floor that validation picks (``studies/recipe``), on the seeds that both have.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean

STUDIES = Path(__file__).parents[2]
FLOORS = ("raw", "sgc", "random-gcn", "sgc-1", "sgc-3", "equal-hops", "walk")


def records(study: str) -> list[dict[str, object]]:
    """Those that were measured."""
    lines = (STUDIES / study / "records.jsonl").read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["status"] == "done"]


def main() -> None:
    """A line a split and graph."""
    variants: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in records("ingredients"):
        if row["method"] == "linear-jepa":
            variants[row["split"], row["dataset"]][row["variant"]].append(row["test_accuracy"])
    floors: dict[tuple[str, str], dict[str, list[tuple[float, float]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for row in records("recipe"):
        if row["method"] in FLOORS and row["seed"] in range(42, 45):
            scores = row["val_accuracy"], row["test_accuracy"]
            floors[row["split"], row["dataset"]][row["method"]].append(scores)
    print("| split | graph | best variant by test labels | gain over the best floor |\n|---|---|---|---|")
    gains: dict[str, list[float]] = defaultdict(list)
    for (split, graph), found in sorted(variants.items()):
        best = max(found, key=lambda name: fmean(found[name]))
        candidates = floors[split, graph]
        floor = max(candidates, key=lambda name: fmean(val for val, _ in candidates[name]))
        gain = fmean(found[best]) - fmean(test for _, test in candidates[floor])
        gains[split].append(gain)
        print(f"| {split} | {graph} | {best} | {gain:+.2f} |")
    for split, values in gains.items():
        print(f"| {split} | mean of {len(values)} | | {fmean(values):+.2f} |")


if __name__ == "__main__":
    main()
