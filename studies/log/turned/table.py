"""The tables of this folder's README, from its records: ``python studies/log/turned/table.py``."""

import json
from pathlib import Path

import numpy as np

READINGS = ("fair20", "standardised20", "paper20", "fair5", "standardised5", "paper5")
FEW = ("minesweeper", "tolokers", "digits")  # graphs of few columns


def main():
    """Mean accuracy over graphs of every variant, then graph by graph on fresh seeds, then few columns."""
    found = {}
    for line in (Path(__file__).parent / "records.jsonl").read_text().splitlines():
        record = json.loads(line)
        found.setdefault((record["variant"], record["seeds"][0]), {})[record["graph"]] = record
    print("Seeds 100-109, eight graphs: mean difference to the second recipe\n")
    print("| variant |", " | ".join(READINGS), "|")
    print("|---|" + "---|" * len(READINGS))
    base = found["second", 100]
    for (variant, first), scores in found.items():
        wide = [graph for graph in scores if graph not in FEW]
        if first == 100 and variant != "second" and len(wide) == 8:
            print(f"| {variant} |", " | ".join(_gain(scores, base, wide, name) for name in READINGS), "|")
    print("\nSeeds 120-129: second recipe / third\n\n| graph |", " | ".join(READINGS), "|")
    print("|---|" + "---|" * len(READINGS))
    second, third = found["second", 120], found["third", 120]
    for graph in second:
        both = ((np.mean(second[graph][name]), np.mean(third[graph][name])) for name in READINGS)
        print(f"| {graph} |", " | ".join(f"{one:.1f} / {other:.1f}" for one, other in both), "|")
    print("\nSeeds 100-109, graphs of few columns: fair20 / fair5\n\n| variant |", " | ".join(FEW), "|")
    print("|---|" + "---|" * len(FEW))
    for (variant, _), scores in found.items():
        if FEW[0] in scores and "fair20" in scores[FEW[0]]:
            cells = (f"{np.mean(scores[g]['fair20']):.1f} / {np.mean(scores[g]['fair5']):.1f}" for g in FEW)
            print(f"| {variant} |", " | ".join(cells), "|")


def _gain(scores, base, graphs, name):
    if any(name not in scores[graph] for graph in graphs):
        return "-"
    return f"{np.mean([np.mean(scores[g][name]) - np.mean(base[g][name]) for g in graphs]):+.2f}"


if __name__ == "__main__":
    main()
