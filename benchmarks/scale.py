"""How time, memory and disk grow with the graph: prepare, LinearJEPA and embeddings, all on disk.

``python -m benchmarks.scale --folder DIR [--sizes 0.1 0.3 1 3 10]`` (millions of nodes) makes a graph with
about 20 stored edges a node and 128 features in DIR, runs the three commands of docs/scale.md on it, each in
a process of its own, and appends one record a size to scale.jsonl. No record is ever removed; a size that has
one with the same settings, threads and workers is not measured again. Then it draws scale.svg from the newest
of each size. 10 million nodes take about 40 GB in DIR. ``--workers 2`` lets processes share fit and embed.
With ``--train`` it runs prepare and two epochs of NodeJEPA in parts instead: scale_train.jsonl,
scale_train.svg. Seconds mean something on a machine that does nothing else; ``processor_seconds`` beside them
hardly depend on that.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nodejepa import LinearJEPA
from nodejepa.config import to_dict

HERE = Path(__file__).resolve().parent
COLUMNS, EDGES_A_NODE = 128, 10
NODES_A_PART, PARTS_A_STEP = 10_000, 5
_DESCRIPTORS = "pagerank,degree,clustering"  # spectral coordinates need the graph in memory
_COMMUNITY = 1000


def make_files(folder: Path, nodes: int) -> tuple[Path, Path]:
    """Edges mostly inside of communities that are scattered over the files; features say the community."""
    rng = np.random.default_rng(nodes)
    edges, table = folder / "edges.parquet", folder / "nodes.parquet"
    groups = max(1, nodes // _COMMUNITY)
    centres = rng.normal(size=(min(groups, 4096), COLUMNS)).astype(np.float32)
    kinds = pa.schema([("source", pa.int64()), ("target", pa.int64())])
    with pq.ParquetWriter(edges, kinds) as writer:
        for start in range(0, nodes * EDGES_A_NODE, 1 << 20):
            size = min(1 << 20, nodes * EDGES_A_NODE - start)
            source = rng.integers(0, nodes, size)
            near = source % groups + groups * rng.integers(0, nodes // groups, size)
            target = np.where(rng.random(size) < 0.8, near, rng.integers(0, nodes, size))
            writer.write_table(pa.table([_names(source), _names(target)], schema=kinds))
    kinds = pa.schema([("id", pa.int64()), *((f"x{j}", pa.float32()) for j in range(COLUMNS))])
    with pq.ParquetWriter(table, kinds, compression="none", use_dictionary=False) as writer:
        for start in range(0, nodes, 1 << 16):
            place = np.arange(start, min(start + (1 << 16), nodes))
            x = rng.standard_normal((len(place), COLUMNS), dtype=np.float32)
            x += centres[place % groups % len(centres)]
            writer.write_table(pa.table([_names(place), *np.asfortranarray(x).T], schema=kinds))
    return edges, table


def _names(place: np.ndarray) -> np.ndarray:
    """Ids that are no positions."""
    return place * 7919 + 10**9


class Watched:
    """A command in a process of its own, and what it took at its peak."""

    def __init__(self, command: list[str], folder: Path, threads: int) -> None:
        self.anonymous = self.disk = 0
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "NODEJEPA_CACHE": str(folder / "cache")}
        started, before = time.perf_counter(), os.times()
        process = subprocess.Popen([sys.executable, "-m", "nodejepa", *command], env=environment)
        watcher = threading.Thread(target=self._watch, args=(process, folder))
        watcher.start()
        code = process.wait()
        self.seconds, after = time.perf_counter() - started, os.times()
        self.processor = after.children_user + after.children_system
        self.processor -= before.children_user + before.children_system
        watcher.join()
        if code:
            raise SystemExit(f"{' '.join(command)} ended with {code}")

    def _watch(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        while process.poll() is None:
            anonymous, gone = 0, 0
            for proc in _processes(process.pid):
                try:
                    status = (proc / "status").read_text()
                    maps = (proc / "maps").read_text()
                except OSError:
                    continue
                held = [line.split()[1] for line in status.splitlines() if line.startswith("RssAnon")]
                anonymous += 1024 * int(held[0]) if held else 0
                gone += sum(_length(line) for line in maps.splitlines() if line.endswith("(deleted)"))
            self.anonymous = max(self.anonymous, anonymous)
            self.disk = max(self.disk, gone + _size(folder))
            time.sleep(0.1)

    def record(self) -> dict[str, float]:
        """For the file of records."""
        return {
            "seconds": round(self.seconds, 1),
            "processor_seconds": round(self.processor, 1),
            "peak_anonymous_gib": round(self.anonymous / 2**30, 3),
            "peak_disk_gb": round(self.disk / 1e9, 2),
        }


def _processes(pid: int) -> list[Path]:
    """A process and all that it has started."""
    proc = Path(f"/proc/{pid}")
    try:
        children = (proc / "task" / str(pid) / "children").read_text().split()
    except OSError:
        return []
    return [proc, *(one for child in children for one in _processes(int(child)))]


def _length(line: str) -> int:
    start, end = line.split()[0].split("-")
    return int(end, 16) - int(start, 16)


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_blocks * 512
        except OSError:
            continue
    return total


def in_parts(nodes: int) -> list[str]:
    """NodeJEPA's paper preset, but for what a graph on disk needs."""
    parts = max(nodes // (NODES_A_PART * PARTS_A_STEP), 1) * PARTS_A_STEP
    wanted = {"epochs": 2, "parts": parts, "parts_per_step": PARTS_A_STEP, "descriptors": _DESCRIPTORS}
    settings = [part for name, value in wanted.items() for part in ("--set", f"{name}={value}")]
    return ["--method", "nodejepa", "--preset", "paper", *settings]


def measure(nodes: int, folder: Path, threads: int, train: bool, workers: int = 1) -> dict[str, Any]:
    """One record."""
    work = folder / f"scale-{nodes}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        edges, table = make_files(work, nodes)
        store, run, out = (str(work / name) for name in ("graph.store", "run", "z.parquet"))
        commands = {
            "prepare": ["prepare", "--edges", str(edges), "--nodes", str(table), "--out", store],
            "fit": ["pretrain", store, "--method", "linear-jepa", "--out", run],
            "embed": ["embed", run, store, "--out", out],
        }
        if workers > 1:
            for name in ("fit", "embed"):
                commands[name] += ["--workers", str(workers)]
        if train:
            commands = {
                "prepare": commands["prepare"],
                "train": ["pretrain", store, *in_parts(nodes), "--out", run],
            }
        phases = {name: Watched(command, work, threads).record() for name, command in commands.items()}
        stored = json.loads((Path(store) / "manifest.json").read_text())["entries"]
        if not train:
            rows = pq.ParquetFile(out).metadata.num_rows
            assert rows == nodes, f"{rows} rows of embeddings for {nodes} nodes"
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return {
        "nodes": nodes,
        "stored_edges": stored,
        "columns": COLUMNS,
        "settings": settings_of(train),
        "threads": threads,
        "workers": workers,
        "phases": phases,
        "seconds": round(sum(phase["seconds"] for phase in phases.values()), 1),
        "peak_anonymous_gib": max(phase["peak_anonymous_gib"] for phase in phases.values()),
        "peak_disk_gb": max(phase["peak_disk_gb"] for phase in phases.values()),
        "load_average": round(os.getloadavg()[1], 1),
        "versions": {name: importlib.metadata.version(name) for name in ("nodejepa", "torch", "pyarrow")},
    }


def settings_of(train: bool) -> dict[str, Any] | None:
    """Of what is fitted: records of another recipe are no part of the same line."""
    return None if train else to_dict(LinearJEPA().config)


def read_records(path: Path) -> list[dict[str, Any]]:
    """All records, smallest graph first."""
    if not path.exists():
        return []
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return sorted(found, key=lambda record: int(record["nodes"]))


def key_of(record: dict[str, Any]) -> tuple[Any, ...]:
    """What two records must differ in to be two measurements."""
    settings = json.dumps(record.get("settings"), sort_keys=True)
    return record["nodes"], settings, record.get("threads"), record.get("workers", 1)


def shown(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The newest record of each size that one process made."""
    return [*{record["nodes"]: record for record in records if record.get("workers", 1) == 1}.values()]


def main() -> None:
    """Measure what is missing and draw."""
    parser = argparse.ArgumentParser(prog="benchmarks.scale", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where the graphs are made and removed")
    parser.add_argument("--sizes", type=float, nargs="+", default=[0.1, 0.3, 1, 3, 10], help="million nodes")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--train", action="store_true", help="NodeJEPA in parts instead of LinearJEPA")
    parser.add_argument("--workers", type=int, default=1, help="processes that share fit and embed")
    given = parser.parse_args()
    records = HERE / ("scale_train.jsonl" if given.train else "scale.jsonl")
    for millions in given.sizes:
        nodes = round(millions * 1e6)
        asked = {"nodes": nodes, "settings": settings_of(given.train)}
        asked |= {"threads": given.threads, "workers": given.workers}
        if key_of(asked) in map(key_of, read_records(records)):
            continue
        record = measure(nodes, given.folder, given.threads, given.train, given.workers)
        with records.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        print(json.dumps(record), flush=True)
    from benchmarks.scale_figure import draw

    draw(shown(read_records(records)), records.with_suffix(".svg"))


if __name__ == "__main__":
    main()
