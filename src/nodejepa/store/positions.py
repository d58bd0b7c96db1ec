"""The first step of a store: every end of every edge as the position of its node, in plain files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nodejepa.errors import Advice, GraphError, Setting
from nodejepa.io.identifiers import IdColumn, as_text, merged_ids, plain_ids, prefixed, whole_numbers
from nodejepa.io.join import is_one_of, refuse_mixed_spaces
from nodejepa.io.reading_options import ReadingOptions, ReadReport
from nodejepa.io.rows import read_weights
from nodejepa.io.tables import InputTable
from nodejepa.store.edges import EdgeFiles
from nodejepa.store.ids import write_ids
from nodejepa.store.layout import put
from nodejepa.store.numbering import Numbering

_DROP = Setting("unknown_ids", "drop")


@dataclass(frozen=True)
class Tables:
    """The opened files and which of their columns mean what."""

    edges: InputTable
    nodes: InputTable | None
    source: str
    target: str
    weight: str | None
    ids: str | None
    features: tuple[str, ...]
    labels: str | None = None


_Column: TypeAlias = tuple[InputTable, str, str]  # its table, its name, what ids begin with


class _Ids:
    """Reads columns of ids batch by batch, all written in one way."""

    def __init__(self, tables: Tables, reading: ReadingOptions, report: ReadReport) -> None:
        apart = bool(reading.bipartite)
        edges, nodes = tables.edges, tables.nodes
        self.starts = (edges, tables.source, f"{tables.source}:" if apart else "")
        self.ends = (edges, tables.target, f"{tables.target}:" if apart else "")
        self.rows: _Column | None = None
        if nodes is not None and tables.ids is not None:
            described = apart and tables.ids in (tables.source, tables.target)
            self.rows = (nodes, tables.ids, f"{tables.ids}:" if described else "")
        columns = [*([self.rows] if self.rows else []), self.starts, self.ends]
        self.untyped = not all(table.typed for table, _, _ in columns)
        kinds = [self._kind(*column) for column in columns]
        self.whole = all(kind == pa.int64() for kind in kinds)
        self.declared_text = any(
            table.typed and not prefix and kind == pa.string()
            for (table, _, prefix), kind in zip(columns, kinds, strict=True)
        )
        if self.declared_text and not all(kind == pa.string() for kind in kinds):
            report.note("ids are text in one file and numbers in another: numbers are compared as text.")
        self.report = report

    def _kind(self, table: InputTable, name: str, prefix: str) -> pa.DataType:
        empty = pa.chunked_array([], type=table.kind_of(name))
        column = IdColumn(empty, table.typed, table.where, prefix)
        return prefixed(plain_ids(column), column).type

    def batches(
        self, column_of: _Column, more: str | None, label: str
    ) -> Iterator[tuple[pa.ChunkedArray, Any]]:
        """Ids of a column, int64 or text, and the values of another column beside them."""
        table, name, prefix = column_of
        before = 0
        for batch in table.batches([name, *([more] if more else [])], label):
            column = IdColumn(batch[name], table.typed, f"{table.where}, column {name!r}", prefix, before)
            plain = plain_ids(column)
            if plain.type == pa.uint64():
                raise GraphError(
                    "an id is 2^63 or more", where=column.where, fix="Store such ids as text in both files."
                )
            if prefix and not table.typed and pc.any(pc.match_substring(plain, ".")).as_py():
                raise GraphError(
                    "an id of two kinds of nodes holds a dot",
                    where=column.where,
                    fix="It may be a whole number that was written as 5.0: store ids as parquet.",
                )
            values = prefixed(plain, column)
            yield values if self.whole else self._text(values), batch[more] if more else None
            before += batch.num_rows

    def _text(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        text = as_text(values)
        if not self.untyped:
            return text
        trimmed = pc.utf8_trim(text, " \t")
        if pc.any(pc.not_equal(trimmed, text)).as_py():
            self.report.note("spaces around ids were removed.")
        return trimmed


def _where(tables: Tables) -> str:
    return tables.nodes.where if tables.nodes is not None else ""


def number_nodes(
    tables: Tables, reading: ReadingOptions, folder: Path, report: ReadReport
) -> tuple[EdgeFiles, int]:
    """Write both ends of the edges as positions, the weights and the ids; the number of nodes comes back.

    Nodes are numbered as the reader in memory does: those of the node table first, in its order, then those
    at the start of edges, then those that are only at the end of some.
    """
    ids = _Ids(tables, reading, report)
    numbers = Numbering(8 if ids.whole else 0)
    for values, _ in ids.batches(ids.rows, None, "Numbering nodes") if ids.rows else ():
        before = len(numbers)
        _refuse_repeated(numbers.codes(values), before, values, _where(tables))
    known = report.node_rows = len(numbers)
    edges = EdgeFiles(folder / "source", folder / "target", folder / "weight" if tables.weight else None, 0)
    with edges.source.open("wb") as file:
        for values, _ in ids.batches(ids.starts, None, "Numbering starts of edges"):
            put(file, numbers.codes(values))
    rows = 0
    with edges.target.open("wb") as file, (folder / "weight").open("wb") as heavy:
        for values, weights in ids.batches(ids.ends, tables.weight, "Numbering ends of edges"):
            put(file, numbers.codes(values))
            if tables.weight is not None:
                put(heavy, read_weights(weights, tables.edges, tables.weight, report, rows))
            rows += len(values)
    report.edge_rows = rows
    edges = EdgeFiles(edges.source, edges.target, edges.weight, rows)
    distinct = numbers.ids()
    del numbers
    if ids.untyped and not ids.whole:
        merged, place = merged_ids(distinct, np.arange(len(distinct), dtype=np.int32), report)
        if len(merged) < len(distinct):
            edges = _rewritten(edges, lambda a, b: (place[a], place[b], None))
            if len(np.unique(place[:known])) < known:
                raise GraphError("ids of nodes appear more than once, as 5 and 5.0", where=_where(tables))
        distinct = merged
    whole = distinct.to_numpy() if ids.whole else None if ids.declared_text else whole_numbers(distinct)
    if whole is not None and whole.dtype != np.int64:
        whole = None  # beyond 2^63: kept as they are written
    report.id_kind = "text" if whole is None else "integer"
    named = distinct if whole is None else whole
    size, edges = _with_unknown(edges, known, named, reading, report, tables)
    write_ids(named[:size], folder)
    return edges, size


def _with_unknown(
    edges: EdgeFiles, known: int, ids: Any, reading: ReadingOptions, report: ReadReport, tables: Tables
) -> tuple[int, EdgeFiles]:
    """How many nodes there are, and the edges among them, by the policy for ids that only edges name."""
    starts, ends = np.zeros(len(ids), dtype=bool), np.zeros(len(ids), dtype=bool)
    outside = 0
    for source, target, _ in edges.pieces():
        starts[source], ends[target] = True, True
        outside += int(((source >= known) | (target >= known)).sum())
    if reading.bipartite is None:
        described = tables.nodes is not None and len(ids) == known and not is_one_of(tables.ids, report)
        first, second = (np.flatnonzero(seen).astype(np.int32) for seen in (starts, ends))
        refuse_mixed_spaces(first, second, ids, described, report)
    if tables.nodes is None:
        if not len(ids):
            raise GraphError(
                "there are no edges", where=report.edge_file, fix="Give at least one, or a node table."
            )
        return len(ids), edges
    if not outside:
        return known, edges
    report.unknown_id_rows, strange = outside, len(ids) - known
    name, where = _shown(ids[known]), f"{_where(tables)}, column {tables.ids!r}"
    if not (starts[:known].any() or ends[:known].any()):
        raise GraphError(
            f"no edge names a node of the node table: the first names {name}, the table {_shown(ids[0])}",
            where=where,
            fix="Name the right id column, and write ids the same way in both files.",
        )
    said = f"{strange} ids of the edges are not in the node table, such as {name}"
    if reading.unknown_ids == "refuse":
        raise GraphError(said, where=where, fix=Advice("Add them, or say ", _DROP, "."))
    if reading.unknown_ids == "add":
        report.added_nodes = strange
        report.note(Advice(f"{said}: they are added without features (", _DROP, " leaves their edges out)."))
        return len(ids), edges
    report.note(f"{said}: {outside} edges are left out.")
    return known, _rewritten(edges, lambda a, b: (a, b, (a < known) & (b < known)))


def _rewritten(edges: EdgeFiles, change: Any) -> EdgeFiles:
    """The edges with other positions, or only those that are kept."""
    names = [path for path in (edges.source, edges.target, edges.weight) if path is not None]
    fresh = [path.with_name(f"{path.name}.new") for path in names]
    files = [path.open("wb") for path in fresh]
    count = 0
    try:
        for source, target, weight in edges.pieces():
            a, b, keep = change(source, target)
            keep = slice(None) if keep is None else keep
            for file, values in zip(files, (a, b, weight), strict=False):
                put(file, values[keep])
            count += len(a[keep])
    finally:
        for file in files:
            file.close()
    for new, old in zip(fresh, names, strict=True):
        new.replace(old)
    return EdgeFiles(edges.source, edges.target, edges.weight, count)


def _refuse_repeated(codes: npt.NDArray[np.int32], before: int, values: Any, where: str) -> None:
    wrong = np.flatnonzero(codes != np.arange(before, before + len(codes)))
    if wrong.size:
        row = int(wrong[0])
        raise GraphError(
            f"id {values[row].as_py()!r} of row {before + row + 1} appears more than once",
            where=where,
            fix="Keep one row a node; rows are counted from 1.",
        )


def _shown(name: Any) -> str:
    return repr(name.as_py() if isinstance(name, pa.Scalar) else name.item())[:100]
