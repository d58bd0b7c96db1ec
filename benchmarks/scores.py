"""The fair probe on many classes: fitted roughly first and side by side, against all of it exactly.

    python -m benchmarks.scores FOLDER

FOLDER holds the Debian packages of the practice graphs (72,105 nodes). One draw of 20 training and
30 validation labels per class, two scalings, seven values of C. Appends to ``benchmarks/scores.jsonl``.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from nodejepa import LinearJEPA, linear_probe, read_graph
from nodejepa.data.splits import default_splits
from nodejepa.evaluation import logistic
from nodejepa.files import versions

RECORDS = Path(__file__).with_suffix(".jsonl")


def measure(folder: Path) -> dict[str, Any]:
    """CPU and wall seconds, validation and test accuracy, of both ways in one process."""
    files = folder / "debian_edges.csv.gz", folder / "debian_nodes.csv.gz"
    loaded = read_graph(*files, labels="section", text="hash")
    assert loaded.labels is not None
    z = LinearJEPA().fit(loaded.graph).transform(loaded.graph)
    split = default_splits(loaded.labels)[:1]
    found: dict[str, Any] = {}
    costly = logistic._COSTLY
    for way, limit in (("after", costly), ("before", 2**60)):
        logistic._COSTLY = limit
        cpu, wall = time.process_time(), time.perf_counter()
        (score,) = linear_probe(z, loaded.labels, split).scores
        found[way] = {
            "cpu_seconds": round(time.process_time() - cpu, 2),
            "seconds": round(time.perf_counter() - wall, 2),
            "val_accuracy": score.val_accuracy,
            "test_accuracy": score.test_accuracy,
            "scaling": score.scaling,
            "C": score.C,
        }
    logistic._COSTLY = costly
    ratio = found["before"]["cpu_seconds"] / found["after"]["cpu_seconds"]
    about = {"graph": "debian", "nodes": len(loaded.labels), "classes": len(loaded.class_names or ())}
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        **about,
        "when": when,
        "threads": torch.get_num_threads(),
        "versions": versions(),
        "cpu_ratio": round(ratio, 2),
        **found,
    }


if __name__ == "__main__":
    record = measure(Path(sys.argv[1]))
    with RECORDS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
    print(json.dumps(record, indent=2))
