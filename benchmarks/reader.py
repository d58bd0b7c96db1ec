"""Which engine numbers ids and sorts edges: our own table over Arrow batches, DuckDB, or Arrow's Acero.

``python -m benchmarks.reader --folder DIR [--only NAME ...]`` makes 20 million edges between 2 million nodes
with text ids in DIR and runs each engine on them in a process of its own, with one thread. It appends a line
an engine to reader.jsonl: processor seconds, and the largest memory of the process. All of them end in the
same ``indptr`` and ``indices``. DuckDB (``pip install duckdb``) is no dependency of the package:

own         what ``nodejepa prepare`` does: batches of Arrow, one hash table of ours, buckets of rows
duckdb      DuckDB reads the parquet itself: group by, two joins, distinct and order by
duckdb-rows DuckDB joins batches that we have read and checked, as CSV with row numbers in errors needs it
acero       as duckdb, by Arrow's own engine; it knows no limit and sorts in memory
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import multiprocessing
import resource
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.dataset as ds
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
NODES, EDGES, COLUMNS = 2_000_000, 20_000_000, 8
_LIMIT = "1500MB"  # for DuckDB's own buffers, of 2 GB in all
_NUMBERED = """
create table numbered as select id, (row_number() over (order by p) - 1)::integer as code from (
  select id, min(p) as p from (
    select id, p from {nodes} union all select source, 1000000000000 + p from {sources}
    union all select target, 2000000000000 + p from {targets}) group by id)
