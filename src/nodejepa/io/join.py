"""Edges and nodes brought together: edges as positions of nodes, and the rows of nodes in that order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nodejepa.errors import GraphError
from nodejepa.graph_checks import Features
from nodejepa.io.cells import interpret
from nodejepa.io.edge_columns import edge_columns, guess_id_column
from nodejepa.io.identifiers import IdColumn, number_ids
from nodejepa.io.matrices import MatrixFile
from nodejepa.io.report import ReadReport
from nodejepa.io.tables import Table
from nodejepa.progress import progress_bar

UnknownIds: TypeAlias = Literal["add", "drop", "refuse"]
Positions: TypeAlias = npt.NDArray[np.integer[Any]]


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
        return None if self.matrix is None else int(self.matrix.shape[0])


@dataclass(frozen=True)
class Joined:
    """What a graph is made of; ``ids`` are the users' own, or None for positions."""

    source: Positions
    target: Positions
    weight: npt.NDArray[Any] | None
    num_nodes: int
    ids: npt.NDArray[Any] | None
    nodes: Nodes


def read_edge_table(
    table: Table,
    source: str | None,
    target: str | None,
    weight: str | Literal[False] | None,
    report: ReadReport,
) -> Edges:
    """The ends and weights of an edge list."""
    first, second, heavy = edge_columns(table, source, target, weight, report)
    rows = table.read([first, second, *([heavy] if heavy else [])], "Reading edges")
    report.edge_rows = rows.num_rows
    weights = _weights(rows[heavy], table, heavy) if heavy else None
    start, end = (IdColumn(rows[c], table.typed, f"{table.where}, column {c!r}") for c in (first, second))
    return Edges((start, end), None, weights)


def _weights(values: pa.ChunkedArray, table: Table, name: str) -> npt.NDArray[np.float64]:
    where = f"{table.where}, column {name!r}"
    advice = "Correct it, or leave weights out with weight=False; rows are counted from 1."
    if not len(values):
        return np.zeros(0)
    cells = interpret(values, table.typed, where)
    if cells.kind not in ("numeric", "boolean"):
        raise GraphError("edge weights are not numbers", where=where, fix=advice)
    numbers = cells.numbers[:, 0]
    bad = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
    if bad.size:
        shown = "missing" if np.isnan(numbers[bad[0]]) else numbers[bad[0]]
        raise GraphError(
            f"the weight of row {bad[0] + 1} is {shown} ({bad.size} such)", where=where, fix=advice
        )
    return numbers


def read_node_table(
    table: Table,
    id_column: str | None,
    columns: list[str] | None,
    ignore: list[str],
    labels: str | None,
    report: ReadReport,
    *,
    positional: bool,
) -> Nodes:
    """Ids, features and labels of a node table; the label column comes last in it."""
    for name in ignore:
        table.find(name, "ignore")
    if id_column is not None:
        table.find(id_column, "id_column")
    else:
        id_column = guess_id_column(table, report, positional=positional)
    if labels is not None and table.find(labels, "labels") == id_column:
        raise GraphError(f"{labels!r} names the nodes and cannot be their label", where=table.where)
    if columns is not None:
        wanted = [table.find(name, "columns") for name in columns]
    else:
        wanted = [name for name in table.names if name not in (id_column, labels, *ignore)]
    wanted = [name for name in dict.fromkeys(wanted) if name != labels]
    named = [name for name in (id_column, labels) if name is not None]
    rows = table.read(list(dict.fromkeys([*wanted, *named])), "Reading nodes")
    report.node_rows, report.id_column = rows.num_rows, id_column
    ids = None
    if id_column is not None:
        ids = IdColumn(rows[id_column], table.typed, f"{table.where}, column {id_column!r}")
    kept = rows.select([*wanted, *([labels] if labels else [])])
    if not kept.num_columns:  # a table without columns forgets how many rows it had
        kept = pa.table({"": pa.nulls(rows.num_rows)})
    return Nodes(table.where, table.typed, kept, None, ids)


def read_node_matrix(file: MatrixFile, report: ReadReport) -> Nodes:
    """A matrix of features, a row a node; without ids of their own nodes are called 0, 1, 2, ..."""
    matrix = file.features()
    report.node_rows = int(matrix.shape[0])
    found = file.node_ids()
    names = np.arange(report.node_rows) if found is None else found
    if names.shape != (report.node_rows,) or names.dtype.kind not in "iuU":
        raise GraphError(
            f"ids are {names.dtype} of shape {names.shape} for {report.node_rows} nodes", where=file.where
        )
    values = pa.chunked_array([pa.array(names.tolist() if names.dtype.kind == "U" else names)])
    return Nodes(file.where, True, None, matrix, IdColumn(values, True, f"{file.where}, node ids"))


