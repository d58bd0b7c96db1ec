"""Columns of a node table that is larger than memory -> a file of features, encoded as in memory.

Two passes over the table: one finds out how each column is encoded, one encodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from nodejepa.errors import Advice, GraphError, Setting
from nodejepa.graph_features import read_features
from nodejepa.io.column_content import ColumnContent, expect, interpret
from nodejepa.io.encode_columns import count_filled, encode_column, join_blocks, worth_sparse
from nodejepa.io.feature_columns import FeatureColumn, count_missing, refuse_infinite
from nodejepa.io.feature_schema import FeatureSchema, say_missing
from nodejepa.io.fit_columns import ColumnFit, Useless
from nodejepa.io.read_report import ReadReport
from nodejepa.io.reading_options import ReadingOptions
from nodejepa.io.target_columns import looks_like_target, warn_of_targets
from nodejepa.store.feature_rows import FeatureWriter, turn_form
from nodejepa.store.positions import Tables

_ADDED_AT_ONCE = 1 << 14


def write_features(
    tables: Tables, added: int, reading: ReadingOptions, folder: Path, report: ReadReport
) -> tuple[FeatureSchema, int | None]:
    """Write X; ``added`` nodes without a row come last, with all values missing.

    How columns are encoded comes back, and how many entries are kept where X is sparse, as in memory.
    """
    schema = _fit(tables, added, reading, report)
    if not schema.width:
        raise GraphError(
            "the node table has no column that can be a feature",
            where=tables.nodes.where,
            fix="Give columns of numbers, categories or lists.",
        )
    rows = filled = 0
    with ExitStack() as stack:
        writer: FeatureWriter | None = None
        for batch in _batches(tables, added, "Encoding columns"):
            blocks = []
            for column in schema.columns:
                place = _place(tables, column.name)
                content = expect(column.cell_kind, batch[column.name], tables.nodes.typed, place)
                content = refuse_infinite(content, place, as_missing=reading.infinite == "missing")
                blocks.append(encode_column(column, content, batch.num_rows)[0])
            filled += count_filled(blocks)
            if writer is None:  # as the first rows are: only all of them can tell
                sparse = worth_sparse(filled, batch.num_rows * schema.width)
                writer = stack.enter_context(FeatureWriter(folder, sparse=sparse))
            x = read_features(join_blocks(blocks, batch.num_rows, sparse=writer.sparse), rows)
            assert x is not None
            writer.add(x)
            rows += batch.num_rows
    assert writer is not None
    sparse, entries = worth_sparse(filled, rows * schema.width), writer.entries
    if sparse != writer.sparse:
        entries = turn_form(folder, (rows, schema.width), sparse=sparse)
    return schema, entries if sparse else None


def _fit(tables: Tables, added: int, reading: ReadingOptions, report: ReadReport) -> FeatureSchema:
    def fresh(name: str) -> ColumnFit:
        return ColumnFit(name, text=reading.text, scale=reading.scale, where=_place(tables, name))

    seen = {name: fresh(name) for name in tables.features}
    first: dict[str, ColumnContent] = {}
    missing = dict.fromkeys(seen, 0)
    for batch in _batches(tables, added, "Looking at columns"):
        for name, column in seen.items():
            place = _place(tables, name)
            content = interpret(batch[name], tables.nodes.typed, place)
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
        say_missing(fitted, missing[name], reading.missing, _place(tables, name), report)
        columns.append(fitted)
        report.feature_columns[name] = fitted.kind
        if reading.columns is None and looks_like_target(fitted, first[name]):
            targets.append(name)
    warn_of_targets(targets, report)
    schema = FeatureSchema(tuple(columns), missing=reading.missing, infinite=reading.infinite)
    for group in schema.groups():
        report.note(f"{group.words}.")
    return schema


def _batches(tables: Tables, added: int, label: str) -> Iterator[pa.Table]:
    """Rows of the table, then rows of nothing for nodes that only edges name."""
    yield from tables.nodes.batches(tables.features, label)
    kinds = {name: tables.nodes.kind_of(name) for name in tables.features}
    for start in range(0, added, _ADDED_AT_ONCE):
        size = min(_ADDED_AT_ONCE, added - start)
        yield pa.table({name: pa.nulls(size, kind) for name, kind in kinds.items()})


def _place(tables: Tables, name: str) -> str:
    return f"{tables.nodes.where}, column {name!r}"


def refuse_structural(reading: ReadingOptions) -> None:
    """Structural features need the whole graph in memory."""
    if reading.structural:
        raise GraphError(
            "structural features cannot be computed on disk",
            where=Advice(Setting("structural")),
            fix="Give columns of a node table; the degree of every node is one that any database computes.",
        )
