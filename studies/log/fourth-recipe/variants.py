"""Variants of LinearJEPA on fourteen graphs: ``python variants.py FOLDER [GRAPH ...] [--all]``.

``FOLDER`` is where ``../many-classes/graphs.py`` left its two graphs. A line a graph and variant goes to
``records.jsonl``; what is there is not measured again. ``table.py`` prints.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from nodejepa import Graph, linear_probe
from nodejepa.data.splits import per_class_split
from nodejepa.methods import make_method

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "many-classes"))
from measure import FEW, MANY, load  # noqa: E402 - of the notebook before this one

RECORDS = HERE / "records.jsonl"
SEEDS = range(100, 106)


def scaled(graph: Graph, how: str) -> Graph:
    """The graph with other features: rows of unit length (``l2``), of the root of their length (``root``),
    rare columns louder (``idf``)."""
    x = sp.csr_array(graph.features, dtype=np.float64)
    if "idf" in how:
        held = np.asarray((x != 0).sum(axis=0)).ravel()
        x = sp.csr_array(x @ sp.diags_array(np.log((1 + x.shape[0]) / (1 + held))))
    length = np.sqrt(np.asarray(x.multiply(x).sum(axis=1)).ravel())
    if "l2" in how or "root" in how:
        power = 1.0 if "l2" in how else 0.5
        x = sp.csr_array(sp.diags_array(np.where(length > 0, length, 1.0) ** -power) @ x)
    adjacency = graph.adjacency.tocoo()
    features = x.astype(np.float32)
    dense = isinstance(graph.features, np.ndarray)
    return Graph.from_edges(
        adjacency.row,
        adjacency.col,
        weights=adjacency.data,
        features=features.toarray() if dense else features,
        direction="check",
    )


VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "sum 4 (third recipe)": ("", {"predictability": 4.0}),
    "sum 8": ("", {"predictability": 8.0}),
    "sum 12": ("", {"predictability": 12.0}),
}
GIVEN_UP: dict[str, tuple[str, dict[str, Any]]] = {  # after a look at some graphs
    "sum 6": ("", {"predictability": 6.0}),
    "l2, sum 4": ("l2", {"predictability": 4.0}),
    "l2, sum 8": ("l2", {"predictability": 8.0}),
    "root, sum 8": ("root", {"predictability": 8.0}),
    "idf l2, sum 8": ("idf l2", {"predictability": 8.0}),
    "sum 8, restart .2": ("", {"predictability": 8.0, "restart": 0.2}),
    "sum 8, weights rho": ("", {"predictability": 8.0, "power": 1.0}),
}


def main() -> None:
    """Every graph and variant that has no line yet."""
    lines = RECORDS.read_text(encoding="utf-8").splitlines() if RECORDS.exists() else []
    known = {(row["graph"], row["variant"]) for row in map(json.loads, lines)}
    graphs = [name for name in sys.argv[2:] if name != "--all"]
    for name in graphs or (*FEW, *MANY):
        graph, labels = load(name, Path(sys.argv[1]))
        for variant, (how, settings) in (VARIANTS | (GIVEN_UP if "--all" in sys.argv else {})).items():
            if (name, variant) in known:
                continue
            seen = scaled(graph, how) if how else graph
            model = make_method("linear-jepa", settings=settings).fit(seen)
            z = model.transform(seen)
            row: dict[str, Any] = {"graph": name, "variant": variant, "shrinkage": model.findings_.shrinkage}
            for count in (20, 5):
                splits = [per_class_split(labels, train=count, seed=seed) for seed in SEEDS]
                row[f"{count}-30"] = [
                    round(x.test_accuracy, 3) for x in linear_probe(z, labels, splits).scores
                ]
            with RECORDS.open("a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")
            print(row, flush=True)


if __name__ == "__main__":
    main()
