"""The tables of this folder's README, from its records: ``python studies/log/fourth-recipe/table.py``."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

BEFORE = "sum 4 (third recipe)"
SPLITS = ("20-30", "5-30")
MANY = ("cora", "digits", "debian", "wordnet")  # 7 to 42 classes


def main() -> None:
    """Difference to the recipe before, graph by graph, then over those of few and of many classes."""
    lines = Path(__file__).with_name("records.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    scores = {(row["graph"], row["variant"], split): fmean(row[split]) for row in rows for split in SPLITS}
    graphs = list(dict.fromkeys(row["graph"] for row in rows))
    variants = [name for name in dict.fromkeys(row["variant"] for row in rows) if name != BEFORE]
    for split in SPLITS:
        print(f"\n{split.split('-')[0]} labels per class\n")
        print(f"| graph | {BEFORE} |", " | ".join(variants), "|")
        print("|---|---|" + "---|" * len(variants))
        for graph in graphs:
            before = scores[graph, BEFORE, split]
            gains = [
                f"{scores[graph, name, split] - before:+.1f}" if (graph, name, split) in scores else "-"
                for name in variants
            ]
            print(f"| {graph} | {before:.1f} |", " | ".join(gains), "|")
        for title, some in (
            ("few classes", [graph for graph in graphs if graph not in MANY]),
            ("many classes", [graph for graph in graphs if graph in MANY]),
        ):
            means = []
            for name in variants:
                both = [graph for graph in some if (graph, name, split) in scores]
                gain = [scores[graph, name, split] - scores[graph, BEFORE, split] for graph in both]
                means.append(f"{fmean(gain):+.2f} ({len(both)})" if gain else "-")
            print(f"| mean, {title} | |", " | ".join(means), "|")


if __name__ == "__main__":
    main()
