"""How time, memory and disk grow with a graph on disk: prepare, LinearJEPA, embeddings; one worker or more.

``python -m benchmarks.scale --folder DIR CASE [--nodes 0.1 0.3 1 3 10]`` (millions of nodes) makes graphs in
DIR, runs the commands of docs/scale.md on them, each in a process of its own, and appends a record a size to
scale.jsonl. No record is ever removed; what has one with the same settings, threads and workers is measured
again with ``--again`` only. Graphs have about 20 stored edges a node and 128 features. The cases:

sizes    prepare, fit, embed by one process; the figure scale.svg is drawn from the newest of each size
workers  fit and embed by one worker and by ``--workers`` (2), one thread each: the same embeddings to 1e-5
killed   a worker is killed while columns are embedded, the first and then the last: the bits of an
         undisturbed run
agents   two torchrun agents on loopback, as on two machines, twice: the same bits; those of ``--workers 2``
         to 1e-5
ray      the model by Ray Train with ``--workers``: that of ``--workers 2`` to 1e-5
text     text ids, 32 columns and labels, 10 listed edges a node: prepare, then embed-graph within
         ``--memory-limit 2`` with scores and report, and when the embeddings are on disk
train    prepare and two epochs of NodeJEPA in parts: scale_train.jsonl, scale_train.svg

A record has, for each command, wall and processor seconds, peak of memory (anonymous, and shared by workers,
counted once) and of disk, and bytes that went over the loopback device; and the load average before it began.
Seconds mean something on a machine that does nothing else; processor seconds hardly depend on that.
10 million nodes take about 40 GB in DIR.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.metadata
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from nodejepa import LinearJEPA
from nodejepa.config import to_dict
from nodejepa.training.run import load_tensors

HERE = Path(__file__).resolve().parent
COLUMNS, EDGES_A_NODE = 128, 10
TEXT_COLUMNS, CLASSES = 32, 20
_ROUNDING = 1e-5
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


def make_text_files(folder: Path, nodes: int) -> tuple[Path, Path]:
    """The same with ids that are text, fewer columns, and a class that the features tell in part."""
    rng = np.random.default_rng(nodes)
    edges, table = folder / "edges.parquet", folder / "nodes.parquet"
    names = pa.array([f"user-{i * 2654435761 % (1 << 32):08x}" for i in range(nodes)])
    kind = rng.integers(0, CLASSES, nodes)
    alike = [np.flatnonzero(kind == code) for code in range(CLASSES)]
    kinds = pa.schema([("source", pa.string()), ("target", pa.string())])
    with pq.ParquetWriter(edges, kinds) as writer:
        for start in range(0, nodes * EDGES_A_NODE, 1 << 20):
            size = min(1 << 20, nodes * EDGES_A_NODE - start)
            source, target = rng.integers(0, nodes, (2, size))
            near = rng.random(size) < 0.5
            for code, members in enumerate(alike):
                these = near & (kind[source] == code)
                target[these] = members[rng.integers(0, len(members), int(these.sum()))]
            ends = [names.take(pa.array(source)), names.take(pa.array(target))]
            writer.write_table(pa.table(ends, schema=kinds))
    x = rng.standard_normal((nodes, TEXT_COLUMNS), dtype=np.float32)
    x += rng.normal(scale=0.5, size=(CLASSES, TEXT_COLUMNS)).astype(np.float32)[kind]
    labels = pa.array([f"kind {code}" for code in range(CLASSES)]).take(pa.array(kind))
    columns = {"id": names, "label": labels, **{f"x{j}": column for j, column in enumerate(x.T)}}
    pq.write_table(pa.table(columns), table)
    return edges, table


def _names(place: np.ndarray) -> np.ndarray:
    """Ids that are no positions."""
    return place * 7919 + 10**9


class Watched:
    """Commands side by side, each in a process of its own, and what they took together.

    Args:
        commands: arguments of ``python``.
        folder: whose size is the disk that they take.
        threads: of each process.
        wanted: a file; ``appeared`` is after how many seconds it was there.
        meanwhile: called ten times a second with the first process, to disturb it.
    """

    def __init__(
        self,
        commands: list[list[str]],
        folder: Path,
        threads: int,
        wanted: Path | None = None,
        meanwhile: Callable[[psutil.Process], None] | None = None,
    ) -> None:
        self.anonymous = self.disk = 0
        self.appeared: float | None = None
        self._wanted, self._meanwhile = wanted, meanwhile
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        environment |= {"OMP_NUM_THREADS": str(threads), "NODEJEPA_CACHE": str(folder / "cache")}
        started, before, moved = time.perf_counter(), os.times(), _moved()
        processes = [subprocess.Popen([sys.executable, *command], env=environment) for command in commands]
        watcher = threading.Thread(target=self._watch, args=(processes, folder, started))
        watcher.start()
        codes = [process.wait() for process in processes]
        self.seconds, after = time.perf_counter() - started, os.times()
        self.processor = after.children_user + after.children_system
        self.processor -= before.children_user + before.children_system
        self.moved = _moved() - moved
        watcher.join()
        if any(codes):
            raise SystemExit(f"{' '.join(commands[0])} ended with {codes}")

    def _watch(self, processes: list[subprocess.Popen[bytes]], folder: Path, started: float) -> None:
        while any(process.poll() is None for process in processes):
            anonymous, gone, shared = 0, 0, 0
            for proc in [one for process in processes for one in _processes(process.pid)]:
                try:
                    status = (proc / "status").read_text()
                    maps = (proc / "maps").read_text()
                except OSError:
                    continue
                held = dict(line.split(":", 1) for line in status.splitlines() if line.startswith("Rss"))
                sizes = {name: 1024 * int(size.split()[0]) for name, size in held.items()}
                anonymous += sizes.get("RssAnon", 0)
                shared = max(shared, sizes.get("RssShmem", 0))  # by all, once
                gone += sum(_length(line) for line in maps.splitlines() if _is_gone(line))
            self.anonymous = max(self.anonymous, anonymous + shared)
            self.disk = max(self.disk, gone + _size(folder))
            if self._wanted is not None and self.appeared is None and self._wanted.exists():
                self.appeared = round(time.perf_counter() - started, 1)
            if self._meanwhile is not None:
                with contextlib.suppress(psutil.Error):
                    self._meanwhile(psutil.Process(processes[0].pid))
            time.sleep(0.1)

    def record(self) -> dict[str, float]:
        """For the file of records."""
        found = {
            "seconds": round(self.seconds, 1),
            "processor_seconds": round(self.processor, 1),
            "peak_anonymous_gib": round(self.anonymous / 2**30, 3),
            "peak_disk_gb": round(self.disk / 1e9, 2),
            "moved_gb": round(self.moved / 1e9, 3),
        }
        return found if self.appeared is None else found | {"written_after": self.appeared}


def _moved() -> int:
    """Bytes that went over the loopback device since the machine was started."""
    counters = psutil.net_io_counters(pernic=True)
    return int(counters["lo"].bytes_recv) if "lo" in counters else 0


def _processes(pid: int) -> list[Path]:
    """A process and all that it has started."""
    proc = Path(f"/proc/{pid}")
    try:
        children = (proc / "task" / str(pid) / "children").read_text().split()
    except OSError:
        return []
    return [proc, *(one for child in children for one in _processes(int(child)))]


def _is_gone(line: str) -> bool:
    """Whether a map is of a file on disk that has no name any more; shared memory is no disk."""
    return line.endswith("(deleted)") and "/dev/shm/" not in line and "/memfd:" not in line


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


# ---------------------------------------------------------------- the cases


@dataclass(frozen=True)
class Bench:
    """A size of a case, the folder ``work`` for its files, and what was found there so far."""

    nodes: int
    threads: int
    workers: int
    work: Path
    phases: dict[str, dict[str, float]]

    def run(self, name: str, *commands: list[str], **watched: Any) -> None:
        """Run commands of ``python -m`` side by side, a phase of the record."""
        threads = self.threads if self.workers == 1 else 1
        found = Watched([["-m", *command] for command in commands], self.work, threads, **watched)
        self.phases[name] = found.record()

    def path(self, name: str) -> str:
        """A file or folder among its files."""
        return str(self.work / name)

    def prepare(self) -> str:
        """The store of a new graph."""
        edges, table = map(str, make_files(self.work, self.nodes))
        store = self.path("graph.store")
        self.run("prepare", ["nodejepa", "prepare", "--edges", edges, "--nodes", table, "--out", store])
        return store

    def embedded(self, name: str, store: str, workers: int, **watched: Any) -> Path:
        """Fit and embed by one command; where the embeddings are."""
        out = self.work / name / "z.parquet"
        self.run(name, [*_embed_graph(store, out), "--workers", str(workers)], **watched)
        return out


def _embed_graph(store: str, out: Path) -> list[str]:
    return [
        *("nodejepa", "embed-graph", "--edges", store, "--out", str(out)),
        *("--no-score", "--no-report"),
    ]


def sizes(bench: Bench) -> dict[str, Any]:
    """One process, or several that share."""
    store, run, out = bench.prepare(), bench.path("run"), bench.path("z.parquet")
    shared = ["--workers", str(bench.workers)] if bench.workers > 1 else []
    bench.run("fit", ["nodejepa", "pretrain", store, "--method", "linear-jepa", "--out", run, *shared])
    bench.run("embed", ["nodejepa", "embed", run, store, "--out", out, *shared])
    rows = pq.ParquetFile(out).metadata.num_rows
    assert rows == bench.nodes, f"{rows} rows of embeddings for {bench.nodes} nodes"
    return {}


def workers(bench: Bench) -> dict[str, Any]:
    """One worker, then several: how much faster, and whether they find the same."""
    store = bench.prepare()
    names = {"alone": 1, "shared": bench.workers}
    files = {name: bench.embedded(name, store, count) for name, count in names.items()}
    inside = {name: _inside(file) for name, file in files.items()}
    alone, shared = (sum(inside[name].values()) for name in names)
    difference = largest_difference(*files.values())
    assert difference <= _ROUNDING, f"embeddings differ by {difference}"
    return {
        "inside": inside,  # seconds of the first process, without starting it
        "speedup": round(alone / shared, 2),
        "speedup_of_commands": round(bench.phases["alone"]["seconds"] / bench.phases["shared"]["seconds"], 2),
        "largest_difference": difference,
    }


def _inside(file: Path) -> dict[str, float]:
    """Seconds of the steps that made a file of embeddings, without starting processes."""
    seconds = json.loads(file.with_suffix(".json").read_text())["seconds"]
    return {step: seconds[step] for step in ("training", "embedding", "writing")}


def largest_difference(first: Path, second: Path) -> float:
    """Between numbers of two files of embeddings, whose ids are the same."""
    largest = 0.0
    one, other = (pq.ParquetFile(path).iter_batches(1 << 16) for path in (first, second))
    for a, b in zip(one, other, strict=True):
        assert a.column("id").equals(b.column("id"))
        for name in a.schema.names[1:]:
            largest = max(largest, float(np.abs(a[name].to_numpy() - b[name].to_numpy()).max()))
    return largest


def killed(bench: Bench) -> dict[str, Any]:
    """A worker that is killed is started again with the others, and they go on with what is on disk."""
    store, run = bench.prepare(), bench.path("run")
    bench.run("fit", ["nodejepa", "pretrain", store, "--method", "linear-jepa", "--out", run])
    limit = f"{bench.workers * (0.6 + 0.4 * bench.nodes / 1e6):.2f}"  # of gigabytes: columns come in groups
    digests = {}
    for victim in (None, 0, bench.workers - 1):
        name = "undisturbed" if victim is None else f"killed-{victim}"
        out = bench.work / name / "z.parquet"
        lost = _Killer(out.parent, victim)
        command = ["nodejepa", "embed", run, store, "--out", str(out), "--memory-limit", limit]
        bench.run(name, [*command, "--workers", str(bench.workers)], meanwhile=lost)
        assert (lost.killed is None) == (victim is None), "no worker was killed: it was too fast"
        digests[name] = _digest(out)
    assert len(set(digests.values())) == 1, f"other bits: {digests}"
    return {"same_bits": True, "memory_limit_gb": float(limit)}


class _Killer:
    """Kills the worker with a rank once some columns are on disk."""

    def __init__(self, folder: Path, rank: int | None) -> None:
        self.folder, self.rank = folder, rank
        self.killed: int | None = None

    def __call__(self, parent: psutil.Process) -> None:
        begun = any(self.folder.glob(".columns-*/*.f32"))
        if self.rank is None or self.killed is not None or not begun:
            return
        for child in parent.children(recursive=True):
            if "nodejepa.worker" in child.cmdline() and child.environ().get("RANK") == str(self.rank):
                child.kill()
                self.killed = child.pid
                return


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def agents(bench: Bench) -> dict[str, Any]:
    """Two agents of torchrun with a worker each, as two machines have them."""
    assert bench.workers == 2, "there are two agents with a worker each"
    store = bench.prepare()
    wanted = bench.embedded("shared", store, 2)
    outs = [bench.work / name / "z.parquet" for name in ("agents", "again")]
    for out in outs:
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            port = server.getsockname()[1]
        command = ["torch.distributed.run", "--nnodes=2", "--nproc-per-node=1", "--max-restarts=3"]
        command += ["--rdzv-backend=c10d", "--rdzv-id=mine", "--local-addr=127.0.0.1"]
        command += [f"--rdzv-endpoint=127.0.0.1:{port}", "-m", "nodejepa.worker"]
        command += _embed_graph(store, out)[1:]
        bench.run(out.parent.name, command, command)
    assert len(set(map(_digest, outs))) == 1, "other bits the second time"
    difference = largest_difference(wanted, outs[0])
    assert difference <= _ROUNDING, f"embeddings differ by {difference}"
    inside = {out.parent.name: _inside(out) for out in outs}
    return {"inside": inside, "same_bits": True, "largest_difference": difference}


def ray(bench: Bench) -> dict[str, Any]:
    """Started by the documented command alone; RAY_... of the environment are taken away."""
    store, models = bench.prepare(), []
    for name, more in (("shared", []), ("ray", ["--ray"])):
        run = bench.work / name
        command = ["nodejepa", "pretrain", store, "--method", "linear-jepa", "--out", str(run)]
        bench.run(name, [*command, "--workers", str(bench.workers), *more])
        models.append(load_tensors(run / "model.safetensors")[0])
    one, other = models
    difference = max(float((one[name] - other[name]).abs().max()) for name in one)
    assert difference <= _ROUNDING, f"models differ by {difference}"
    return {"largest_difference": difference, "ray": importlib.metadata.version("ray")}


def text(bench: Bench) -> dict[str, Any]:
    """What a user has: text ids and labels; how long until the embeddings are there, and until all is."""
    edges, table = map(str, make_text_files(bench.work, bench.nodes))
    store, out = bench.path("graph.store"), bench.work / "z.parquet"
    bench.run(
        "prepare",
        ["nodejepa", "prepare", "--edges", edges, "--nodes", table, "--labels", "label", "--out", store],
    )
    command = ["nodejepa", "embed-graph", "--edges", store, "--out", str(out), "--memory-limit", "2"]
    bench.run("embed-graph", command, wanted=out)
    manifest = json.loads(out.with_suffix(".json").read_text())
    assert manifest["scores"], f"no scores: {manifest['warnings']}"
    means = {name: round(row["test_accuracy"], 2) for name, row in manifest["scores"]["means"].items()}
    return {"inside": manifest["seconds"], "accuracies": means, "memory_limit_gb": 2}


def train(bench: Bench) -> dict[str, Any]:
    """NodeJEPA's paper preset, but for what a graph on disk needs."""
    store = bench.prepare()
    command = ["nodejepa", "pretrain", store, *in_parts(bench.nodes), "--out", bench.path("run")]
    bench.run("train", command)
    return {}


