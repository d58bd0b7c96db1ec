"""Edges and nodes brought together: edges as positions of nodes, and the rows of nodes in that order.

Two kinds of nodes may be numbered each for itself: user 5 and item 5 are not one node.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nodejepa.errors import Advice, GraphError, Setting
from nodejepa.io.column_names import PARTNER, plain, words_of
from nodejepa.io.identifiers import IdColumn, number_ids
from nodejepa.io.matrices import Positions
from nodejepa.io.reading_options import ReadingOptions, ReadReport
from nodejepa.io.rows import Edges, Nodes
from nodejepa.progress import progress_bar

_ID_WORDS = {"id", "ids", "key", "no", "nr", "num", "number", "idx", "index", "code", "node"}
# the ends of an edge between two nodes of one kind are often called by their roles
_ROLES = """
source target src dst dest destination origin from to start end head tail left right first second next prev
previous other neighbour neighbor friend follower followee followed following manager boss supervisor parent
child mother father spouse partner coauthor colleague sender receiver recipient payer payee caller callee
citing cited referrer referred reply mention mentioned linked related similar
"""
# where a name has no "id" in it only these are taken for kinds of nodes
_KINDS = """
user customer client buyer member person reader viewer patient student author item product movie film book
song track artist paper article post page course business store shop tag word group team gene drug disease
protein company order document question answer
"""
_DROP = Setting("unknown_ids", "drop")


def two_kinds(source: str, target: str) -> bool:
    """Whether the ends of the edges are named after two kinds of nodes, such as user_id and item_id."""
    if PARTNER.get(plain(source)) == plain(target) or PARTNER.get(plain(target)) == plain(source):
        return False
    first, second = _nouns(source), _nouns(target)
    if not first or not second or first & second or (first | second) & set(_ROLES.split()):
        return False
    kinds = set(_KINDS.split())
    return (_names_ids(source) and _names_ids(target)) or bool(first & kinds and second & kinds)


def refuse_mixed_spaces(
    source: Positions, target: Positions, ids: npt.NDArray[Any], described: bool, report: ReadReport
) -> None:
    """Refuse to make one node of two that only share their number.

    Not where a node table, whose ids are of neither kind, has all of them (``described``).
    """
    first, second = (str(report.edge_columns.get(end) or "") for end in ("source", "target"))
    if report.id_kind != "integer" or described or not two_kinds(first, second):
        return
    shared = np.intersect1d(source, target)
    if not shared.size:
        return
    example = ids[shared[0]]
    raise GraphError(
        f"columns {first!r} and {second!r} are named after two kinds of nodes, but {shared.size:,} numbers "
        f"occur in both: {first} {example} and {second} {example} would be one node",
        where=report.edge_file,
        fix=Advice(
            "Keep the two kinds apart with ",
            Setting("bipartite", True),
            ", or say ",
            Setting("bipartite", False),
            " if both columns number the same nodes.",
        ),
    )


def is_one_of(id_column: str | None, report: ReadReport) -> bool:
    """Whether the ids of the node table are called as one end of the edges: it describes that kind only."""
    ends = [_nouns(str(name)) for name in report.edge_columns.values() if name]
    return id_column is not None and any(end and end == _nouns(id_column) for end in ends)


def sides_of(ids: Sequence[str], report: ReadReport, *, whole: bool | None = None) -> dict[str, list[Any]]:
    """Of ids (of all nodes, or of some) that were kept apart: the side of every node, and its id there.

    ``whole``: whether ids are given as numbers; if not told, where all of them are some.
    """
    names = sorted((str(report.edge_columns[end]) for end in ("source", "target")), key=len, reverse=True)
    sides = [next((n for n in names if text.startswith(f"{n}:")), "") for text in ids]
    own = [text.removeprefix(f"{side}:") for text, side in zip(ids, sides, strict=True)]
    if whole is None:
        whole = all(text.removeprefix("-").isdecimal() and len(text) < 19 for text in own)
    return {"side": sides, "side_id": [int(text) for text in own] if whole else own}


def _nouns(name: str) -> set[str]:
    words = words_of(name) - _ID_WORDS
    return {word[:-2] if word.endswith("id") and len(word) > 4 else word for word in words}


def _names_ids(name: str) -> bool:
    return plain(name).endswith(("id", "ids", "key", "number", "idx", "index", "code", "nr", "no"))


@dataclass(frozen=True)
class Joined:
    """What a graph is made of; ``ids`` are the users' own, or None for positions."""

    source: Positions
    target: Positions
    weight: npt.NDArray[Any] | None
    num_nodes: int
    ids: npt.NDArray[Any] | None
    nodes: Nodes


