"""A first row that was taken for the names of columns and holds ids instead."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from nodejepa.io.column_content import undecorated
from nodejepa.io.delimited import TextTable
from nodejepa.io.identifiers import IdColumn
from nodejepa.io.matrices import MatrixFile
from nodejepa.io.read_report import ReadReport
from nodejepa.io.reading_options import ReadingOptions
from nodejepa.io.rows import Edges, Nodes
from nodejepa.io.tables import InputTable


def data_in_header(
    edge_source: InputTable | MatrixFile,
    node_source: InputTable | MatrixFile | None,
    read: Edges,
    rows: Nodes | None,
    reading: ReadingOptions,
    report: ReadReport,
) -> str | None:
    """``"edges"`` or ``"nodes"`` if the header of that file is a guess, and ids occur in it."""
    ends = [*(read.ids or ())]
    known = [*ends, *([rows.ids] if rows is not None and rows.ids is not None else [])]
    named = [str(report.edge_columns.get(end)) for end in ("source", "target")]
    asked: object = reading.source or reading.target or reading.weight
    if _is_guess(edge_source) and not asked and all(_occurs(name, known) for name in named):
        return "edges"
    asked = reading.id_column or reading.labels or reading.columns or reading.drop
    if _is_guess(node_source) and not asked and _occurs(str(report.id_column), ends):
        return "nodes"
    return None


def _is_guess(source: InputTable | MatrixFile | None) -> bool:
    text = source.source if isinstance(source, InputTable) else None
    return isinstance(text, TextTable) and text.doubtful


def _occurs(name: str, columns: Sequence[IdColumn]) -> bool:
    for column in columns:
        values = undecorated(column.values)
        if pa.types.is_integer(values.type):
            values = values.cast(pa.string())
        text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
        if text and pc.any(pc.equal(pc.utf8_trim(values, " \t"), name)).as_py():
            return True
    return False
