"""A small graph of people, in files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

QUICK = (
    *("--method", "nodejepa", "--preset", "paper", "--epochs", "3"),
    *("--set", "encoder.hidden=8", "--set", "predictor.hidden=8"),
    "--no-report",
)
# the smallest encoder there is, untrained: what is asked about is not what it learns
TINY = (
    *("--method", "nodejepa", "--preset", "paper", "--epochs", "0", "--no-report"),
    *("--set", "encoder.hidden=4", "--set", "predictor.hidden=4"),
)
TINY_RUN = {
    "method": "nodejepa",
    "preset": "paper",
    "settings": {"encoder.hidden": 4, "predictor.hidden": 4, "epochs": 0},
    "report": False,
}
NODES = 60


@dataclass(frozen=True)
class Files:
    folder: Path
    edges: Path
    nodes: Path

    def quick(self, *more: str) -> tuple[str, ...]:
        """A short embed-graph on both files."""
        out = () if "--out" in more or "--check" in more else ("--out", str(self.folder / "z.parquet"))
        return ("embed-graph", "--edges", str(self.edges), "--nodes", str(self.nodes), *out, *QUICK, *more)


def people() -> tuple[pa.Table, pa.Table]:
    """Edges and nodes: two teams, mostly friends among themselves; ids in no order."""
    rng = np.random.default_rng(3)
    team = np.arange(NODES) % 2
    ids = [f"user-{i}" for i in rng.permutation(NODES)]
    pairs = [(a, b) for a, b in rng.integers(0, NODES, (400, 2)) if team[a] == team[b] or rng.random() < 0.1]
    edges = pa.table({"from": [ids[a] for a, _ in pairs], "to": [ids[b] for _, b in pairs]})
    nodes = pa.table(
        {
            "user": ids,
            "age": 30 + 5 * team + rng.normal(size=NODES),
            "city": [("Rome", "Oslo", "Lima")[i] for i in rng.integers(0, 3, NODES)],
            "active": rng.random(NODES) < 0.5,
            "team": [("red", "blue")[t] for t in team],
        }
    )
    return edges, nodes


def write(table: pa.Table, path: Path) -> Path:
    """As the ending says."""
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        pyarrow.csv.write_csv(table, path)
    return path