def join(edges: Edges, nodes: Nodes | None, reading: ReadingOptions, report: ReadReport) -> Joined:
    """Number the nodes: those of the node table first, in its order, then others as the edges name them."""
    if edges.positions is not None:
        return _by_position(edges, edges.positions, nodes, report)
    assert edges.ids is not None
    if nodes is not None and nodes.ids is None:  # the edges name rows of a matrix: 0, 1, 2, ...
        numbers = pa.chunked_array([pa.array(np.arange(nodes.rows or 0))])
        nodes = replace(nodes, ids=IdColumn(numbers, True, f"{nodes.where}, rows"))
    columns = [*([nodes.ids] if nodes and nodes.ids else []), *edges.ids]
    with progress_bar("Matching ids"):
        ids, codes = number_ids(columns, report)
    source, target = codes[-2:]
    if reading.bipartite is None:
        described = len(codes) == 3 and ids.size == len(codes[0]) and not is_one_of(report.id_column, report)
        refuse_mixed_spaces(source, target, ids, described, report)
    if nodes is None or nodes.ids is None:
        if not ids.size:
            raise GraphError(
                "there are no edges", where=report.edge_file, fix="Give at least one, or a node table."
            )
        return Joined(source, target, edges.weight, ids.size, ids, Nodes())
    _refuse_repeated(codes[0], ids, nodes.ids.where, source)
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
            f"no edge names a node of the node table: the first names {name}, the table {_shown(ids, 0)}",
            where=nodes.ids.where,
            fix="Name the right id column, and write ids the same way in both files.",
        )
    said = f"{strange} ids of the edges are not in the node table, such as {name}"
    unknown = reading.unknown_ids
    if unknown == "refuse" or (unknown == "add" and nodes.matrix is not None):
        fix = Advice("Add them, or say ", _DROP, ".")
        raise GraphError(f"{said} (row {row + 1})", where=nodes.ids.where, fix=fix)
    if unknown == "drop":
        report.note(f"{said}: {report.unknown_id_rows} edges are left out.")
        keep = ~outside
        weight = None if edges.weight is None else edges.weight[keep]
        return Joined(source[keep], target[keep], weight, known, ids[:known], nodes)
    report.added_nodes = strange
    report.note(Advice(f"{said}: they are added without features (", _DROP, " leaves their edges out)."))
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


def _refuse_repeated(
    codes: Positions, ids: npt.NDArray[Any], where: str, source: Positions | None = None
) -> None:
    if not codes.size or int(codes.max()) == codes.size - 1:
        return
    counts = np.bincount(codes)
    repeated = np.flatnonzero(counts > 1)
    rows = np.flatnonzero(codes == repeated[0])[:2] + 1
    shown = ", ".join(_shown(ids, i) for i in repeated[:5])
    once = source is not None and source.size and np.unique(source).size == source.size
    swapped = " The edges name every start once: are edges and nodes swapped?" if once else ""
    raise GraphError(
        f"{repeated.size} ids appear more than once: {shown} (rows {rows[0]} and {rows[1]})",
        where=where,
        fix=f"Keep one row a node; rows are counted from 1.{swapped}",
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
    if not columns:
        return replace(nodes, table=pa.table({"": pa.nulls(nodes.table.num_rows + count)}).select([]))
    return replace(nodes, table=pa.table(columns, names=nodes.table.column_names))
