"""``prepare_store``: a user's files, which may be larger than memory, to a graph on disk."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nodejepa.errors import Advice, ConfigError, GraphError, NodeJEPAError, Setting
from nodejepa.files import output_owned, refusals
from nodejepa.io.assemble import say_edges
from nodejepa.io.delimited import TextTable
from nodejepa.io.edge_columns import edge_columns, refuse_swapped
from nodejepa.io.files_in import existing_file, file_format
from nodejepa.io.identifiers import IdColumn
from nodejepa.io.load import LoadedGraph, refuse_without_nodes
from nodejepa.io.reading_options import REMEMBERED, ReadingOptions, ReadReport
from nodejepa.io.rows import node_columns
from nodejepa.io.tables import open_file_table
from nodejepa.store.edges import EdgeFiles, sort_edges
from nodejepa.store.feature_rows import FeatureWriter
from nodejepa.store.features import read_in_memory, storable, write_features
from nodejepa.store.graph import StoredGraph
from nodejepa.store.ids import write_ids
from nodejepa.store.labels import write_labels
from nodejepa.store.layout import LABELS, Manifest, write_array
from nodejepa.store.positions import Tables, number_nodes
from nodejepa.store.seal import seal
from nodejepa.store.steps import Steps


def prepare_store(
    edges: str | os.PathLike[str],
    nodes: str | os.PathLike[str] | None = None,
    reading: ReadingOptions | None = None,
    *,
    out: str | os.PathLike[str],
    force: bool = False,
    announce: Callable[[Sequence[str]], None] | None = None,
    **options: Any,
) -> StoredGraph:
    """Write a graph store; what a killed process has begun is gone on with.

    Args:
        edges: a file of edges as in :func:`nodejepa.read_graph`. Tables (parquet, CSV) may be larger than
            memory; other files (npz, npy, MatrixMarket, GraphML) are read as ever.
        nodes: a file of nodes. Without one, or with nothing but ids in it, nodes are described by their
            place in the graph, as :func:`nodejepa.read_graph` does it but for the adjacency.
        reading: how; labels are kept beside the graph.
        out: the folder to make. It appears when it is whole.
        force: replace a store that is there.
        announce: called with every guess and everything left out, when the store is whole.
        options: single options of ``reading`` by their names.
    """
    final, reading = Path(out), storable((reading or ReadingOptions()).changed(options))
    files = [existing_file(edges, "edges"), *([existing_file(nodes, "nodes")] if nodes is not None else [])]
    with output_owned(final), refusals(final):
        if final.exists() and not (force and StoredGraph.is_at(final)):
            said = "" if StoredGraph.is_at(final) else " and is no graph store"
            replace = Setting("force", True)
            fix = Advice("Choose another ", Setting("out"), ", or replace a store with ", replace, ".")
            raise ConfigError(f"{final} exists{said}", fix=fix)
        work = final.with_name(f".{final.name}.partial")
        inputs = [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in files]
        steps = Steps(
            work,
            {"version": importlib.metadata.version("nodejepa"), "files": inputs, "reading": repr(reading)},
        )
        if any(file_format(path)[0] not in ("parquet", "text") for path in files):
            report = _from_memory(read_in_memory(edges, nodes, reading), reading, steps)
        else:
            report = _from_tables(files, reading, steps)
        steps.close(final)
    if announce is not None:
        announce([*report.notes, *report.warnings])
    return StoredGraph(final)


def _from_tables(files: list[Path], reading: ReadingOptions, steps: Steps) -> ReadReport:
    report = ReadReport()
    tables = _open(files, reading, report)
    folder = steps.folder
    _require_room(folder, files)

    def numbered() -> dict[str, Any]:
        edges, nodes = number_nodes(tables, reading, folder, report)
        return {"nodes": nodes, "edges": edges.count, "report": report.to_dict()}

    def sorted_() -> dict[str, Any]:
        listed = EdgeFiles(
            folder / "source", folder / "target", folder / "weight" if tables.weight else None, found["edges"]
        )
        counted = sort_edges(listed, nodes, folder, symmetric=not reading.directed)
        if reading.directed:
            sort_edges(listed, nodes, folder, prefix="in_", symmetric=False, turned=True)
        _count(report, counted, nodes, folder, directed=reading.directed)
        return {"entries": counted.entries, "weighted": counted.weighted, "report": report.to_dict()}

    def encoded() -> dict[str, Any]:
        bare = Manifest(nodes, found["entries"], 0, reading.directed, found["weighted"], report.id_kind)
        schema, entries = write_features(tables, bare, reading, folder, report)
        kept = {"schema": schema.to_dict(), "columns": schema.width, "feature_entries": entries}
        return kept | {"report": report.to_dict()}

    def labelled() -> dict[str, Any]:
        return {
            "classes": write_labels(tables, report.added_nodes, folder),
            "report": report.to_dict(),
        }

    found = _step(steps, "ids", numbered, report)
    nodes = found["nodes"]
    found = {**found, **_step(steps, "edges", sorted_, report)}
    steps.drop("source", "target", "weight")
    found = {**found, **_step(steps, "features", encoded, report)}
    if tables.labels is not None:
        found = {**found, **_step(steps, "labels", labelled, report)}
    facts = Manifest(
        nodes,
        found["entries"],
        found["columns"],
        reading.directed,
        found["weighted"],
        report.id_kind,
        schema=found["schema"],
        reading={name: getattr(reading, name) for name in REMEMBERED},
        report=found["report"],
        classes=found.get("classes"),
        feature_entries=found["feature_entries"],
    )
    seal(facts, folder)
    return report


def _step(steps: Steps, name: str, work: Any, report: ReadReport) -> dict[str, Any]:
    """A step, and the report as it was after it."""
    facts = steps.run(name, work)
    for field, value in facts["report"].items():
        setattr(report, field, value)
    return facts


def _open(files: list[Path], reading: ReadingOptions, report: ReadReport) -> Tables:
    edges, *more = (
        open_file_table(path, report, delimiter=reading.delimiter, header=reading.header) for path in files
    )
    nodes = more[0] if more else None
    if nodes is not None:
        refuse_swapped(edges, nodes, reading)
    named = (reading.source or reading.target, reading.id_column)
    for table, asked in zip((edges, *more), named, strict=False):
        if isinstance(table.source, TextTable) and table.source.doubtful and not asked:
            raise GraphError(
                "nobody can tell whether the first row is a header without reading all of it",
                where=table.where,
                fix=Advice("Say ", Setting("header", True), " or ", Setting("header", False), "."),
            )
    report.edge_file, report.node_file = edges.where, None if nodes is None else nodes.where
    ends = edge_columns(edges, reading, report)
    report.kept_apart = bool(reading.bipartite)
    if nodes is None:
        refuse_without_nodes(reading)
        return Tables(edges, None, *ends, None, ())

    def first_ends() -> dict[str, IdColumn]:
        first = next(iter(edges.batches(ends[:2], "Looking for ids")), None)
        prefixes = [f"{name}:" if reading.bipartite else "" for name in ends[:2]]
        return {
            name: IdColumn(first[name], edges.typed, edges.where, prefix)
            for name, prefix in zip(ends[:2], prefixes, strict=True)
            if first is not None
        }

    ids, features = node_columns(nodes, reading, report, first_ends)
    report.id_column = ids
    return Tables(edges, nodes, *ends, ids, tuple(features), reading.labels)


def _require_room(folder: Path, files: list[Path]) -> None:
    """Refuse early what certainly cannot end: the arrays are rarely smaller than compressed files."""
    needed, free = sum(path.stat().st_size for path in files), shutil.disk_usage(folder).free
    if needed > free:
        raise NodeJEPAError(
            f"the store needs {needed / 1e9:,.1f} GB or more and {free / 1e9:,.1f} GB are free",
            where=str(folder.parent),
            fix=Advice("Make room, or choose another ", Setting("out"), "."),
        )


def _count(report: ReadReport, counted: Any, nodes: int, folder: Path, *, directed: bool) -> None:
    report.self_loop_rows, report.zero_weight_rows = counted.loops, counted.zeros
    report.duplicate_rows = counted.kept - counted.pairs
    report.reciprocal_pairs = 0 if directed else counted.pairs - counted.entries // 2
    report.nodes, report.edges = nodes, counted.entries // (1 if directed else 2)
    alone = np.ones(nodes, dtype=bool)
    for side in ("", "in_") if directed else ("",):
        alone &= np.diff(np.fromfile(folder / f"{side}indptr.i64", dtype=np.int64)) == 0
    report.isolated_nodes = int(alone.sum())
    say_edges(report, weighted=(folder / "weight").exists() and report.edge_columns["weight"] is not None)


def _from_memory(loaded: LoadedGraph, reading: ReadingOptions, steps: Steps) -> ReadReport:
    """A graph that is in memory already, as matrices are."""
    graph, folder = loaded.graph, steps.folder
    sides = {"": graph.adjacency, "in_": graph.in_rows(0, graph.num_nodes)}
    for side, matrix in sides.items() if graph.directed else [("", graph.adjacency)]:
        write_array(folder / f"{side}indptr.i64", matrix.indptr.astype(np.int64))
        write_array(folder / f"{side}indices.i32", matrix.indices.astype(np.int32))
        if graph.is_weighted:
            write_array(folder / f"{side}weights.f32", matrix.data)
    sparse = not isinstance(graph.features, np.ndarray)
    with FeatureWriter(folder, sparse=sparse) as writer:
        writer.add(graph.features)
    if loaded.labels is not None:
        write_array(folder / LABELS, loaded.labels.astype(np.int32))
    kind = "position" if graph.node_ids is None else write_ids(graph.node_ids, folder)
    facts = Manifest(
        graph.num_nodes,
        graph.num_edges,
        graph.num_features,
        graph.directed,
        graph.is_weighted,
        kind,
        schema=loaded.schema.to_dict(),
        reading={name: getattr(reading, name) for name in REMEMBERED},
        report=loaded.report.to_dict(),
        classes=loaded.class_names,
        feature_entries=writer.entries if sparse else None,
    )
    steps.run("arrays", dict)
    seal(facts, folder)
    return loaded.report
