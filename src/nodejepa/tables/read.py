"""A user's own files -> a graph, with an account of what was read, guessed and left out."""

import os
import re
import warnings
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.sparse as sp

from nodejepa.errors import GraphError
from nodejepa.graph import Graph
from nodejepa.graph_checks import Features, compact_csr, id_array
from nodejepa.machine import Room, progress_bar, timed
from nodejepa.tables.cells import doubtful_classes, read_labels
from nodejepa.tables.columns import MAX_CATEGORIES
from nodejepa.tables.convert import as_graph
from nodejepa.tables.edges import Numbered, adjacency_in_memory, number_nodes
from nodejepa.tables.ids import first_ids, guess_id_column, likely_ends, refuse_row_as_header, with_own_ids
from nodejepa.tables.options import (
    ReadingOptions,
    ReadReport,
    counts_rows,
    edge_columns,
    first_names,
    frame_indexes,
    names_ids,
    refuse_swapped,
    sides_of,
)
from nodejepa.tables.schema import FeatureSchema, add_structure, apply_schema, fit_features, structural_names
from nodejepa.tables.table import (
    PEAK_OF_TEXT,
    InputTable,
    Tables,
    existing_file,
    file_format,
    frame_table,
    is_frame,
    parquet_table,
    stacked,
)
from nodejepa.tables.text import open_text

_SMALLEST_MATRIX = 5  # columns; a list of edges with a few columns may have as few rows

Source: TypeAlias = str | os.PathLike[str] | pa.Table | Any


@dataclass(frozen=True)
class LoadedGraph:
    """A graph and where it came from.

    ``labels`` and ``class_names`` are None unless a label column was named; a node without label has -1.
    """

    graph: Graph
    schema: FeatureSchema
    report: ReadReport
    labels: npt.NDArray[np.int64] | None = None
    class_names: tuple[str, ...] | None = None

    @property
    def notes(self) -> list[str]:
        """Every guess that was made, and everything that was left out."""
        return [*self.report.notes, *self.report.warnings]

    @property
    def sides(self) -> dict[str, list[Any]]:
        """``side`` and ``side_id`` of each node where two kinds of nodes were kept apart, else nothing."""
        ids = self.graph.node_ids
        return sides_of(ids.tolist(), self.report) if self.report.kept_apart and ids is not None else {}


def load_graph(edges: Source, nodes: Source | None = None, **options: Any) -> Graph:
    """The graph in a user's files: ``load_graph("edges.parquet", nodes="nodes.parquet")``.

    Also takes what :func:`nodejepa.as_graph` takes: a PyG ``Data``, a NetworkX graph, a SciPy matrix. The
    options are those of :func:`read_graph`, which also returns the labels and a report of what was read.
    This function only warns of columns that may contain the label.
    """
    if nodes is None and not options and not is_table(edges):
        return as_graph(edges)
    loaded = read_graph(edges, nodes, **options)
    for warning in loaded.report.warnings:
        warnings.warn(warning, stacklevel=2)
    return loaded.graph


