"""The rows of edges and nodes that make a graph, read from a table or a matrix."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nodejepa.errors import Advice, GraphError, Setting
from nodejepa.graph_checks import Features
from nodejepa.io.column_content import interpret, undecorated
from nodejepa.io.column_names import frame_indexes
from nodejepa.io.delimited import TextTable
from nodejepa.io.edge_columns import edge_columns
from nodejepa.io.id_column import Ends, guess_id_column
from nodejepa.io.identifiers import IdColumn
from nodejepa.io.matrices import MatrixFile, Positions
from nodejepa.io.reading_options import ReadingOptions, ReadReport
from nodejepa.io.tables import InputTable


@dataclass(frozen=True)
class Edges:
    """Edges with ids in columns (``ids``) or as ``positions``; one weight each, or none."""

    ids: tuple[IdColumn, IdColumn] | None
    positions: tuple[Positions, Positions] | None
    weight: npt.NDArray[Any] | None
    num_nodes: int | None = None


@dataclass(frozen=True)
class Nodes:
    """Rows of nodes: a table, a matrix, or nothing but their number."""

    where: str = ""
    typed: bool = True
    table: pa.Table | None = None
    matrix: Features | None = None
    ids: IdColumn | None = None

    @property
    def rows(self) -> int | None:
        """How many there are, if anything says so."""
        if self.table is not None:
            return int(self.table.num_rows)
        if self.matrix is not None:
            return int(self.matrix.shape[0])
        return None if self.ids is None else len(self.ids.values)


def read_edge_table(table: InputTable, reading: ReadingOptions, report: ReadReport) -> Edges:
    """The ends and weights of an edge list."""
    first, second, heavy = edge_columns(table, reading, report)
    rows = table.read([first, second, *([heavy] if heavy else [])], "Reading edges")
    report.edge_rows = rows.num_rows
    weights = read_weights(rows[heavy], table, heavy, report) if heavy else None
    start, end = (
        IdColumn(rows[c], table.typed, f"{table.where}, column {c!r}", f"{c}:" if reading.bipartite else "")
        for c in (first, second)
    )
    return Edges((start, end), None, weights)


def read_weights(
    values: pa.ChunkedArray, table: InputTable, name: str, report: ReadReport, before: int = 0
) -> npt.NDArray[np.float64]:
    """Edge weights as numbers, finite and not negative; ``before`` rows of the file were read already."""
    where = f"{table.where}, column {name!r}"
    advice = Advice(
        "Correct it, or leave weights out with ", Setting("weight", False), "; rows are counted from 1."
    )
    if not len(values):
        return np.zeros(0)
    content = interpret(values, table.typed, where)
    if content.kind not in ("numeric", "boolean"):
        raise GraphError("edge weights are not numbers", where=where, fix=advice)
    if content.guess:
        report.note(f"column {name!r}: {content.guess}.")
    numbers = content.numbers[:, 0]
    bad = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
    if bad.size:
        shown = "missing" if np.isnan(numbers[bad[0]]) else numbers[bad[0]]
        raise GraphError(
            f"the weight of row {before + bad[0] + 1} is {shown} ({bad.size} such)", where=where, fix=advice
        )
    return numbers


def read_node_table(
    table: InputTable, reading: ReadingOptions, report: ReadReport, ends: tuple[IdColumn, IdColumn] | None
) -> Nodes:
    """Ids, features and labels of a node table; the label column comes last in it.

    ``ends`` are the ids in the edges; none where rows are matched by position.
    """
    names = [str(report.edge_columns.get(end)) for end in ("source", "target")]
    read = None if ends is None else lambda: dict(zip(names, ends, strict=True))
    id_column, wanted = node_columns(table, reading, report, read)
    labels = reading.labels
    named = [name for name in (id_column, labels) if name is not None]
    rows = table.read(list(dict.fromkeys([*wanted, *named])), "Reading nodes")
    report.node_rows, report.id_column = rows.num_rows, id_column
    ids = None
    if id_column is not None:
        apart = reading.bipartite and id_column in report.edge_columns.values()
        place = f"{table.where}, column {id_column!r}"
        ids = IdColumn(rows[id_column], table.typed, place, f"{id_column}:" if apart else "")
    kept = rows.select([*wanted, *([labels] if labels else [])])
    return Nodes(table.where, table.typed, kept, None, ids)


def node_columns(
    table: InputTable, reading: ReadingOptions, report: ReadReport, ends: Callable[[], Ends] | None
) -> tuple[str | None, list[str]]:
    """The column of ids of a node table, if there is one, and the columns that become features.

    ``ends`` reads ids of the edges, as :func:`guess_id_column` has it.
    """
    id_column, labels = reading.id_column, reading.labels
    for name in reading.drop:
        table.find(name, "drop")
    if id_column is not None:
        table.find(id_column, "id_column")
    else:
        id_column = guess_id_column(table, reading, report, ends)
    if labels is not None and table.find(labels, "labels") == id_column:
        raise GraphError(f"{labels!r} names the nodes and cannot be their label", where=table.where)
    if reading.columns is not None:
        wanted = [table.find(name, "columns") for name in reading.columns]
    else:
        wanted = [name for name in table.names if name not in (id_column, labels, *reading.drop)]
        for index in set(frame_indexes(table.names)) & set(wanted):
            # row numbers: where rows are sorted by class they would give the class away
            wanted.remove(index)
            report.drop(index, said := "it is the unnamed index of a data frame", said)
    return id_column, [name for name in dict.fromkeys(wanted) if name != labels]


def read_node_matrix(file: MatrixFile, report: ReadReport, *, features: bool) -> Nodes | None:
    """A matrix of features, which must be there if ``features``, and ids; None if there is neither."""
    matrix = file.features() if features or file.has_features() else None
    found = file.node_ids()
    if matrix is None and found is None:
        return None
    size = int(matrix.shape[0]) if matrix is not None else len(np.ravel(found))  # type: ignore[arg-type]
    report.node_rows = size
    if found is None:
        return Nodes(file.where, True, None, matrix)
    if found.shape != (size,) or found.dtype.kind not in "iuU":
        raise GraphError(f"ids are {found.dtype} of shape {found.shape} for {size} nodes", where=file.where)
    values = pa.chunked_array([pa.array(found.tolist() if found.dtype.kind == "U" else found)])
    return Nodes(file.where, True, None, matrix, IdColumn(values, True, f"{file.where}, node ids"))


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