"""
_JOINED = """
select a.code::bigint as s, b.code::bigint as t from {edges} as e
join numbered a on e.source = a.id join numbered b on e.target = b.id where a.code <> b.code
"""
_SORTED = "select distinct k from (select (s<<31)|t as k from e union all select (t<<31)|s from e) order by k"


def make_files(folder: Path) -> None:
    """Edges that prefer some sources, and a table of the nodes in another order."""
    rng = np.random.default_rng(0)
    names = pa.array([f"user-{i * 2654435761 % (1 << 32):08x}" for i in range(NODES)])
    kinds = pa.schema([("source", pa.string()), ("target", pa.string())])
    with pq.ParquetWriter(folder / "edges.parquet", kinds) as writer:
        for _ in range(20):
            source = (rng.random(EDGES // 20) ** 2 * NODES).astype(np.int64)
            target = rng.integers(0, NODES, EDGES // 20)
            ends = [names.take(pa.array(source)), names.take(pa.array(target))]
            writer.write_table(pa.table(ends, schema=kinds))
    x = rng.standard_normal((NODES, COLUMNS)).astype(np.float32)
    columns = {"id": names.take(pa.array(rng.permutation(NODES))), **{f"f{j}": c for j, c in enumerate(x.T)}}
    pq.write_table(pa.table(columns), folder / "nodes.parquet")


def own(folder: Path) -> Path:
    """The store of the package, whole: with features and checksums."""
    from nodejepa.tables.prepare import prepare_store

    out = folder / "own.store"
    shutil.rmtree(out, ignore_errors=True)
    prepare_store(folder / "edges.parquet", folder / "nodes.parquet", out=out)
    return out


def duckdb(folder: Path) -> Path:
    """DuckDB reads the files."""
    edges = (
        f"(select *, file_row_number as p from read_parquet('{folder}/edges.parquet', file_row_number=true))"
    )
    nodes = (
        f"(select *, file_row_number as p from read_parquet('{folder}/nodes.parquet', file_row_number=true))"
    )
    connection = _connected(folder)
    connection.execute(_NUMBERED.format(nodes=nodes, sources=edges, targets=edges))
    connection.execute("create table e as " + _JOINED.format(edges=edges))
    return _written(connection, folder / "duckdb")


def duckdb_rows(folder: Path) -> Path:
    """DuckDB joins what our reader hands over."""
    connection = _connected(folder)
    edges = folder / "edges.parquet"
    for name, path, columns in (
        ("nodes", folder / "nodes.parquet", ["id"]),
        ("sources", edges, ["source"]),
        ("targets", edges, ["target"]),
    ):
        connection.register(name, _rows(path, columns))
    connection.execute(_NUMBERED.format(nodes="nodes", sources="sources", targets="targets"))
    connection.register("edges", _rows(edges, ["source", "target"]))
    connection.execute("create table e as " + _JOINED.format(edges="edges"))
    return _written(connection, folder / "duckdb-rows")


def acero_engine(folder: Path) -> Path:
    """Arrow's group by and hash joins; the sort is NumPy's."""

    def scanned(name: str, column: str, start: int) -> Any:
        size = pq.read_metadata(folder / name).num_rows
        ids = ds.dataset(folder / name).scanner(columns=[column], use_threads=False).to_table()[column]
        return pa.table({"id": ids, "p": pa.array(np.arange(start, start + size))})

    tables = [
        scanned("nodes.parquet", "id", 0),
        scanned("edges.parquet", "source", NODES),
        scanned("edges.parquet", "target", NODES + EDGES),
    ]
    everything = pa.concat_tables(tables)
    distinct = everything.group_by("id", use_threads=False).aggregate([("p", "min")]).sort_by("p_min")
    del everything, tables
    numbered = pa.table({"id": distinct["id"], "code": pa.array(np.arange(len(distinct)))})
    plan = acero.Declaration("scan", acero.ScanNodeOptions(ds.dataset(folder / "edges.parquet")))
    for end in ("source", "target"):
        right = acero.Declaration(
            "table_source",
            acero.TableSourceNodeOptions(numbered.rename_columns([f"{end}_id", f"{end}_code"])),
        )
        options = acero.HashJoinNodeOptions("inner", [end], [f"{end}_id"])
        plan = acero.Declaration("hashjoin", options, [plan, right])
    joined = plan.to_table(use_threads=False).select(["source_code", "target_code"])
    source, target = (joined[name].to_numpy() for name in ("source_code", "target_code"))
    keys = np.concatenate([(source << 31) | target, (target << 31) | source])
    keys = np.unique(keys[(keys >> 31) != (keys & 0x7FFFFFFF)])
    return _put(folder / "acero", len(numbered), iter([keys]))


ENGINES: dict[str, Callable[[Path], Path]] = {
    "own": own,
    "duckdb": duckdb,
    "duckdb-rows": duckdb_rows,
    "acero": acero_engine,
}


def _connected(folder: Path) -> Any:
    import duckdb as engine

    connection = engine.connect(":memory:")
    spill = folder / "spilled"
    connection.execute(f"set memory_limit='{_LIMIT}'; set threads=1; set temp_directory='{spill}'")
    return connection


def _rows(path: Path, columns: list[str]) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        start = 0
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(1 << 20, columns=columns, use_threads=False):
                batch.validate(full=True)
                position = pa.array(np.arange(start, start + len(batch)))
                start += len(batch)
                yield pa.RecordBatch.from_arrays([*batch.columns, position], names=[*columns, "p"])

    return pa.RecordBatchReader.from_batches(
        pa.schema([*((name, pa.string()) for name in columns), ("p", pa.int64())]), batches()
    )


def _written(connection: Any, out: Path) -> Path:
    count = connection.execute("select count(*) from numbered").fetchone()[0]
    reader = connection.execute(_SORTED).to_arrow_reader(1 << 20)
    return _put(out, count, (batch.column(0).to_numpy() for batch in reader))


def _put(out: Path, nodes: int, keys: Iterator[Any]) -> Path:
    out.mkdir(exist_ok=True)
    degrees = np.zeros(nodes + 1, dtype=np.int64)
    with (out / "indices.i32").open("wb") as file:
        for part in keys:
            degrees[1:] += np.bincount(part >> 31, minlength=nodes)
            file.write((part & 0x7FFFFFFF).astype(np.int32).tobytes())
    np.cumsum(degrees).tofile(out / "indptr.i64")
    return out


def _measured(name: str, folder: Path, answers: Any) -> None:
    began, cpu = time.perf_counter(), time.process_time()
    out = ENGINES[name](folder)
    seconds = {"seconds": time.perf_counter() - began, "processor_seconds": time.process_time() - cpu}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    digest = hashlib.sha256((out / "indptr.i64").read_bytes() + (out / "indices.i32").read_bytes())
    answers.put(
        {
            **{k: round(v, 1) for k, v in seconds.items()},
            "peak_mb": round(peak),
            "graph": digest.hexdigest()[:16],
        }
    )


def main() -> None:
    """Measure and append."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=list(ENGINES), choices=list(ENGINES))
    parser.add_argument("--note", default="")
    options = parser.parse_args()
    if not (options.folder / "nodes.parquet").exists():
        make_files(options.folder)
    context = multiprocessing.get_context("spawn")
    for name in options.only:
        answers = context.Queue()
        child = context.Process(target=_measured, args=(name, options.folder, answers))
        child.start()
        found = answers.get()
        child.join()
        versions = {"pyarrow": pa.__version__}
        if name.startswith("duckdb"):
            versions["duckdb"] = importlib.metadata.version("duckdb")
        record = {"engine": name, "nodes": NODES, "edges": EDGES, **found, "versions": versions}
        if options.note:
            record["note"] = options.note
        print(json.dumps(record))
        with (HERE / "reader.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
