"""A user's own files -> a graph, with an account of what was read, guessed and left out."""

import os
import warnings
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nodejepa.errors import Advice, GraphError, Setting
from nodejepa.graph import Graph
from nodejepa.io.assemble import apply_schema, build_graph, fit_nodes
from nodejepa.io.convert import as_graph
from nodejepa.io.edge_columns import refuse_swapped
from nodejepa.io.feature_schema import FeatureSchema
from nodejepa.io.files_in import existing_file, file_format
from nodejepa.io.graphml import GraphFile, open_graphml
from nodejepa.io.join import join, sides_of
from nodejepa.io.labels import read_labels
from nodejepa.io.matrices import MATRIX_FORMATS, MatrixFile, open_matrix
from nodejepa.io.reading_options import ReadingOptions, ReadReport
from nodejepa.io.rows import Edges, Nodes, data_in_header, read_edge_table, read_node_matrix, read_node_table
from nodejepa.io.stored_size import unpacked_limit
from nodejepa.io.tables import InputTable, frame_table, is_frame, open_file_table
from nodejepa.memory import Room
from nodejepa.progress import timed

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
        """What a person should hear: every guess, everything left out."""
        return [*self.report.notes, *self.report.warnings]

    @property
    def sides(self) -> dict[str, list[Any]]:
        """Where two kinds of nodes were kept apart: ``side`` and ``side_id`` of each; else nothing."""
        ids = self.graph.node_ids
        return sides_of(ids.tolist(), self.report) if self.report.kept_apart and ids is not None else {}

    @property
    def more_columns(self) -> dict[str, list[Any]]:
        """What a table of embeddings carries along: the sides, and the label of each node (None: unknown)."""
        if self.labels is None:
            return self.sides
        names = [*(self.class_names or ()), None]  # -1 is the last of them
        return {**self.sides, "label": [names[code] for code in self.labels.tolist()]}


