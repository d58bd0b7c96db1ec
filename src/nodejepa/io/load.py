"""A user's own files -> a graph, with an account of what was read, guessed and left out."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nodejepa.errors import ConfigError, GraphError
from nodejepa.graph import Graph
from nodejepa.io.assemble import apply_schema, build_graph, fit_nodes
from nodejepa.io.convert import as_graph
from nodejepa.io.feature_schema import (
    FeatureSchema,
    InfinitePolicy,
    MissingPolicy,
    TextPolicy,
    descriptor_names,
)
from nodejepa.io.files_in import existing_file, file_format
from nodejepa.io.join import UnknownIds, join
from nodejepa.io.labels import read_labels
from nodejepa.io.matrices import MATRIX_FORMATS, MatrixFile, open_matrix
from nodejepa.io.report import ReadReport
from nodejepa.io.rows import Edges, Nodes, read_edge_table, read_node_matrix, read_node_table
from nodejepa.io.tables import Table, frame_table, is_frame, open_file_table

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
        return self.report.notes


def load_graph(edges: Source, nodes: Source | None = None, **options: Any) -> Graph:
    """The graph in a user's files: ``load_graph("edges.parquet", nodes="nodes.parquet")``.

    Also takes what :func:`nodejepa.as_graph` takes: a PyG ``Data``, a NetworkX graph, a SciPy matrix. The
    options are those of :func:`read_graph`, which returns the labels and an account of the reading as well.
    """
    if nodes is None and not options and not _is_readable(edges):
        return as_graph(edges)
    return read_graph(edges, nodes, **options).graph


def read_graph(
    edges: Source,
    nodes: Source | None = None,
    *,
    source: str | None = None,
    target: str | None = None,
    weight: str | Literal[False] | None = None,
    id_column: str | None = None,
    columns: Iterable[str] | None = None,
    ignore: Iterable[str] = (),
    labels: str | None = None,
    text: TextPolicy = "refuse",
    missing: MissingPolicy = "fill",
    infinite: InfinitePolicy = "refuse",
    unknown_ids: UnknownIds = "add",
    structural: bool | Iterable[str] | None = None,
    directed: bool = False,
    schema: FeatureSchema | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
) -> LoadedGraph:
    """Read a graph from files or data frames.

    Args:
        edges: parquet, CSV or TSV (also compressed), npz, npy, MatrixMarket, or a data frame; a row an edge.
        nodes: as ``edges``, a row a node. Without it nodes are described by their place in the graph.
        source: column of the edges' start; guessed from the names, else the first.
        target: column of the edges' end; guessed from the names, else the second.
        weight: column of edge weights; a column named ``weight`` if not told, none if False.
        id_column: column of the node table that the edges refer to; guessed from the names, else the first.
        columns: columns of the node table to use as features; all others are ignored.
        ignore: columns of the node table to leave out.
        labels: column of the node table with the classes: no feature, returned beside the graph.
        text: free text is an error (``"refuse"``), hashed (``"hash"``) or left out (``"ignore"``).
        missing: missing numbers become the mean and a column marks them (``"fill"``), or are an error.
        infinite: infinite numbers are an error, or count as ``"missing"``.
        unknown_ids: nodes that only the edges name are added without features (``"add"``), their edges are
            left out (``"drop"``), or they are an error (``"refuse"``).
        structural: add structural descriptors to the features, all or those named (``"pagerank"``,
            ``"degree"``, ``"clustering"``, ``"spectral"``); by default only where there are no others.
        directed: keep the direction of edges; by default an edge joins both ways.
        schema: encode the nodes as another table was (``LoadedGraph.schema``) instead of fitting anew.
        delimiter: of text files; guessed if not given.
        header: whether text files have one; guessed if not given.

    Nodes come in the order of the node table; others follow, first those at the start of edges, then those
    that are only at the end of some, each in the order of the rows.
    Every guess and everything left out is in ``LoadedGraph.notes``.
    """
    _check_choice("text", text, TextPolicy)
    _check_choice("missing", missing, MissingPolicy)
    _check_choice("infinite", infinite, InfinitePolicy)
    _check_choice("unknown_ids", unknown_ids, UnknownIds)
    described = descriptor_names(structural)
    wanted, unwanted = _names(columns, "columns"), _names(ignore, "ignore") or []
    report = ReadReport()
    with report.timed("reading"):
        edge_source = _open(edges, "edges", report, delimiter, header)
        report.edge_file = edge_source.where
        # an archive of edges may describe its nodes as well
        own = edge_source if isinstance(edge_source, MatrixFile) else None
        node_source = own if nodes is None else _open(nodes, "nodes", report, delimiter, header)
        read = _read_edges(edge_source, source, target, weight, report)
        rows: Nodes | None = None
        if isinstance(node_source, Table):
            rows = read_node_table(
                node_source, id_column, wanted, unwanted, labels, report, positional=read.ids is None
            )
        elif id_column is not None or wanted or unwanted or (labels is not None and node_source is None):
            raise GraphError(
                "id, label and feature columns are those of a node table, but there is none",
                fix="Pass a table as nodes.",
            )
        elif node_source is not None:
            rows = read_node_matrix(node_source, report, features=nodes is not None)
        report.node_file = None if nodes is None or node_source is None else node_source.where
    with report.timed("ids"):
        joined = join(read, rows, unknown_ids, report)
        del read, rows  # the text of the ids may be larger than the graph
    with report.timed("building"):
        bare = build_graph(joined, directed, report)
    with report.timed("features"):
        classes, names, content = None, None, joined.nodes
        if labels is not None and content.table is not None:
            place = f"{content.where}, column {labels!r}"
            classes, names = read_labels(content.table[labels], content.typed, place)
            content = replace(content, table=content.table.drop_columns([labels]))
        elif labels is not None and isinstance(node_source, MatrixFile):
            place = f"{node_source.where}, array {labels!r}"
            classes, names = read_labels(node_source.labels(labels, bare.num_nodes), True, place)
        if schema is None:
            policies: Any = {"text": text, "missing": missing, "infinite": infinite}
            graph, schema = fit_nodes(bare, content, report, structural=described, **policies)
        else:
            graph = apply_schema(bare, content, schema, report)
    return LoadedGraph(graph, schema, report, classes, names)


def _read_edges(
    opened: Table | MatrixFile,
    source: str | None,
    target: str | None,
    weight: str | Literal[False] | None,
    report: ReadReport,
) -> Edges:
    if isinstance(opened, Table):
        return read_edge_table(opened, source, target, weight, report)
    if source or target or weight:
        raise GraphError(
            "a matrix has no columns to name", where=opened.where, fix="Leave out source, target and weight."
        )
    found = opened.adjacency()
    report.edge_rows = len(found.source)
    weights = None if weight is False else found.weight
    return Edges(None, (found.source, found.target), weights, found.num_nodes)


def _open(
    value: Source, role: str, report: ReadReport, delimiter: str | None, header: bool | None
) -> Table | MatrixFile:
    if is_frame(value):
        return frame_table(value, role)
    if not isinstance(value, str | os.PathLike):
        raise GraphError(
            f"{role} are a {type(value).__name__}", fix="Give the path of a file, or a data frame."
        )
    path = existing_file(value, role)
    kind, compression = file_format(path)
    if kind in MATRIX_FORMATS:
        return open_matrix(path, kind, compression)
    return open_file_table(path, report, delimiter=delimiter, header=header)


def _is_readable(value: object) -> bool:
    return isinstance(value, str | os.PathLike) or is_frame(value)


def _names(value: Iterable[str] | None, argument: str) -> list[str] | None:
    if value is None:
        return None
    names = [value] if isinstance(value, str) else list(value)
    if not all(isinstance(name, str) for name in names):
        raise ConfigError("column names are text", where=argument, fix='Give a list such as ["age", "city"].')
    return names


def _check_choice(name: str, value: object, choices: Any) -> None:
    if value not in get_args(choices):
        raise ConfigError(
            f"{name} is {value!r}", where=name, fix=f"Use one of {', '.join(map(repr, get_args(choices)))}."
        )