def read_graph(
    edges: Source,
    nodes: Source | None = None,
    reading: ReadingOptions | None = None,
    *,
    schema: FeatureSchema | None = None,
    memory_limit: float | None = None,
    **options: Any,
) -> LoadedGraph:
    """Read a graph from files or data frames.

    Args:
        edges: parquet, CSV or TSV (also compressed), or a data frame, with one row per edge. Or a
            :class:`nodejepa.Graph` or a graph of PyG, NetworkX or SciPy, which is used as it is.
        nodes: a table like ``edges``, with one row per node. A list of tables is read as one; columns are
            matched by name. Each may have its own id column, such as ``customer_id`` and ``product_id``.
            Without tables, nodes get structural features.
        reading: how the tables are read; see :class:`nodejepa.tables.ReadingOptions`.
        schema: encode the columns as in another graph (``LoadedGraph.schema``) instead of fitting anew.
        memory_limit: most memory to use, in GB; by default the free memory. Compressed files count with
            their unpacked size.
        options: single options of ``reading`` by their names, such as ``labels="topic"``.

    Nodes have the order of the node table. Nodes that only edges name follow: first sources, then targets,
    each in the order of the rows. ``LoadedGraph.notes`` lists every guess and everything that was left out.
    """
    reading = (reading or ReadingOptions()).changed(options)
    report, room = ReadReport(), Room.of(memory_limit)
    if nodes is None and schema is None and not is_table(edges):
        return _of_object(as_graph(edges), reading, report, room)
    tables, numbered = number_files(edges, nodes, reading, report, room)
    with timed(report.seconds, "building", 4), progress_bar("Building the graph"):
        bare = _build(numbered, reading, report)
    tables = replace(tables, edges=None)
    del numbered  # the edges as listed may be larger than the graph
    with timed(report.seconds, "features", 4):
        labels, names = labels_of(tables, report)
        if schema is None:
            graph, schema = fit_features(bare, tables, report, reading, room)
            if labels is not None and reading.columns is None:
                report.warnings += copies_of_labels(graph.features, schema, labels)
        else:
            graph = apply_schema(bare, tables, schema, report, room)
    report.kept_apart = bool(reading.bipartite)
    made = tuple(column.name for column in schema.columns)
    graph = replace(graph, columns=made, encoding=schema.encoding)
    return LoadedGraph(graph, schema, report, labels, names)


def is_table(source: Any) -> bool:
    """Whether a graph is given as a table, in a file or a data frame."""
    return isinstance(source, str | os.PathLike) or is_frame(source)


def _of_object(graph: Graph, reading: ReadingOptions, report: ReadReport, room: Room) -> LoadedGraph:
    """A graph that was made in Python: its features are a matrix that is used as it is."""
    if replace(reading, structural=None) != ReadingOptions():
        raise GraphError(
            "a graph that was made in Python has no columns to name",
            where="edges",
            fix="Leave out all options of reading but structural=..., or give tables of edges and nodes.",
        )
    report.edge_file, report.nodes = "the graph", graph.num_nodes
    report.edges = graph.num_edges // (1 if graph.directed else 2)
    own = FeatureSchema(matrix_width=graph.num_features or None)
    names = structural_names(reading.structural, own, report, graph.num_nodes)
    return LoadedGraph(*add_structure(graph, own, names, report, room), report)


def _build(numbered: Numbered, reading: ReadingOptions, report: ReadReport) -> Graph:
    matrix, counted = adjacency_in_memory(numbered.edges, numbered.nodes, directed=reading.directed)
    counted.say(report, numbered.nodes, directed=reading.directed, weighted=numbered.edges.weighted)
    adjacency = compact_csr(matrix.data, matrix.indices, matrix.indptr, numbered.nodes)
    # the ids are distinct by construction: the constructor takes them without looking at each again
    ids = id_array(numbered.ids.to_pylist()) if isinstance(numbered.ids, pa.Array) else numbered.ids
    features = np.zeros((numbered.nodes, 0), dtype=np.float32)
    return Graph(adjacency, features, ids, reading.directed)


def labels_of(
    tables: Tables, report: ReadReport
) -> tuple[npt.NDArray[np.int64] | None, tuple[str, ...] | None]:
    """The class of every node and the names of the classes, where a column of labels was named."""
    name = tables.labels
    if name is None:
        return None, None
    assert tables.nodes is not None
    batches = (batch[name] for batch in tables.nodes.batches([name], "Reading labels"))
    labels, names = read_labels(batches, tables.nodes.typed, tables.nodes.place(name), report.added_nodes)
    counts = np.bincount(labels + 1, minlength=len(names) + 1)
    plural = "" if len(names) == 1 else "es"
    without = f"; {counts[0]:,} nodes have no label" if counts[0] else ""
    report.note(f"labels are column {name!r}: {len(names)} class{plural}, {first_names(names)}{without}.")
    report.warnings.extend(doubtful_classes(names, counts[1:].tolist()))
    return labels, names


