"""Run benchmarks and merge their rows into results.json.

``python -m benchmarks [name ...]``, or ``python benchmarks/run.py [name ...]``, runs all rows or those named.
To add a row, write ``benchmarks/<name>.py`` with a function ``run() -> Row`` and add its name to ``TABLE``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
from pathlib import Path

from nodejepa.files import write_json

TABLE = [
    "load_graph",
    "probe",
    "csr_product",
    "gcn_layer",
    "khop_mask",
    "nodejepa_epoch",
    "dgi_epoch",
    "graphmae_epoch",
    "bgrl_epoch",
    "cca_ssg_epoch",
    "sigreg",
]

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results.json"


def main() -> int:
    """Run what the command line names; 1 if any row failed."""
    parser = argparse.ArgumentParser(prog="benchmarks", description="Ours against the naive implementation.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"default: all of {', '.join(TABLE)}")
    names = parser.parse_args().names
    unknown = [name for name in names if name not in TABLE]
    if unknown:
        parser.error(f"no such row: {', '.join(unknown)} (there are: {', '.join(TABLE)})")
    failed = [name for name in names or TABLE if not measure(name)]
    return 1 if failed else 0


def measure(name: str) -> bool:
    """Measure one row in a fresh process, so that nothing leaks from one into the next, and store it."""
    print(f"{name}: running ...", flush=True)
    command = [sys.executable, "-c", f"from benchmarks.run import report; report({name!r})"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    if done.returncode != 0:
        print(f"{name}: failed; {RESULTS.name} keeps what it had", file=sys.stderr)
        return False
    row = json.loads(done.stdout.splitlines()[-1])
    store(row)
    times = f"ours {row['ours_s']:.3g} s, naive {row['naive_s']:.3g} s"
    print(f"{name}: {row['ratio']:.1f}x  ({times})\n    {row['note']}", flush=True)
    return True


def report(name: str) -> None:
    """In the fresh process: measure and print the row as the last line."""
    print(json.dumps(importlib.import_module(f"benchmarks.{name}").run().to_dict()))


def store(row: dict[str, str | float]) -> None:
    """Put one row into results.json; the others stay, in the order of the table."""
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    rows = {other["name"]: other for other in [*known, row]}
    write_json(RESULTS, [rows[name] for name in TABLE if name in rows])


if __name__ == "__main__":
    sys.exit(main())
