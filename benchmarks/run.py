"""Run benchmarks and merge their rows into results.json.

``python -m benchmarks [name ...]``, or ``python benchmarks/run.py [name ...]``, runs all rows or those named.
To add a row, write ``benchmarks/<name>.py`` with a function ``run() -> Row`` and add its name to ``TABLE``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nodejepa.files import write_json

TABLE = [
    "load_graph",
    "probe",
    "csr_product",
    "gcn_layer",
    "khop_mask",
    "nodejepa_epoch",
    "patchjepa_epoch",
    "dgi_epoch",
    "graphmae_epoch",
    "bgrl_epoch",
    "cca_ssg_epoch",
    "sigreg",
    "linear_jepa",
    "workers_epoch",
]

# Rows whose time depends on how memory is handed out. The package asks PyTorch for huge pages, which speeds
# up everything in the process; who writes the naive version has them only if they know of the setting.
ALLOCATING = {
    "gcn_layer",
    "nodejepa_epoch",
    "patchjepa_epoch",
    "dgi_epoch",
    "graphmae_epoch",
    "bgrl_epoch",
    "cca_ssg_epoch",
}
HUGE_PAGES = "THP_MEM_ALLOC_ENABLE"

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
    """Measure one row and store it."""
    print(f"{name}: running ...", flush=True)
    row = _in_a_process(name)
    if row is not None and name in ALLOCATING:
        row = _against_plain_pytorch(row, _in_a_process(name, {HUGE_PAGES: "0"}))
    if row is None:
        print(f"{name}: failed; {RESULTS.name} keeps what it had", file=sys.stderr)
        return False
    store(row)
    times = f"ours {row['ours_s']:.3g} s, naive {row['naive_s']:.3g} s"
    print(f"{name}: {row['ratio']:.1f}x  ({times})\n    {row['note']}", flush=True)
    return True


def _in_a_process(name: str, environment: Mapping[str, str] | None = None) -> dict[str, Any] | None:
    """The row from a fresh process, so that nothing leaks from one into the next; nothing if it failed."""
    command = [sys.executable, "-c", f"from benchmarks.run import report; report({name!r})"]
    env = {**os.environ, **(environment or {})}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, check=False, env=env)
    row: dict[str, Any] | None = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None
    return row


def _against_plain_pytorch(row: dict[str, Any], plain: dict[str, Any] | None) -> dict[str, Any] | None:
    """Ours as the package comes, the naive one as PyTorch comes; the note tells what huge pages give it."""
    if plain is None:
        return None
    note = (
        f"{row['note']}; the naive one in huge pages too, as our package sets PyTorch: "
        f"{row['naive_s']:.1f} s, {row['ratio']:.1f}x"
    )
    ratio = round(plain["naive_s"] / row["ours_s"], 2)
    return {**row, "ratio": ratio, "naive_s": plain["naive_s"], "note": note}


def report(name: str) -> None:
    """In the fresh process: measure and print the row as the last line."""
    print(json.dumps(importlib.import_module(f"benchmarks.{name}").run().to_dict()))


def store(row: dict[str, Any]) -> None:
    """Put one row into results.json; the others stay, in the order of the table."""
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    rows = {other["name"]: other for other in [*known, row]}
    write_json(RESULTS, [rows[name] for name in TABLE if name in rows])


if __name__ == "__main__":
    sys.exit(main())