def copies_of_labels(features: Features, schema: FeatureSchema, labels: npt.NDArray[np.int64]) -> list[str]:
    """Warnings of columns with few values each of which has one label: codes of classes, or their names.

    Flags whose names begin alike (``k_a``, ``k_b``) are one column of classes, if at most one of them is set.
    """
    said, start, known = [], 0, labels >= 0
    places: dict[tuple[str, ...], list[int]] = {}
    flags: dict[str, list[str]] = {}
    for column in schema.columns:
        if column.kind not in ("vector", "text"):
            places[column.name,] = list(range(start, start + column.width))
        if column.kind in ("binary", "boolean"):
            flags.setdefault(re.split(r"[^a-zA-Z0-9]", column.name)[0], []).append(column.name)
        start += column.width
    for alike in flags.values():
        if 1 < len(alike) <= MAX_CATEGORIES:
            places[tuple(alike)] = [place for name in alike for place in places[name,]]
    for names, columns in places.items():
        block: Any = features[:, columns]
        rows = (block.toarray() if sp.issparse(block) else block)[known]
        weights = np.random.default_rng(0).random(rows.shape[1])
        values, codes = np.unique(rows @ weights, return_inverse=True)  # a number for each different row
        pairs = np.unique(codes * (labels.max() + 1) + labels[known]).size
        few = min(known.sum() // 10, len(columns) + 1 if len(names) > 1 else len(known))
        if 1 < len(values) == pairs and len(values) <= few:
            shown = f"column {names[0]!r}" if len(names) == 1 else f"columns {first_names(names)} together"
            dropped = " ".join(f'drop="{name}"' for name in names)
            said.append(
                f"each value of {shown} has one label: it may be the label by another name, and scores would "
                f"mean nothing. Say {dropped} to leave it out."
            )
    return said


# ---------------------------------------------------------------- files -> columns -> positions


def number_files(
    edges: Source,
    nodes: Source | None,
    reading: ReadingOptions,
    report: ReadReport,
    room: Room,
    folder: Path | None = None,
) -> tuple[Tables, Numbered]:
    """Open the files, choose their columns and number the nodes.

    With a ``folder`` tables are read batch by batch and what is as long as the edges is kept there; else all
    of a table is one batch, which must fit into ``room``.
    """
    with timed(report.seconds, "reading", 4):
        tables = _open_files(edges, nodes, reading, report, room if folder is None else None)
    with timed(report.seconds, "ids", 4), progress_bar("Matching ids"):
        return tables, number_nodes(tables, reading, report, room, folder)


def _open_files(
    edges: Source, nodes: Source | None, reading: ReadingOptions, report: ReadReport, room: Room | None
) -> Tables:
    """The files, with the columns that are read of them within ``room``, or else batch by batch."""
    listed = list(nodes) if isinstance(nodes, list | tuple) else [] if nodes is None else [nodes]
    source = _open(edges, "edges", reading, report, room)
    parts = [_open(one, "nodes", reading, report, room) for one in listed]
    report.edge_file = source.where
    report.node_file = ", ".join(part.where for part in parts) or None
    for part in parts:
        refuse_swapped(source, part, reading)
    first, second, weight = edge_columns(
        source, reading, report, partial(likely_ends, source, parts, reading)
    )
    named = [first, second, *([weight] if weight else [])]
    held = source.held(named, "Reading edges", room)
    found = Tables(held, first, second, weight)
    width = len(source.names)
    if not weight and held.num_rows in (width, width - 1) and width >= _SMALLEST_MATRIX:
        report.warnings.append(
            f"the table of edges has {held.num_rows} rows and {width} columns: it looks like a matrix. In "
            "Python, nodejepa.Graph.from_scipy(scipy.sparse.csr_array(matrix)) takes one."
        )
    if reading.header is None and not (reading.source or reading.target):
        refuse_row_as_header(source, [first, second], first_ids(held, (first, second)))
    if parts:
        return node_columns(found, parts, reading, report, room)
    if reading.id_column or reading.columns or reading.drop or reading.labels:
        raise GraphError(
            "id, label and feature columns are those of a node table, but there is none",
            fix="Pass a table as nodes.",
        )
    return found


def _open(
    value: Source, role: str, reading: ReadingOptions, report: ReadReport, room: Room | None
) -> InputTable:
    if is_frame(value):
        return frame_table(value, f"the {role} table")
    if not isinstance(value, str | os.PathLike):
        raise GraphError(
            f"{role} are a {type(value).__name__}", fix="Give the path of a file, or a data frame."
        )
    path = existing_file(value, role)
    kind, compression = file_format(path)
    if kind == "parquet":
        return parquet_table(path, room)
    if room is not None:
        room.require(path.stat().st_size * PEAK_OF_TEXT, "reading the file", str(path))
    return open_text(path, compression, report, reading.delimiter, reading.header)


def node_columns(
    tables: Tables,
    parts: list[InputTable],
    reading: ReadingOptions,
    report: ReadReport,
    room: Room | None = None,
) -> Tables:
    """With the column of ids of a node table, if there is one, and the columns that become features."""
    sides = (tables.source, tables.target)
    ends = None if tables.edges is None else first_ids(tables.edges, sides, reading.bipartite)
    own = with_own_ids(parts, tables, reading) if len(parts) > 1 and not reading.id_column else None
    nodes = own or stacked(parts)
    ids, labels = reading.id_column, reading.labels
    for name in reading.drop:
        report.dropped_columns[nodes.find(name, "drop")] = "asked for"
    if own is not None:
        ids = own.names[0]
        report.note(f"node ids are column {ids} of the nodes (guessed).")
    elif ids is not None:
        nodes.find(ids, "id_column")
    else:
        ids = guess_id_column(nodes, reading, report, ends)
        if ids is not None and ends is not None and reading.header is None:
            refuse_row_as_header(nodes, [ids], ends)
    if labels is not None and nodes.find(labels, "labels") == ids:
        raise GraphError(f"{labels!r} names the nodes and cannot be their label", where=nodes.where)
    if reading.columns is not None:
        wanted = [nodes.find(name, "columns") for name in reading.columns]
    else:
        wanted = [name for name in nodes.names if name not in (ids, labels, *reading.drop)]
        indexes = (*frame_indexes(nodes.names), nodes.range_index)
        for index in [name for name in wanted if name in indexes]:
            # row numbers: where rows are sorted by class they would give the class away
            wanted.remove(index)
            report.drop(index, "the index of a data frame")
        more = [name for name in wanted if names_ids(name)]
        first: Any = next(iter(nodes.batches(more, "Reading nodes")), None) if more else None
        for number in more:
            if first is not None and counts_rows(first[number]):  # for the same reason
                wanted.remove(number)
                report.drop(number, "numbers the rows")
    features = [name for name in dict.fromkeys(wanted) if name != labels]
    for name in features:
        if sum(name in part.names for part in parts) > 1:
            said = "one feature each, made of several node tables, which must have it in one unit"
            report.note_column(said, name)
    report.id_column = ids
    named = [name for name in (ids, labels) if name is not None]
    held = nodes.held(list(dict.fromkeys([*features, *named])), "Reading nodes", room)
    guessed = reading.header is None and not (reading.source or reading.target)
    if ids is not None and guessed and tables.edges is not None:
        refuse_row_as_header(tables.edges, sides, first_ids(held, [ids]))
    return replace(tables, nodes=held, ids=ids, features=tuple(features), labels=labels)