def in_parts(nodes: int) -> list[str]:
    """Settings of NodeJEPA for a graph of so many nodes."""
    parts = max(nodes // (NODES_A_PART * PARTS_A_STEP), 1) * PARTS_A_STEP
    wanted = {"epochs": 2, "parts": parts, "parts_per_step": PARTS_A_STEP, "descriptors": _DESCRIPTORS}
    settings = [part for name, value in wanted.items() for part in ("--set", f"{name}={value}")]
    return ["--method", "nodejepa", "--preset", "paper", *settings]


CASES = {case.__name__: case for case in (sizes, workers, killed, agents, ray, text, train)}
SEVERAL = ("workers", "killed", "agents", "ray")  # that are about more than one worker
USUAL = {"sizes": [0.1, 0.3, 1, 3, 10], "text": [2], "train": [0.1, 1, 10]}  # million nodes; else 1


# ---------------------------------------------------------------- records


def measure(asked: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The record of a case: what was asked for, and what was found."""
    nodes, load = int(asked["nodes"]), os.getloadavg()[0]
    work = folder / f"scale-{nodes}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    bench = Bench(nodes, asked["threads"], asked["workers"], work, {})
    try:
        more = CASES[asked["case"]](bench)
        stored = json.loads((work / "graph.store" / "manifest.json").read_text())
    finally:
        shutil.rmtree(work, ignore_errors=True)
    phases = bench.phases
    return asked | {
        "stored_edges": stored["entries"],
        "columns": stored["columns"],
        "phases": phases,
        **more,
        "seconds": round(sum(phase["seconds"] for phase in phases.values()), 1),
        "peak_anonymous_gib": max(phase["peak_anonymous_gib"] for phase in phases.values()),
        "peak_disk_gb": max(phase["peak_disk_gb"] for phase in phases.values()),
        "load_average": round(load, 1),
        "versions": {name: importlib.metadata.version(name) for name in ("nodejepa", "torch", "pyarrow")},
    }


def settings_of(case: str) -> dict[str, Any] | None:
    """Of what is fitted: records of another recipe are no part of the same line."""
    return None if case == "train" else to_dict(LinearJEPA().config)


def read_records(path: Path) -> list[dict[str, Any]]:
    """All records, smallest graph first; those of one size as they were made."""
    if not path.exists():
        return []
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return sorted(found, key=lambda record: int(record["nodes"]))


def case_of(record: dict[str, Any]) -> str:
    """Of older records as well."""
    return str(record.get("case") or ("train" if "train" in record.get("phases", {}) else "sizes"))


def key_of(record: dict[str, Any]) -> tuple[Any, ...]:
    """What two records must differ in to be two measurements."""
    settings = json.dumps(record.get("settings"), sort_keys=True)
    return case_of(record), record["nodes"], settings, record.get("threads"), record.get("workers", 1)


def shown(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The newest record of each size that one process made."""
    single = [r for r in records if case_of(r) in ("sizes", "train") and r.get("workers", 1) == 1]
    return [*{record["nodes"]: record for record in single}.values()]


def main() -> None:
    """Measure what is missing and draw."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.scale", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", choices=CASES, nargs="?", default="sizes")
    parser.add_argument("--folder", type=Path, required=True, help="where the graphs are made and removed")
    parser.add_argument("--nodes", type=float, nargs="+", help="millions of them")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of one process")
    parser.add_argument("--workers", type=int, help="processes of one thread that share fit and embed")
    parser.add_argument("--again", action="store_true", help="also what has a record")
    given = parser.parse_args()
    records = HERE / ("scale_train.jsonl" if given.case == "train" else "scale.jsonl")
    count = given.workers or (2 if given.case in SEVERAL else 1)
    same = {"case": given.case, "settings": settings_of(given.case)}
    same |= {"threads": 1 if count > 1 else given.threads, "workers": count}
    for millions in given.nodes or USUAL.get(given.case, [1]):
        asked = {"nodes": round(millions * 1e6), **same}
        if key_of(asked) in map(key_of, read_records(records)) and not given.again:
            continue
        record = measure(asked, given.folder)
        with records.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        print(json.dumps(record), flush=True)
    from benchmarks.scale_figure import draw

    made = read_records(records)
    draw(shown(made), records.with_suffix(".svg"), [r for r in made if case_of(r) == "workers"][-1:])


if __name__ == "__main__":
    main()
