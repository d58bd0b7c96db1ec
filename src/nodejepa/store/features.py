"""Columns of a node table that is larger than memory -> a file of features, encoded as in memory.

Two passes over the table: one finds out how each column is encoded, one encodes. Features are kept dense.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from nodejepa.errors import Advice, GraphError, Setting
from nodejepa.io.column_content import ColumnContent, expect, interpret
from nodejepa.io.encode_columns import encode_column, join_blocks
from nodejepa.io.feature_columns import (
    FeatureColumn,
    count_missing,
    looks_like_target,
    refuse_infinite,
    warn_of_targets,
)
from nodejepa.io.feature_schema import FeatureSchema, say_missing
from nodejepa.io.fit_columns import ColumnFit, Useless
from nodejepa.io.reading_options import ReadingOptions, ReadReport
from nodejepa.store.layout import put
from nodejepa.store.positions import Tables

_ADDED_AT_ONCE = 1 << 14


def write_features(
    tables: Tables, added: int, reading: ReadingOptions, folder: Path, report: ReadReport
) -> FeatureSchema:
    """Write ``features.f32``; ``added`` nodes without a row come last, with all values missing."""
    schema = _fit(tables, added, reading, report)
    if not schema.width:
        raise GraphError(
            "the node table has no column that can be a feature",
            where=tables.nodes.where,
            fix="Give columns of numbers, categories or lists.",
        )
    before = 0
    with (folder / "features.f32").open("wb") as file:
        for batch in _batches(tables, added, "Encoding columns"):
            blocks = []
            for column in schema.columns:
                place = _place(tables, column.name)
                content = expect(column.cell_kind, batch[column.name], tables.nodes.typed, place)
                content = refuse_infinite(content, place, as_missing=reading.infinite == "missing")
                blocks.append(encode_column(column, content, batch.num_rows)[0])
            x = join_blocks(blocks, batch.num_rows)
            dense = x if isinstance(x, np.ndarray) else x.toarray()
            if not np.isfinite(dense).all():
                row, at = np.argwhere(~np.isfinite(dense))[0]
                raise GraphError(
                    f"row {before + row}, column {at} is {dense[row, at]}",
                    where="features",
                    fix="Fill in or drop missing and infinite values.",
                )
            put(file, dense)
            before += len(dense)
    return schema


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