def join(edges: Edges, nodes: Nodes | None, unknown: UnknownIds, report: ReadReport) -> Joined:
    """Number the nodes: those of the node table first, in its order, then others as the edges name them."""
    if edges.positions is not None:
        return _by_position(edges, edges.positions, nodes, report)
    assert edges.ids is not None
    columns = [*([nodes.ids] if nodes and nodes.ids else []), *edges.ids]
    with progress_bar("Matching ids"):
        ids, codes = number_ids(columns, report)
    source, target = codes[-2:]
    if nodes is None or nodes.ids is None:
        if not ids.size:
            raise GraphError(
                "there are no edges", where=report.edge_file, fix="Give at least one, or a node table."
            )
        return Joined(source, target, edges.weight, ids.size, ids, Nodes())
    _refuse_repeated(codes[0], ids, nodes.ids.where)
    known = len(codes[0])
    outside = (source >= known) | (target >= known)
    if not outside.any():
        return Joined(source, target, edges.weight, ids.size, ids, nodes)
    report.unknown_id_rows = int(outside.sum())
    row = int(np.argmax(outside))
    name = _shown(ids, source[row] if source[row] >= known else target[row])
    strange = ids.size - known
    if outside.all() and not (np.any(source < known) or np.any(target < known)):
        raise GraphError(
            f"no edge names a node of the node table; row 1 names {name}, row 1 of the table {_shown(ids, 0)}",
            where=nodes.ids.where,
            fix="Name the right id column, and write ids the same way in both files.",
        )
    said = f"{strange} ids of the edges are not in the node table, such as {name}"
    if unknown == "refuse" or (unknown == "add" and nodes.matrix is not None):
        raise GraphError(
            f"{said} (row {row + 1})", where=nodes.ids.where, fix='Add them, or say unknown_ids="drop".'
        )
    if unknown == "drop":
        report.note(f"{said}: {report.unknown_id_rows} edges are left out.")
        keep = ~outside
        weight = None if edges.weight is None else edges.weight[keep]
        return Joined(source[keep], target[keep], weight, known, ids[:known], nodes)
    report.added_nodes = strange
    report.note(f'{said}: they are added without features (unknown_ids="drop" leaves their edges out).')
    return Joined(source, target, edges.weight, ids.size, ids, _lengthened(nodes, strange))


def _by_position(
    edges: Edges, positions: tuple[Positions, Positions], nodes: Nodes | None, report: ReadReport
) -> Joined:
    size, ids = edges.num_nodes, None
    if nodes is not None:
        if size is not None and nodes.rows != size:
            raise GraphError(
                f"{nodes.rows} rows of nodes for an adjacency of {size} nodes",
                where=nodes.where,
                fix="Give one row a node, in the order of the adjacency.",
            )
        size = nodes.rows
        if nodes.ids is not None:
            ids, codes = number_ids([nodes.ids], report)
            _refuse_repeated(codes[0], ids, nodes.ids.where)
    if size is None:
        size = int(max(*(end.max(initial=-1) for end in positions))) + 1
        if size > max(1_000_000, 4 * len(positions[0])):
            raise GraphError(
                f"the largest position is {size - 1} but there are only {len(positions[0])} edges",
                where=report.edge_file,
                fix="Number the nodes from 0 without gaps, or give a table of edges, with any ids.",
            )
    return Joined(*positions, edges.weight, size, ids, nodes or Nodes())


def _refuse_repeated(codes: Positions, ids: npt.NDArray[Any], where: str) -> None:
    if not codes.size or int(codes.max()) == codes.size - 1:
        return
    counts = np.bincount(codes)
    repeated = np.flatnonzero(counts > 1)
    rows = np.flatnonzero(codes == repeated[0])[:2] + 1
    shown = ", ".join(_shown(ids, i) for i in repeated[:5])
    raise GraphError(
        f"{repeated.size} ids appear more than once: {shown} (rows {rows[0]} and {rows[1]})",
        where=where,
        fix="Keep one row a node; rows are counted from 1.",
    )


def _shown(ids: npt.NDArray[Any], position: int) -> str:
    return repr(ids[position : position + 1].tolist()[0])[:100]


def _lengthened(nodes: Nodes, count: int) -> Nodes:
    """The table with rows of missing values at its end."""
    assert nodes.table is not None
    columns = [
        pa.chunked_array([*column.chunks, pa.nulls(count, type=column.type)], type=column.type)
        for column in nodes.table.columns
    ]
    return replace(nodes, table=pa.table(columns, names=nodes.table.column_names))
