"""The features of a graph: columns of its tables, and descriptors of its structure beside or instead."""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from nodejepa.errors import GraphError
from nodejepa.graph import Graph, RowGraph
from nodejepa.graph_checks import Features, FloatArray
from nodejepa.memory import Room
from nodejepa.tables.columns import join_blocks
from nodejepa.tables.convert import as_graph
from nodejepa.tables.options import (
    ADJACENCY_UP_TO,
    COMPARABLE,
    STRUCTURAL,
    ReadingOptions,
    ReadReport,
    structural_width,
    structure_alone,
)
from nodejepa.tables.schema import FeatureSchema
from nodejepa.tables.table import Tables


def fit_features(
    graph: Graph, tables: Tables, report: ReadReport, reading: ReadingOptions, room: Room
) -> tuple[Graph, FeatureSchema]:
    """The graph with the features of its tables, and how they were made."""
    features: Features = np.zeros((graph.num_nodes, 0), dtype=np.float32)
    schema = FeatureSchema()
    if tables.x is not None:
        features, schema = tables.x, FeatureSchema(matrix_width=int(tables.x.shape[1]))
    elif tables.nodes is not None and tables.features:
        schema, blocks = FeatureSchema.fit(tables.nodes, tables.features, report.added_nodes, reading, report)
        features = join_blocks(blocks, graph.num_nodes)
    names = structural_names(reading.structural, schema, report, graph.num_nodes)
    return add_structure(graph.with_features(features), schema, names, report, room)


def add_structure(
    graph: Graph, schema: FeatureSchema, names: tuple[str, ...], report: ReadReport, room: Room
) -> tuple[Graph, FeatureSchema]:
    """The graph with structural features beside its own, and how all of them are made."""
    schema = with_structure(schema, names, report)
    if "adjacency" in names:
        schema = replace(schema, only_for=graph.structure_hash)
    return _with_structure(graph, names, room), schema


def with_structure(schema: FeatureSchema, names: tuple[str, ...], report: ReadReport) -> FeatureSchema:
    """The schema with structural features of these names, if there are any."""
    if not names:
        return schema
    said = _listed(names)
    report.note(
        f"structural features are added to the others: {said}."
        if schema.width
        else f"features are structural: {said}."
    )
    if "adjacency" in names:
        report.note('a model of the adjacency serves this graph alone; structural="all" leaves it out.')
    return replace(schema, structural=structural_width(names), described_by=names)


def apply_schema(
    graph: Graph, tables: Tables, schema: FeatureSchema, report: ReadReport, room: Room
) -> Graph:
    """The graph with features made as those the schema was fitted on."""
    refuse_another(graph, schema.only_for)
    features: Features = np.zeros((graph.num_nodes, 0), dtype=np.float32)
    where = "nodes" if tables.nodes is None else tables.nodes.where
    if tables.x is not None and tables.matrix is not None:
        schema.check_matrix(tables.x, tables.matrix.where)
        features = tables.x
    elif schema.matrix_width is not None:
        raise GraphError(
            f"a matrix of {schema.matrix_width} columns is expected as node features",
            where=where,
            fix="Give the same features as those the model was trained on, as npz or npy.",
        )
    elif tables.nodes is not None and tables.matrix is None:
        features = schema.apply(tables.nodes, tables.features, report.added_nodes, report)
    elif schema.columns:
        raise GraphError(
            "the features need a node table, but there is none",
            where="nodes",
            fix=f"It has columns {', '.join(repr(c.name) for c in schema.columns[:10])}.",
        )
    graph = graph.with_features(features)
    return _with_structure(graph, schema.described_by, room) if schema.structural else graph


def refuse_another(graph: RowGraph, only_for: str | None) -> None:
    """Refuse any graph but the one whose adjacency was learned from; ``only_for`` is its hash, if any was."""
    if only_for is not None and graph.structure_hash != only_for:
        raise GraphError(
            "the model was trained on the adjacency of another graph, or of this one with its nodes in "
            "another order: its columns mean nothing here",
            where="edges",
            fix="Train on this graph. A model for several graphs is trained on descriptors, which mean the "
            'same on all of them: structural="all" where files are read, '
            "graph.with_features(nodejepa.descriptors(graph)) in Python.",
        )


def graph_with_features(source: Any, *, comparable: bool = False, room: Room | None = None) -> Graph:
    """As :func:`as_graph`; a graph without features is described by its structure, as a file without is.

    Args:
        source: the graph.
        comparable: by descriptors alone, which mean the same on every graph.
        room: memory for it; what is available if not given.
    """
    graph = as_graph(source)
    if graph.num_features or graph.num_nodes < 2:
        return graph
    names = COMPARABLE if comparable else structure_alone(graph.num_nodes)
    return _with_structure(graph, names, room or Room.of())


def structural_names(
    asked: tuple[str, ...] | None, schema: FeatureSchema, report: ReadReport, nodes: int | None = None
) -> tuple[str, ...]:
    """The structure to add to the features of a schema: what is asked for, or the usual if there are none.

    ``nodes`` is how many are described; none of a graph on disk, which never has the adjacency's coordinates.
    """
    if asked is not None:
        return tuple(name for name in STRUCTURAL if name in asked)
    if schema.width:
        return ()
    names = COMPARABLE if nodes is None else structure_alone(nodes)
    if nodes is not None and "adjacency" not in names:
        report.note(
            f"the graph has more than {ADJACENCY_UP_TO:,} nodes: the adjacency itself, which describes "
            "smaller graphs without features as well, is left out; name it with structural=... to have it."
        )
    return names


def _listed(names: tuple[str, ...]) -> str:
    words = {"pagerank": "PageRank", "spectral": "spectral coordinates", "adjacency": "the adjacency itself"}
    said = [words.get(name, name) for name in names]
    return " and ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said)


def _with_structure(graph: Graph, names: tuple[str, ...], room: Room) -> Graph:
    """The graph with structural features beside its own."""
    if not names:
        return graph
    # brings the compiler with it: only where it is needed
    from nodejepa.structure import descriptors, node_adjacency

    places = descriptors(graph, [name for name in names if name in COMPARABLE])
    if "adjacency" in names:
        whole = node_adjacency(graph, STRUCTURAL["adjacency"], room)
        heard, own = float(np.sum(np.square(places, dtype=np.float64))), float(np.sum(whole**2))
        scale = np.sqrt((heard or graph.num_nodes) / own) if own else 0.0  # as all descriptors together
        places = np.column_stack([places, (scale * whole).astype(np.float32)])
    made = graph.with_features(side_by_side(graph.features, places))
    return replace(made, incomparable="adjacency" in names, structural=places.shape[1])


def side_by_side(features: Features, places: FloatArray) -> Features:
    """Features and structural ones of the same nodes, sparse if the features are."""
    if not features.shape[1]:
        return places
    if sp.issparse(features):
        return sp.csr_array(sp.hstack([features, sp.csr_array(places)], format="csr"))
    return np.column_stack([features, places])
