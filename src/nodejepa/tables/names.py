"""Names that say what a column is: the end of an edge, a weight, an id, a kind of node, an index.

What was not given is guessed from them, and reported.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nodejepa.errors import GraphError
from nodejepa.tables.options import ReadingOptions, ReadReport, first_names

if TYPE_CHECKING:
    from nodejepa.tables.table import InputTable

# both ends of an edge; of several pairs the first counts
_PAIRS = """
source-target src-dst src-dest source-destination source-dest from-to u-v head-tail start-end
sender-receiver citing-cited follower-followee subject-object parent-child node1-node2 id1-id2 user1-user2
i-j row-col a-b x-y
"""
PAIRS = tuple((a, b) for a, _, b in (pair.partition("-") for pair in _PAIRS.split()))
ENDINGS = ("", "id", "node", "nodeid", "name", "uuid")
ENDS = tuple((a + end, b + end) for end in ENDINGS for a, b in PAIRS)
WEIGHTS = ("weight", "weights", "edgeweight")
# "label" names nodes in some formats and classes in others: never guessed
IDS = ("id", "nodeid", "node", "nodes", "uuid", "key", "vertex", "vertexid", "name")
_COUNTERS = {"edge", "link", "row", "line", "record", "relation", "relationship", "eid"}
_FEWEST_COUNTED = 5  # rows that are numbered one after the other, so that it is no chance
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_INDEX = re.compile(r"__index_level_\d+__|Unnamed: 0(\.\d+)?")  # what pandas calls an index without a name


def plain(name: str) -> str:
    """Letters and digits in lower case: ``Source_ID`` and ``sourceid`` are one name."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def words_of(name: str) -> set[str]:
    """The words in a name, in lower case: ``user`` and ``id`` of ``userId`` and of ``user_id``."""
    return {word.lower() for word in _WORD.findall(name)}


def unnamed(position: int) -> str:
    """How a column without a name is called; the first is 1."""
    return f"column {position}"


def speaks_of_a_graph(names: Sequence[str]) -> bool:
    """Whether the names of columns are known ones: both ends of an edge, or a node's id."""
    known = {plain(name) for name in names}
    return bool(known & set(IDS)) or any(a in known and b in known for a, b in ENDS)


def frame_indexes(names: Sequence[str]) -> tuple[str, ...]:
    """The columns that are the unnamed index of a data frame, which spreadsheets and pandas write along.

    In a text file that is a first column without a name where all others have one.
    """
    named = [name for i, name in enumerate(names, start=1) if name != unnamed(i)]
    first = names[:1] if len(names) > 1 and list(names[1:]) == named else ()
    return (*first, *(name for name in names if _INDEX.fullmatch(name)))


# ---------------------------------------------------------------- the columns of an edge list


def edge_columns(
    table: "InputTable", reading: ReadingOptions, report: ReadReport
) -> tuple[str, str, str | None]:
    """Names of the source, target and weight columns; what was not given is guessed, and reported."""
    if len(table.names) < 2:
        raise GraphError(
            f"an edge list needs two columns, there is only {', '.join(map(repr, table.names)) or 'none'}",
            where=table.where,
            fix="Give one column for each end of an edge.",
        )
    source, target, weight = reading.source, reading.target, reading.weight
    told = {name: argument for argument, name in vars(reading).items() if argument in _EDGE_OPTIONS and name}
    for name, argument in told.items():
        table.find(name, argument)
    free = [name for name in table.names if name not in told]
    if source is None or target is None:
        source, target = _guess_ends(table, free, source, target)
        report.note(f"edges run from column {source!r} to column {target!r} (guessed).")
    if source == target:
        raise GraphError(
            f"source and target are both {source!r}", where=table.where, fix="Name two different columns."
        )
    if weight is None:
        left = (name for name in free if name not in (source, target))
        weight = next((name for name in left if plain(name) in WEIGHTS), False)
        if weight:
            report.note(f"edge weights are column {weight!r} (guessed; weight=False leaves them out).")
    elif weight and weight in (source, target):
        raise GraphError(f"{weight!r} is an end of the edges and their weight", where=table.where)
    unused = [name for name in table.names if name not in (source, target, weight)]
    if unused:
        report.note(f"columns of the edges that are not used: {first_names(unused)}.")
    report.edge_columns = {"source": source, "target": target, "weight": weight or None}
    return source, target, weight or None


_EDGE_OPTIONS = ("source", "target", "weight")


def _guess_ends(
    table: "InputTable", free: list[str], source: str | None, target: str | None
) -> tuple[str, str]:
    """The ends of the edges by telling names, else the first columns that may be ends."""
    known = {plain(name): name for name in reversed([*free, *filter(None, (source, target))])}
    for a, b in ENDS:
        if a in known and b in known and source in (None, known[a]) and target in (None, known[b]):
            return known[a], known[b]
    wanted = (source is None) + (target is None)
    possible = free
    counters = [name for name in free if _nouns(name) and _nouns(name) <= _COUNTERS]
    weights = [name for name in free if plain(name) in WEIGHTS]
    for unlikely in (frame_indexes(table.names), weights, counters):
        left = [name for name in possible if name not in unlikely]
        possible = left if len(left) >= wanted else possible
    if len(possible) < wanted:
        raise GraphError(
            "the ends of the edges cannot be found", where=table.where, fix="Name source and target."
        )
    if len(possible) > wanted:
        for name in possible[:wanted]:
            _refuse_counter(table, name)
    ends = iter(possible)
    return source or next(ends), target or next(ends)


