"""Positions and rows of nodes -> the graph, its edges counted on the way."""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from nodejepa.errors import GraphError
from nodejepa.graph import Graph
from nodejepa.graph_checks import Features, FloatArray
from nodejepa.io.convert import as_graph
from nodejepa.io.feature_schema import FeatureSchema
from nodejepa.io.join import Joined
from nodejepa.io.reading_options import STRUCTURAL, ReadingOptions, ReadReport, structural_width
from nodejepa.io.rows import Nodes
from nodejepa.progress import progress_bar


def build_graph(joined: Joined, directed: bool, report: ReadReport) -> Graph:
    """The graph without features; self-loops, repetitions and zero weights are counted and noted."""
    source, target, weight = joined.source, joined.target, joined.weight
    if weight is not None:
        report.zero_weight_rows = int(np.count_nonzero(weight == 0))
    with progress_bar("Building the graph"):
        graph = Graph.from_edges(
            source,
            target,
            num_nodes=joined.num_nodes,
            weights=weight,
            direction="keep" if directed else "symmetrize",
        )
        loops = source == target
        kept = ~loops if weight is None else ~loops & (weight > 0)
        report.self_loop_rows = int(loops.sum())
        pairs = source[kept].astype(np.int64) * joined.num_nodes + target[kept]
        pairs.sort()
        distinct = int(np.count_nonzero(np.diff(pairs))) + int(pairs.size > 0)
    report.duplicate_rows = pairs.size - distinct
    report.reciprocal_pairs = 0 if directed else distinct - graph.num_edges // 2
    report.nodes, report.edges = graph.num_nodes, graph.num_edges // (1 if directed else 2)
    alone = np.diff(graph.adjacency.indptr) == 0
    alone[graph.adjacency.indices] = False  # a directed edge is one of its target as well
    report.isolated_nodes = int(alone.sum())
    say_edges(report, weighted=weight is not None)
    # the ids are distinct by construction: the constructor takes them without looking at each again
    return replace(graph, node_ids=joined.ids)


def say_edges(report: ReadReport, *, weighted: bool) -> None:
    """Note what was left out and merged."""
    if report.self_loop_rows:
        report.note(f"{report.self_loop_rows} edges join a node with itself and are left out.")
    if report.zero_weight_rows:
        report.note(f"{report.zero_weight_rows} edges weigh 0 and are left out.")
    if report.duplicate_rows:
        merged = "their weights add up" if weighted else "each counts once"
        report.note(f"{report.duplicate_rows} edges repeat another; {merged}.")
    if report.reciprocal_pairs:
        report.note(f"{report.reciprocal_pairs} edges are listed in both directions and count once.")
    if report.isolated_nodes:
        report.note(f"{report.isolated_nodes} nodes have no edge; they are kept.")


def fit_nodes(
    graph: Graph, nodes: Nodes, report: ReadReport, reading: ReadingOptions
) -> tuple[Graph, FeatureSchema]:
    """The graph with its features, and how they were made."""
    features: Features = np.zeros((graph.num_nodes, 0), dtype=np.float32)
    schema = FeatureSchema()
    if nodes.matrix is not None:
        features = nodes.matrix
        schema = FeatureSchema(matrix_width=int(features.shape[1]))
    elif nodes.table is not None:
        schema, features = FeatureSchema.fit(
            nodes.table, typed=nodes.typed, where=nodes.where, report=report, reading=reading
        )
    schema = with_descriptors(schema, reading, report)
    if schema.structural:
        features = _with_structure(graph, features, schema.described_by)
    return graph.with_features(features), schema


def with_descriptors(schema: FeatureSchema, reading: ReadingOptions, report: ReadReport) -> FeatureSchema:
    """The schema with the structural descriptors that are asked for, or all if there are no other columns."""
    names = structural_names(reading.structural, schema)
    if not names:
        return schema
    said = _listed(names)
    report.note(
        f"structural descriptors are added to the features: {said}."
        if schema.width
        else f"features are structural: {said}."
    )
    return replace(schema, structural=structural_width(names), described_by=names)


def apply_schema(graph: Graph, nodes: Nodes, schema: FeatureSchema, report: ReadReport) -> Graph:
    """The graph with features made as those the schema was fitted on."""
    features: Features = np.zeros((graph.num_nodes, 0), dtype=np.float32)
    if nodes.matrix is not None:
        schema.check_matrix(nodes.matrix, nodes.where)
        features = nodes.matrix
    elif schema.matrix_width is not None:
        raise GraphError(
            f"a matrix of {schema.matrix_width} columns is expected as node features",
            where=nodes.where or "nodes",
            fix="Give the same features as those the model was trained on, as npz or npy.",
        )
    elif nodes.table is not None:
        features = schema.apply(nodes.table, typed=nodes.typed, where=nodes.where, report=report)
    elif schema.columns:
        raise GraphError(
            "the features need a node table, but there is none",
            where="nodes",
            fix=f"It has columns {', '.join(repr(c.name) for c in schema.columns[:10])}.",
        )
    if schema.structural:
        features = _with_structure(graph, features, schema.described_by)
    return graph.with_features(features)


def graph_with_features(source: Any) -> Graph:
    """As :func:`as_graph`; a graph without features is described by its structure, as a file without is."""
    graph = as_graph(source)
    if graph.num_features or graph.num_nodes < 2:
        return graph
    return graph.with_features(_with_structure(graph, graph.features, tuple(STRUCTURAL)))


def structural_names(asked: tuple[str, ...] | None, schema: FeatureSchema) -> tuple[str, ...]:
    """The descriptors to add to the features of a schema: those asked for, or all if there are no others."""
    if asked is None:
        return () if schema.width else tuple(STRUCTURAL)
    return tuple(name for name in STRUCTURAL if name in asked)


def _listed(names: tuple[str, ...]) -> str:
    words = {"pagerank": "PageRank", "spectral": "spectral coordinates"}
    said = [words.get(name, name) for name in names]
    return " and ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said)


def _with_structure(graph: Graph, features: Features, names: tuple[str, ...]) -> Features:
    from nodejepa.structure import descriptors  # brings the compiler with it: only where it is needed

    return side_by_side(features, descriptors(graph, names))


def side_by_side(features: Features, places: FloatArray) -> Features:
    """Features and descriptors of the same nodes, sparse if the features are."""
    if not features.shape[1]:
        return places
    if sp.issparse(features):
        return sp.csr_array(sp.hstack([features, sp.csr_array(places)], format="csr"))
    return np.column_stack([features, places])
