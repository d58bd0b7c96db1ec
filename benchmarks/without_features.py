"""What the adjacency itself is worth to LinearJEPA: ten graphs with their features taken away.

    python -m benchmarks.without_features [graph ...]   # measures what is missing, writes the table
    python -m benchmarks.without_features --render      # only the table

The rule was chosen on splits of seeds 100 to 105 (studies/log/without-features); these are others. A form
without the logarithm and with lambda instead of its square was measured on 110 to 113 before.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from scipy.stats import ttest_rel

from nodejepa import LinearJEPA, descriptors, linear_probe, load_dataset
from nodejepa.files import versions, write_text
from nodejepa.report.sections import Column, ReportTable, TableCell, to_markdown

RECORDS = Path(__file__).parents[1] / "studies" / "without-features" / "records.jsonl"
GRAPHS = (
    *("chameleon_filtered", "citeseer", "acm", "actor", "blogcatalog", "minesweeper", "tolokers", "dblp"),
    *("pubmed", "facebook_pagepage"),
)
SPLITS, SEEDS = ("20-30", "5-30"), range(110, 118)
KINDS = ("descriptors", "LinearJEPA on descriptors", "LinearJEPA on descriptors and adjacency")


def measure(name: str) -> dict[str, Any]:
    """One line of the records: test accuracy by embeddings and split, a number a seed."""
    data = load_dataset(name)
    bare = data.graph.with_features(np.zeros((data.graph.num_nodes, 0), dtype=np.float32))
    described = bare.with_features(descriptors(bare))  # also fills the cache: not timed below
    found: dict[str, Any] = {"graph": name, "nodes": bare.num_nodes, "edges": bare.num_edges // 2}
    found |= {"threads": torch.get_num_threads(), "versions": versions(), "seeds": list(SEEDS)}
    for kind, graph in zip(KINDS, (None, described, bare), strict=True):
        started = time.perf_counter()
        z = described.features if graph is None else LinearJEPA().fit(graph).transform(graph)
        found[kind] = {"seconds": round(time.perf_counter() - started, 2)}
        for split in SPLITS:
            draws = [data.split(split, seed=seed) for seed in SEEDS]
            scores = linear_probe(z, data.labels, draws).scores
            found[kind][split] = [round(score.test_accuracy, 4) for score in scores]
    return found


def read() -> list[dict[str, Any]]:
    """The records in the order of the alphabet."""
    lines = RECORDS.read_text(encoding="utf-8").splitlines() if RECORDS.exists() else []
    return sorted(map(json.loads, lines), key=lambda record: str(record["graph"]))


def render(records: list[dict[str, Any]]) -> str:
    """The table as Markdown."""
    groups = []
    for split in SPLITS:
        lines = [(record["graph"], *(fmean(record[kind][split]) for kind in KINDS)) for record in records]
        lines.append(("mean", *(fmean(line[place] for line in lines) for place in (1, 2, 3))))
        groups.append(
            tuple(
                (
                    TableCell.name(split),
                    TableCell.name(graph),
                    *map(TableCell.number, (bare, before, now, now - before)),
                )
                for graph, bare, before, now in lines
            )
        )
    columns = (Column.name("Split"), Column.name("Graph"), *map(Column, (*KINDS, "Gain")))
    p = {s: ttest_rel(*([fmean(r[k][s]) for r in records] for k in KINDS[:0:-1])).pvalue for s in SPLITS}
    notes = (
        "Features taken away; fair probe, mean over splits of seeds 110 to 117. Gain: of the last over the "
        "one before, which is what was done until then.",
        "Paired t-test over the graphs: " + ", ".join(f"p = {p[s]:.3f} ({s})" for s in SPLITS) + ".",
        "Actor has 5 classes and Minesweeper 2: without features both are near what guessing gets.",
    )
    title = f"Graphs without features: {len(records)} graphs"
    return to_markdown(ReportTable("without-features", title, columns, tuple(groups), notes))


def main() -> None:
    """Measure what is missing, write the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.without_features", description=__doc__)
    parser.add_argument("graphs", nargs="*", help="all ten if none is named")
    parser.add_argument("--render", action="store_true", help="only write the table")
    asked = parser.parse_args()
    known = {record["graph"] for record in read()}
    for name in () if asked.render else asked.graphs or GRAPHS:
        if name not in known:
            line = json.dumps(measure(name), allow_nan=False) + "\n"
            with RECORDS.open("a", encoding="utf-8") as file:
                file.write(line)
            print(line, flush=True)
    write_text(RECORDS.with_name("gains.md"), render(read()))


if __name__ == "__main__":
    main()