def _refuse_counter(table: "InputTable", name: str) -> None:
    """Refuse to take a column for an end whose values count the rows: it may as well number the edges."""
    first = next(iter(table.batches([name], "Looking at edges")), None)
    if first is None or first.num_rows < _FEWEST_COUNTED:
        return
    try:
        numbers = first[name].cast(pa.int64()).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return
    if first[name].null_count == 0 and numbers[0] in (0, 1) and (np.diff(numbers) == 1).all():
        raise GraphError(
            f"column {name!r} counts the rows: it may number the edges, or be an end of them",
            where=table.where,
            fix="Say which columns are the ends, with source=COLUMN and target=COLUMN.",
        )


def refuse_swapped(edges: "InputTable", nodes: "InputTable", reading: ReadingOptions) -> None:
    """Refuse a list of edges in the place of the nodes, and nodes in that of the edges, by their columns."""
    if reading.source or reading.target or reading.id_column:
        return
    known, own = {plain(name) for name in nodes.names}, {plain(name) for name in edges.names}
    # x and y may be places, start and end a time
    telling = [(a, b) for a, b in ENDS if len(a) > 1 and not a.startswith(("row", "start"))]
    ends = next(((a, b) for a, b in telling if a in known and b in known), None)
    named = own & set(IDS)
    if ends and named and not known & set(IDS) and not any(a in own and b in own for a, b in ENDS):
        raise GraphError(
            f"edges and nodes are swapped: the nodes have columns {ends[0]!r} and {ends[1]!r}, the edges "
            f"have {min(named)!r}",
            where=f"{edges.where}, {nodes.where}",
            fix="Name them the other way round; if they are right, say source=COLUMN and target=COLUMN.",
        )


# ---------------------------------------------------------------- two kinds of nodes


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


def are_partners(source: str, target: str) -> bool:
    """Whether the names of two columns tell that they are the ends of edges, and which is which."""
    return (plain(source), plain(target)) in ENDS


def two_kinds(source: str, target: str) -> bool:
    """Whether the ends of the edges are named after two kinds of nodes, such as user_id and item_id."""
    if are_partners(source, target) or are_partners(target, source):
        return False
    first, second = _nouns(source), _nouns(target)
    if not first or not second or first & second or (first | second) & set(_ROLES.split()):
        return False
    kinds = set(_KINDS.split())
    return (_names_ids(source) and _names_ids(target)) or bool(first & kinds and second & kinds)


def refuse_mixed_spaces(
    shared: npt.NDArray[np.integer[Any]], ids: Any, described: bool, report: ReadReport
) -> None:
    """Refuse to make one node of two that only share their number (``shared``: those at both ends).

    Where a node table, whose ids are of neither kind, has all of them (``described``), warn instead.
    """
    first, second = (str(report.edge_columns.get(end) or "") for end in ("source", "target"))
    if report.id_kind != "integer" or not shared.size or not two_kinds(first, second):
        return
    example = ids[shared[0]]
    if described:
        report.warnings.append(
            f"columns {first!r} and {second!r} are named after two kinds of nodes, and {shared.size:,} "
            f"numbers occur in both: {first} {example} and {second} {example} are taken for one node, as the "
            "node table has all of them. Say bipartite=True if they are two, or bipartite=False if they are "
            "one."
        )
        return
    raise GraphError(
        f"columns {first!r} and {second!r} are named after two kinds of nodes, but {shared.size:,} numbers "
        f"occur in both: {first} {example} and {second} {example} would be one node",
        where=report.edge_file,
        fix="Keep the two kinds apart with bipartite=True, or say bipartite=False if both columns number the "
        "same nodes.",
    )


def is_one_of(id_column: str | None, report: ReadReport) -> bool:
    """Whether the ids of the node table are called as one end of the edges: it describes that kind only."""
    ends = [str(name) for name in report.edge_columns.values() if name]
    return id_column is not None and any(same_kind(id_column, end) for end in ends)


def same_kind(name: str, other: str) -> bool:
    """Whether two columns are called after the same kind of nodes: ``user`` and ``user_id``."""
    return name == other or (bool(_nouns(name)) and _nouns(name) == _nouns(other))


def sides_of(ids: Sequence[str], report: ReadReport, *, whole: bool | None = None) -> dict[str, list[Any]]:
    """Of ids (of all nodes, or of some) that were kept apart: the side of every node, and its id there.

    ``whole``: whether ids are given as numbers; if not given, where all of them are some.
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
