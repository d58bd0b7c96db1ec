"""Seconds of the four structural descriptors at arxiv's size, each alone and nothing from the cache.

``python -m benchmarks.descriptors`` writes ``benchmarks/descriptors.json``.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from nodejepa.data import load_dataset
from nodejepa.files import write_json
from nodejepa.structure import DESCRIPTORS, descriptors


def main() -> None:
    graph = load_dataset("synthetic-arxiv").graph
    seconds = {}
    for name in DESCRIPTORS:
        started = time.perf_counter()
        descriptors(graph, (name,), cache=False)
        seconds[name] = round(time.perf_counter() - started, 2)
    record = {"dataset": "synthetic-arxiv", "seconds": seconds, "total": round(sum(seconds.values()), 2)}
    write_json(Path(__file__).with_name("descriptors.json"), record)
    print(json.dumps(record))


if __name__ == "__main__":
    main()
