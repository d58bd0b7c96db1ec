"""A user's graph with labels, from files to scores: seconds until the embeddings and until the end.

    python -m benchmarks.scores FOLDER --before COMMIT [graph ...]

FOLDER has the practice graphs. COMMIT is the code to compare with, taken out of git. Both run the same
command in processes of their own, one after the other, with as many threads as the machine gives. Appends a
line per graph to ``benchmarks/scores.jsonl``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.practice import PRACTICE
from nodejepa.files import versions

RECORDS = Path(__file__).with_suffix(".jsonl")
ROOT = Path(__file__).parents[1]


def measure(folder: Path, name: str, source: Path) -> dict[str, Any]:
    """Seconds until the embeddings and until everything is there, processor seconds and accuracies."""
    edges, nodes, options = PRACTICE[name]
    asked = [word for option, value in options.items() for word in (f"--{option}", str(value))]
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "z.parquet")
        files = ["--edges", str(folder / edges), "--nodes", str(folder / nodes)]
        before, started, written = os.times(), time.perf_counter(), None
        done = subprocess.Popen(
            [sys.executable, "-m", "nodejepa", "embed-graph", *files, *asked, "--out", str(out)],
            env=os.environ | {"PYTHONPATH": str(source)},
            stdout=subprocess.DEVNULL,
        )
        while done.poll() is None:
            if written is None and out.exists():
                written = time.perf_counter() - started
            time.sleep(0.02)
        seconds, after = time.perf_counter() - started, os.times()
        if done.returncode:
            raise SystemExit(f"embed-graph ended with code {done.returncode}")
        made = json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))
    used = after.children_user + after.children_system - before.children_user - before.children_system
    probes = made["scores"]["probe"]
    return {
        "parquet_seconds": None if written is None else round(written, 1),
        "seconds": round(seconds, 1),
        "processor_seconds": round(used, 1),
        "scoring_seconds": round(made["seconds"]["scoring"], 1),
        "accuracy": {row: round(found["test_accuracy_mean"], 2) for row, found in probes.items()},
    }


def main() -> None:
    """Measure both and append the records."""
    parser = argparse.ArgumentParser(prog="benchmarks.scores", description=__doc__)
    parser.add_argument("folder", type=Path, help="of the practice graphs")
    parser.add_argument("graphs", nargs="*", help="all if none is named")
    parser.add_argument("--before", required=True, help="the commit to compare with")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as old:
        archive = subprocess.run(
            ["git", "-C", str(ROOT), "archive", asked.before, "src"], stdout=subprocess.PIPE, check=True
        )
        subprocess.run(["tar", "-x", "-C", old], input=archive.stdout, check=True)
        for name in asked.graphs or PRACTICE:
            record: dict[str, Any] = {
                "graph": name,
                "when": datetime.now(UTC).isoformat(timespec="seconds"),
                "cores": os.cpu_count(),
                "versions": versions(),
                "before_commit": asked.before,
            }
            for way, source in (("before", Path(old, "src")), ("after", ROOT / "src")):
                record[way] = measure(asked.folder, name, source)
            with RECORDS.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
            print(json.dumps(record, indent=2))


if __name__ == "__main__":
    main()
