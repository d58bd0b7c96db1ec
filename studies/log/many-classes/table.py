"""The tables of this folder's README, from its records: ``python studies/log/many-classes/table.py``."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

BUILT = "as built (sum of rho 4)"
SPLITS = ("20-30", "5-30")


def main() -> None:
    """Graphs of many classes one by one, then the mean difference over those of many and of few."""
    lines = Path(__file__).with_name("records.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    found = {(row["graph"], row["variant"]): row for row in rows}
    many = list(dict.fromkeys(row["graph"] for row in rows if row["classes"] > 6))
    few = list(dict.fromkeys(row["graph"] for row in rows if row["classes"] <= 6))
    classes = {row["graph"]: row["classes"] for row in rows}
    print("| variant |", " | ".join(f"{graph} ({classes[graph]} classes)" for graph in many), "|")
    print("|---|" + "---|" * len(many))
    for variant in dict.fromkeys(row["variant"] for row in rows):
        cells = (" / ".join(f"{found[graph, variant][split]:.1f}" for split in SPLITS) for graph in many)
        print(f"| {variant} |", " | ".join(cells), "|")
    print("\n| against as built | graphs | 20 labels: mean | worst | 5 labels: mean | worst |")
    print("|---|---|---|---|---|---|")
    for variant in dict.fromkeys(row["variant"] for row in rows if row["graph"] in few):
        for name, graphs in (("many classes", many), ("few classes", few)):
            if variant != BUILT:
                cells = (cell for split in SPLITS for cell in _gain(found, graphs, variant, split))
                print(f"| {variant} | {name}, {len(graphs)} |", " | ".join(cells), "|")


def _gain(
    found: dict[tuple[str, str], dict[str, float]], graphs: list[str], variant: str, split: str
) -> list[str]:
    gains = {graph: found[graph, variant][split] - found[graph, BUILT][split] for graph in graphs}
    worst = min(gains, key=gains.__getitem__)
    return [f"{fmean(gains.values()):+.2f}", f"{gains[worst]:+.1f} {worst}"]


if __name__ == "__main__":
    main()