def load_graph(edges: Source, nodes: Source | None = None, **options: Any) -> Graph:
    """The graph in a user's files: ``load_graph("edges.parquet", nodes="nodes.parquet")``.

    Also takes what :func:`nodejepa.as_graph` takes: a PyG ``Data``, a NetworkX graph, a SciPy matrix. The
    options are those of :func:`read_graph`, which returns the labels and an account of the reading as well;
    here only a column that may give the answer away is warned of.
    """
    readable = isinstance(edges, str | os.PathLike) or is_frame(edges)
    if nodes is None and not options and not readable:
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
        edges: parquet, CSV or TSV (also compressed), npz, npy, MatrixMarket, GraphML (with its nodes), or a
            data frame; a row an edge.
        nodes: as ``edges``, a row a node. Without it nodes are described by their place in the graph.
        reading: how; see :class:`nodejepa.io.ReadingOptions`.
        schema: encode the nodes as another table was (``LoadedGraph.schema``) instead of fitting anew.
        memory_limit: gigabytes the process may take for it; what is available if not given. What compressed
            files unpack to counts.
        options: single options of ``reading`` by their names, such as ``labels="topic"``.

    Nodes come in the order of the node table; others follow, first those at the start of edges, then those
    that are only at the end of some, each in the order of the rows.
    Every guess and everything left out is in ``LoadedGraph.notes``.
    """
    reading = (reading or ReadingOptions()).changed(options)
    labels, report, room = reading.labels, ReadReport(), Room.of(memory_limit)
    node_source, read, rows = _read_rows(edges, nodes, reading, report, room, {})
    with timed(report.seconds, "ids", 4):
        joined = join(read, rows, reading, report)
        del read, rows  # the text of the ids may be larger than the graph
    with timed(report.seconds, "building", 4):
        bare = build_graph(joined, reading.directed, report)
    with timed(report.seconds, "features", 4):
        classes, names, content = None, None, joined.nodes
        if labels is not None and content.table is not None:
            place = f"{content.where}, column {labels!r}"
            classes, names = read_labels(content.table[labels], content.typed, place)
            content = replace(content, table=content.table.drop_columns([labels]))
        elif labels is not None and isinstance(node_source, MatrixFile):
            place = f"{node_source.where}, array {labels!r}"
            classes, names = read_labels(node_source.labels(labels, bare.num_nodes), True, place)
        if schema is None:
            graph, schema = fit_nodes(bare, content, report, reading, room)
        else:
            graph = apply_schema(bare, content, schema, report, room)
    report.kept_apart = bool(reading.bipartite)
    return LoadedGraph(graph, schema, report, classes, names)


def _read_rows(
    edges: Source,
    nodes: Source | None,
    reading: ReadingOptions,
    report: ReadReport,
    room: Room,
    headers: dict[str, bool],
) -> tuple[InputTable | MatrixFile | None, Edges, Nodes | None]:
    """Where the nodes came from, the rows of edges and those of nodes; ``headers`` are known by role."""
    said = len(report.notes)
    with timed(report.seconds, "reading", 4):
        edge_source = _open(edges, "edges", report, reading, room, headers)
        own: InputTable | MatrixFile | None = None  # a file of edges may describe its nodes as well
        if isinstance(edge_source, MatrixFile):
            own = edge_source
        elif isinstance(edge_source, GraphFile):
            if edge_source.directed and not reading.directed:
                kept = Setting("directed", True)
                report.note(Advice("the file calls its edges directed; ", kept, " keeps their direction."))
            own, edge_source = edge_source.nodes, edge_source.edges
        report.edge_file = edge_source.where
        node_source = own
        if nodes is not None:
            found = _open(nodes, "nodes", report, reading, room, headers)
            node_source = found.nodes if isinstance(found, GraphFile) else found
            refuse_swapped(edge_source, node_source, reading)
        read = _read_edges(edge_source, reading, report)
        rows: Nodes | None = None
        if isinstance(node_source, InputTable):
            rows = read_node_table(node_source, reading, report, read.ids)
        elif node_source is None:
            refuse_without_nodes(reading)
        else:
            refuse_without_nodes(replace(reading, labels=None))  # which may be an array of the file
            rows = read_node_matrix(node_source, report, features=nodes is not None)
        report.node_file = None if nodes is None or node_source is None else node_source.where
        wrong = data_in_header(edge_source, node_source, read, rows, reading, report)
    if wrong is None:
        return node_source, read, rows
    del report.notes[said:]
    where = report.edge_file if wrong == "edges" else report.node_file
    report.note(
        Advice(
            f"{where}: the first row holds ids that occur elsewhere too, so it is data and no header; say ",
            Setting("header", True),
            " if it is one.",
        )
    )
    return _read_rows(edges, nodes, reading, report, room, {**headers, wrong: False})


def refuse_without_nodes(reading: ReadingOptions) -> None:
    """Refuse options that only a table of nodes has columns for."""
    if reading.id_column is not None or reading.columns or reading.drop or reading.labels is not None:
        raise GraphError(
            "id, label and feature columns are those of a node table, but there is none",
            fix="Pass a table as nodes.",
        )


def _read_edges(opened: InputTable | MatrixFile, reading: ReadingOptions, report: ReadReport) -> Edges:
    if isinstance(opened, InputTable):
        return read_edge_table(opened, reading, report)
    if reading.source or reading.target or reading.weight or reading.bipartite:
        raise GraphError(
            "a matrix has no columns to name",
            where=opened.where,
            fix="Leave out source, target, weight and bipartite.",
        )
    source, target, weights, size = opened.adjacency()
    report.edge_rows = len(source)
    return Edges(None, (source, target), None if reading.weight is False else weights, size)


def _open(
    value: Source,
    role: str,
    report: ReadReport,
    reading: ReadingOptions,
    room: Room,
    headers: dict[str, bool],
) -> InputTable | MatrixFile | GraphFile:
    if is_frame(value):
        return frame_table(value, role)
    if not isinstance(value, str | os.PathLike):
        raise GraphError(
            f"{role} are a {type(value).__name__}", fix="Give the path of a file, or a data frame."
        )
    path = existing_file(value, role)
    kind, compression = file_format(path)
    most = unpacked_limit(path, kind, compression, room)
    if kind in MATRIX_FORMATS:
        return open_matrix(path, kind, compression, most)
    if kind == "graphml":
        return open_graphml(path, compression, most)
    header = headers.get(role, reading.header)
    return open_file_table(path, report, delimiter=reading.delimiter, header=header, most=most)
