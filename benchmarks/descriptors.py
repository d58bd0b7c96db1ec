"""Seconds of the structural descriptors, and of 128 coordinates of the adjacency, at the size of arxiv.

Each is computed alone, and nothing comes from the cache.

``python -m benchmarks.descriptors`` writes ``benchmarks/descriptors.json``.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from nodejepa.data import load_dataset
from nodejepa.files import write_json
from nodejepa.structure import DESCRIPTORS, descriptors
from nodejepa.structure.laplacian import adjacency_coordinates
from nodejepa.tables.options import STRUCTURAL


def main() -> None:
    graph = load_dataset("synthetic-arxiv").graph
    seconds = {}
    for name in DESCRIPTORS:
        started = time.perf_counter()
        descriptors(graph, (name,), cache=False)
        seconds[name] = round(time.perf_counter() - started, 2)
    started = time.perf_counter()
    adjacency_coordinates(graph, STRUCTURAL["adjacency"])
    seconds["adjacency"] = round(time.perf_counter() - started, 2)
    record = {"dataset": "synthetic-arxiv", "nodes": graph.num_nodes, "seconds": seconds}
    write_json(Path(__file__).with_name("descriptors.json"), record)
    print(json.dumps(record))


if __name__ == "__main__":
    main()
