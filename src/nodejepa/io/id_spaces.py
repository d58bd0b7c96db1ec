"""Two kinds of nodes that are numbered each for itself: user 5 and item 5 are not one node."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nodejepa.errors import Advice, GraphError, Setting
from nodejepa.io.column_names import PARTNER, plain
from nodejepa.io.read_report import ReadReport
from nodejepa.io.rows import Positions

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
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

    Args:
        source: positions among ``ids`` of the edges' starts.
        target: and of their ends.
        ids: of all nodes.
        described: whether one node table, whose ids are of neither kind, has all of them.
        report: knows the names of the columns.
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
    """Of ids that were kept apart: the side of every node, and its id there.

    Args:
        ids: of all nodes, or of some.
        report: knows the names of the sides.
        whole: whether ids are given as numbers; if not told, where all of them are some.
    """
    names = sorted((str(report.edge_columns[end]) for end in ("source", "target")), key=len, reverse=True)
    sides = [next((n for n in names if text.startswith(f"{n}:")), "") for text in ids]
    own = [text.removeprefix(f"{side}:") for text, side in zip(ids, sides, strict=True)]
    if whole is None:
        whole = all(text.removeprefix("-").isdecimal() and len(text) < 19 for text in own)
    return {"side": sides, "side_id": [int(text) for text in own] if whole else own}


def _nouns(name: str) -> set[str]:
    words = {word.lower() for word in _WORD.findall(name)} - _ID_WORDS
    return {word[:-2] if word.endswith("id") and len(word) > 4 else word for word in words}


def _names_ids(name: str) -> bool:
    return plain(name).endswith(("id", "ids", "key", "number", "idx", "index", "code", "nr", "no"))
