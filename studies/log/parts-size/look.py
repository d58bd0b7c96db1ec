"""How many parts, how many of them a step: ``python studies/log/parts-size/look.py GRAPH SEED VARIANT ...``.

Trains NodeJEPA (preset paper) on a development graph, as many steps as the full batch has, probes it on ten
splits and appends a line to this folder's records. Without arguments: the README's table.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

from nodejepa.data import load_dataset
from nodejepa.diagnostics import diagnose
from nodejepa.evaluation import linear_probe
from nodejepa.files import source_hash
from nodejepa.methods import make_method

RECORDS = Path(__file__).parent / "records.jsonl"
SPLITS = range(120, 130)
STEPS, CURRICULUM = 300, 50  # of the full batch


def settings(variant):
    """``full``, or ``metis-PARTS-A_STEP`` and ``random-PARTS-A_STEP``."""
    if variant == "full":
        return {}
    kind, parts, a_step = variant.split("-")
    steps = int(parts) // int(a_step)
    return {
        "training.parts": int(parts),
        "training.parts_per_step": int(a_step),
        "training.partition": kind,
        "training.epochs": STEPS // steps,
        "masking.curriculum_epochs": CURRICULUM // steps,
    }


def look(graph, seed, variant):
    """One training, probed."""
    data, begun = load_dataset(graph), time.process_time()
    estimator = make_method("nodejepa", preset="paper", dataset=graph, seed=seed, settings=settings(variant))
    z = estimator.fit(data.graph).transform(data.graph)
    record = {"graph": graph, "seed": seed, "variant": variant, "settings": settings(variant)}
    record["processor_seconds"] = round(time.process_time() - begun, 1)
    scores = linear_probe(z, data.labels, [data.split("20-30", seed=s) for s in SPLITS]).scores
    record["fair20"] = [round(score.test_accuracy, 3) for score in scores]
    record["effective_rank"] = round(diagnose(z).effective_rank, 1)
    record["source_hash"] = source_hash()
    with RECORDS.open("a") as file:
        file.write(json.dumps(record) + "\n")
    print(
        graph,
        seed,
        variant,
        round(float(np.mean(record["fair20"])), 2),
        record["processor_seconds"],
        flush=True,
    )


def table():
    """Mean over splits and training seeds of every graph and variant."""
    found = {}
    for line in RECORDS.read_text().splitlines():
        record = json.loads(line)
        found.setdefault(record["variant"], {}).setdefault(record["graph"], []).append(
            np.mean(record["fair20"])
        )
    graphs = sorted({graph for row in found.values() for graph in row})
    print("| variant |", " | ".join(graphs), "|\n|---|" + "---|" * len(graphs))
    for variant, row in found.items():
        cells = (
            f"{np.mean(row[g]):.2f} ({', '.join(f'{s:.1f}' for s in row[g])})" if g in row else "-"
            for g in graphs
        )
        print(f"| {variant} |", " | ".join(cells), "|")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        table()
    else:
        for name in sys.argv[3:]:
            look(sys.argv[1], int(sys.argv[2]), name)
