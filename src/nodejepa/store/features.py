"""Columns of a node table that is larger than memory, and descriptors of the graph -> a file of features.

Two passes over the table, one finds out how each column is encoded, one encodes: as in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nodejepa.errors import Advice, ConfigError, GraphError, Setting
from nodejepa.graph_checks import read_features
from nodejepa.io.assemble import add_structure, side_by_side, structural_names, with_structure
from nodejepa.io.column_content import ColumnContent, expect, interpret
from nodejepa.io.encode_columns import count_filled, encode_column, join_blocks, worth_sparse
from nodejepa.io.feature_columns import (
    FeatureColumn,
    count_missing,
    looks_like_target,
    refuse_infinite,
    warn_of_targets,
)
from nodejepa.io.feature_schema import FeatureSchema, say_missing
from nodejepa.io.fit_columns import ColumnFit, Useless
from nodejepa.io.load import LoadedGraph, read_graph
from nodejepa.io.reading_options import COMPARABLE, ReadingOptions, ReadReport
from nodejepa.io.tables import InputTable
from nodejepa.memory import Room
from nodejepa.store.feature_rows import FeatureWriter, turn_form
from nodejepa.store.layout import Manifest
from nodejepa.store.positions import Tables
from nodejepa.store.seal import unsealed_graph

_ADDED_AT_ONCE = 1 << 14


def storable(reading: ReadingOptions) -> ReadingOptions:
    """Refuse what no store has: the adjacency's coordinates take 128 vectors and more in memory."""
    if "adjacency" in (reading.structural or ()):
        raise ConfigError(
            "the structural feature 'adjacency' is made of graphs in memory only",
            where=Advice(Setting("structural")),
            fix=f"Leave it out; a graph store may have {', '.join(COMPARABLE)}.",
        )
    return reading


def read_in_memory(edges: Any, nodes: Any, reading: ReadingOptions) -> LoadedGraph:
    """As :func:`read_graph`; without other features, with those that a table on disk gets."""
    if reading.structural is not None:
        return read_graph(edges, nodes, reading)
    loaded = read_graph(edges, nodes, reading, structural=())
    names = structural_names(None, loaded.schema, loaded.report)
    graph, schema = add_structure(loaded.graph, loaded.schema, names, loaded.report, Room.of())
    return replace(loaded, graph=graph, schema=schema)


def write_features(
    tables: Tables, bare: Manifest, reading: ReadingOptions, folder: Path, report: ReadReport
) -> tuple[FeatureSchema, int | None]:
    """Write X: the columns of the node table, then structural descriptors, as the reader in memory does.

    How it was made comes back, and how many entries are kept where X is sparse, as in memory.

    Args:
        tables: nodes that only edges name come last, with all values missing.
        bare: of the graph whose edges are in ``folder``.
        reading: how.
        folder: of the store.
        report: what was guessed and left out is noted there.
    """
    table, added = tables.nodes, report.added_nodes
    own = FeatureSchema() if table is None else _fit(table, tables.features, added, reading, report)
    schema = with_structure(own, structural_names(reading.structural, own, report), report)
    if not schema.width:
        raise GraphError(
            "there is no column that can be a feature",
            where=report.node_file or report.edge_file,
            fix=Advice(
                "Give columns of numbers, categories or lists, or allow ", Setting("structural"), " ones."
            ),
        )
    places = np.zeros((bare.nodes, 0), dtype=np.float32)
    if schema.structural:
        from nodejepa.structure import descriptors  # brings the compiler with it

        places = descriptors(unsealed_graph(bare, folder), schema.described_by)
    if table is None or not own.width:
        with FeatureWriter(folder, sparse=False) as dense:
            dense.add(places)
        return schema, None
    rows = filled = 0
    with ExitStack() as stack:
        writer: FeatureWriter | None = None
        for batch in _batches(table, tables.features, added, "Encoding columns"):
            blocks = []
            for column in own.columns:
                place = _place(table, column.name)
                content = expect(column.cell_kind, batch[column.name], table.typed, place)
                content = refuse_infinite(content, place, as_missing=reading.infinite == "missing")
                blocks.append(encode_column(column, content, batch.num_rows, rows)[0])
            filled += count_filled(blocks)
            if writer is None:  # as the first rows are: only all of them can tell
                sparse = worth_sparse(filled, batch.num_rows * own.width)
                writer = stack.enter_context(FeatureWriter(folder, sparse=sparse))
            x = read_features(join_blocks(blocks, batch.num_rows, sparse=writer.sparse), rows)
            assert x is not None
            writer.add(side_by_side(x, places[rows : rows + batch.num_rows]))
            rows += batch.num_rows
    assert writer is not None
    sparse, entries = worth_sparse(filled, rows * own.width), writer.entries
    if sparse != writer.sparse:
        entries = turn_form(folder, (rows, schema.width), sparse=sparse)
    return schema, entries if sparse else None


def _fit(
    table: InputTable, names: tuple[str, ...], added: int, reading: ReadingOptions, report: ReadReport
) -> FeatureSchema:
    seen = {name: ColumnFit(name, reading, _place(table, name)) for name in names}
    first: dict[str, ColumnContent] = {}
    missing = dict.fromkeys(seen, 0)
    for batch in _batches(table, names, added, "Looking at columns"):
        for name, column in seen.items():
            place = _place(table, name)
            content = interpret(batch[name], table.typed, place)
            content = refuse_infinite(content, place, as_missing=reading.infinite == "missing")
            column.look(content, batch.num_rows)
            missing[name] += count_missing(content, batch.num_rows)
            if content.guess:
                report.note(f"column {name!r}: {content.guess}.")
            first.setdefault(name, content)
    columns: list[FeatureColumn] = []
    targets = []
    for name, column in seen.items():
        fitted = column.fitted()
        if isinstance(fitted, Useless):
            report.drop(name, *fitted)
            continue
        say_missing(fitted, missing[name], reading.missing, _place(table, name), report)
        columns.append(fitted)
        report.feature_columns[name] = fitted.kind
        if reading.columns is None and looks_like_target(fitted, first[name]):
            targets.append(name)
    warn_of_targets(targets, report)
    schema = FeatureSchema(tuple(columns), missing=reading.missing, infinite=reading.infinite)
    for group in schema.groups():
        report.note(f"{group.words}.")
    return schema


def _batches(table: InputTable, names: tuple[str, ...], added: int, label: str) -> Iterator[pa.Table]:
    """Rows of the table, then rows of nothing for nodes that only edges name."""
    if not names:
        return
    yield from table.batches(names, label)
    kinds = {name: table.kind_of(name) for name in names}
    for start in range(0, added, _ADDED_AT_ONCE):
        size = min(_ADDED_AT_ONCE, added - start)
        yield pa.table({name: pa.nulls(size, kind) for name, kind in kinds.items()})


def _place(table: InputTable, name: str) -> str:
    return f"{table.where}, column {name!r}"
