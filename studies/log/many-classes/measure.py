"""How much whitening graphs of many classes want: ``python measure.py FOLDER``, as ``graphs.py`` left it.

A line a graph and variant goes to ``records.jsonl``; what is there is not measured. ``table.py`` prints.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nodejepa import Graph, linear_probe, load_dataset
from nodejepa.data.splits import per_class_split
from nodejepa.methods import make_method

RECORDS = Path(__file__).with_name("records.jsonl")
SEEDS = range(100, 103)
MANY = (
    "cora",
    "digits",
    "debian",
    "wordnet",
)  # 7, 10, 42 and 24 classes; the ten development graphs have 2 to 6
FEW = (
    *("chameleon_filtered", "citeseer", "acm", "actor", "blogcatalog", "dblp", "pubmed", "facebook_pagepage"),
    *("minesweeper", "tolokers"),
)
FLOORS = ("sgc", "walk")
VARIANTS: dict[str, dict[str, float]] = {
    "as built (sum of rho 4)": {"predictability": 4.0, "predictability_share": 0.125},
    "sum of rho 8": {"predictability": 8.0, "predictability_share": 0.25},
    "sum of rho 12": {"predictability": 12.0, "predictability_share": 0.375},
}


def load(name: str, folder: Path) -> tuple[Graph, npt.NDArray[Any]]:
    """Graph and labels."""
    if name not in ("debian", "wordnet"):
        data = load_dataset(name)
        return data.graph, np.asarray(data.labels)
    with np.load(folder / f"{name}.npz", allow_pickle=False) as held:
        edges, cells, labels = held["edges"], held["cells"], held["labels"]
    shape = len(labels), int(cells[:, 1].max()) + 1
    features = sp.csr_array((np.ones(len(cells), np.float32), (cells[:, 0], cells[:, 1])), shape=shape)
    return Graph.from_edges(edges[:, 0], edges[:, 1], features=features), labels


def main() -> None:
    """Every graph and variant that has no line yet."""
    lines = RECORDS.read_text(encoding="utf-8").splitlines() if RECORDS.exists() else []
    known = {(row["graph"], row["variant"]) for row in map(json.loads, lines)}
    for name in (*FEW, *MANY):
        graph, labels = load(name, Path(sys.argv[1]))
        for variant in (*VARIANTS, *(FLOORS if name in MANY else ())):
            if (name, variant) in known:
                continue
            settings = VARIANTS.get(variant)
            method = make_method(variant if settings is None else "linear-jepa", settings=settings)
            z = method.fit(graph).transform(graph)
            scores = {
                f"{count}-30": linear_probe(
                    z, labels, [per_class_split(labels, train=count, seed=seed) for seed in SEEDS]
                ).test_accuracy_mean
                for count in (20, 5)
            }
            row = {"graph": name, "classes": len(np.unique(labels)), "variant": variant, **scores}
            with RECORDS.open("a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")
            print(row, flush=True)


if __name__ == "__main__":
    main()
