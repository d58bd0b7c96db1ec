"""How files are read: what a caller may say, what is guessed from the names of columns, what became of all.

A name can tell that a column is the end of an edge, a weight, an id, a kind of node or an index. Whatever was
guessed is reported, like every row and column that was left out.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nodejepa.config import require, right_name
from nodejepa.errors import ConfigError, GraphError, did_you_mean

if TYPE_CHECKING:
    from nodejepa.tables.table import InputTable

TextPolicy: TypeAlias = Literal["refuse", "hash", "ignore"]
TEXT_MODEL = "sentence-transformers:"  # and the name of a model
IdKind: TypeAlias = Literal["position", "integer", "text"]
Scale: TypeAlias = Literal["auto", "standardise", "none"]

# columns of each structural feature, in their order; named here because the package that computes them
# brings a compiler with it
STRUCTURAL = {"pagerank": 1, "degree": 1, "clustering": 1, "spectral": 8, "adjacency": 128}
COMPARABLE = tuple(STRUCTURAL)[:-1]  # the adjacency's columns mean something else on every graph
TEXT_COLUMNS = 512  # chosen in studies/log/text-width
MOST_TEXT_COLUMNS = 1 << 20
ADJACENCY_UP_TO = 250_000  # nodes; beyond, its eigenvectors take minutes and must be asked for
REMEMBERED = ("source", "target", "weight", "bipartite", "id_column")  # beside a model or a store
_TEXTS = ("source", "target", "weight", "id_column", "labels", "delimiter")


@dataclass(frozen=True)
class ReadingOptions:
    """How a user's files become a graph.

    Args:
        source: column of the edges' start; guessed from the names, else the first.
        target: column of the edges' end; guessed from the names, else the second.
        weight: column of edge weights; a column named ``weight`` if not given, none if False.
        id_column: column of the node table that the edges refer to; guessed from the values, else the names.
        columns: columns of the node table to use as features; all others are ignored.
        drop: columns of the node table to leave out; ``ignore`` is another name for it.
        labels: column of the node table with the classes: no feature, returned beside the graph.
        text: free text is an error (``"refuse"``), hashed (``"hash"``), left out (``"ignore"``) or embedded
            by a language model on this machine (``"sentence-transformers:MODEL"``, the extra ``text``).
        text_columns: columns of the feature matrix that the words of a column of free text are hashed into.
        scale: numbers get mean 0 and standard deviation 1 (``"standardise"``), stay as they are
            (``"none"``), or get it but for columns of 0 and 1 and lists, which stay (``"auto"``).
        bipartite: the two columns of the edges are of two kinds of nodes, each with ids of its own: a node is
            called ``column:id`` (True), or both are of the same nodes (False). If not given, columns that are
            named after two kinds and share numbers are refused.
        structural: add structural features to the others: all descriptors (``"all"``) or those named
            (``"pagerank"``, ``"degree"``, ``"clustering"``, ``"spectral"``; ``"adjacency"``, coordinates of
            the adjacency itself, which no other graph shares). By default, where there are no other
            features, all of them; of more than 250,000 nodes the adjacency must be named.
        directed: keep the direction of edges; by default an edge joins both ways.
        delimiter: of text files; guessed if not given.
        header: whether text files have one; guessed if not given.
    """

    source: str | None = None
    target: str | None = None
    weight: str | Literal[False] | None = None
    id_column: str | None = None
    columns: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    labels: str | None = None
    text: str = "refuse"
    text_columns: int = TEXT_COLUMNS
    scale: Scale = "auto"
    bipartite: bool | None = None
    structural: tuple[str, ...] | None = None
    directed: bool = False
    delimiter: str | None = None
    header: bool | None = None

    def __post_init__(self) -> None:
        """Refuse what is no choice; one name, any list and, for ``structural``, a truth value will do."""
        policies, scales = get_args(TextPolicy), get_args(Scale)
        known = self.text in policies or re.match(f"{TEXT_MODEL}.", str(self.text)) is not None
        require(known, "text", self.text, f"one of {first_names(policies)}")
        require(self.scale in scales, "scale", self.scale, f"one of {first_names(scales)}")
        whole = type(self.text_columns) is int and 0 < self.text_columns <= MOST_TEXT_COLUMNS
        rule = f"a whole number from 1 to {MOST_TEXT_COLUMNS:,}"
        require(whole, "text_columns", self.text_columns, rule)
        for name in _TEXTS:
            value = getattr(self, name)
            said = value is None or isinstance(value, str) or (name == "weight" and value is False)
            require(said, name, value, 'text, such as "user" or "0"')
        for name in ("directed", "bipartite", "header"):
            value = getattr(self, name)
            said = isinstance(value, bool) or (value is None and name != "directed")
            require(said, name, value, "True or False" + (", or None" if name != "directed" else ""))
        for name in ("columns", "drop"):
            object.__setattr__(self, name, _names(getattr(self, name), name))
        object.__setattr__(self, "structural", _descriptors(self.structural))

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """The same but for the options named, as keyword arguments give them."""
        known = [field.name for field in fields(self)]
        asked = {"drop" if name == "ignore" else name: value for name, value in changes.items()}
        for name in asked:
            if name not in known:
                hint = right_name(name, [*known, "seed", "settings"]) or did_you_mean(name, known)
                fix = f"{hint}There are: {', '.join(known)}."
                raise ConfigError(f"{name!r} is no option of reading", fix=fix)
        return replace(self, **asked)


def structure_alone(nodes: int) -> tuple[str, ...]:
    """The structural features of so many nodes that have no others."""
    return tuple(STRUCTURAL) if nodes <= ADJACENCY_UP_TO else COMPARABLE


def structural_width(names: Iterable[str]) -> int:
    """Columns of the structural features of these names."""
    return sum(STRUCTURAL[name] for name in names)


def _names(value: Iterable[str] | None, argument: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    names = (value,) if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
    if not all(isinstance(name, str) for name in names):
        raise ConfigError("column names are text", where=argument, fix='Give a list such as ["age", "city"].')
    return names


def _descriptors(asked: bool | Iterable[str] | None) -> tuple[str, ...] | None:
    if asked is None or isinstance(asked, bool) or asked == "all":
        return None if asked is None else COMPARABLE if asked else ()
    given = (asked,) if isinstance(asked, str) or not isinstance(asked, Iterable) else tuple(asked)
    names = tuple(dict.fromkeys(n for name in given for n in (COMPARABLE if name == "all" else (name,))))
    for name in names:
        if name not in STRUCTURAL:
            raise ConfigError(
                f"there is no structural feature {name!r}",
                where="structural=...",
                fix=f"Choose from {', '.join(STRUCTURAL)}.",
            )
    return names


def first_names(names: Sequence[str], most: int = 10) -> str:
    """``'age', 'city', ...``."""
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")


@dataclass
class ReadReport:
    """Filled while a graph is read: what was there, what was left out and why, what was guessed.

    ``notes`` are sentences for people, in the order things happened: every guess, everything left out; one
    for all columns of which the same is said. ``warnings`` are what somebody has to decide.
    """

    edge_file: str = ""
    node_file: str | None = None
    edge_columns: dict[str, str | None] = field(default_factory=dict)
    id_column: str | None = None
    id_kind: IdKind = "position"
    kept_apart: bool = False
    edge_rows: int = 0
    node_rows: int = 0
    nodes: int = 0
    edges: int = 0
    self_loop_rows: int = 0
    duplicate_rows: int = 0
    reciprocal_pairs: int = 0
    zero_weight_rows: int = 0
    unknown_id_rows: int = 0
    added_nodes: int = 0
    isolated_nodes: int = 0
    feature_columns: dict[str, str] = field(default_factory=dict)
    dropped_columns: dict[str, str] = field(default_factory=dict)
    missing_values: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """No column has been spoken of yet."""
        self._said: dict[str, tuple[int, list[str]]] = {}  # the place of the note, and the columns

    def note(self, sentence: str) -> None:
        """Say something once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def note_column(self, said: str, column: str, count: int = 0) -> None:
        """Say something of a column, and how many of its values it holds for; one note says it of all."""
        place, columns = self._said.setdefault(said, (len(self.notes), []))
        if not columns:
            self.notes.append("")
        columns.append(f"{column!r} ({count:,})" if count else repr(column))
        more = f", ... ({len(columns):,} columns)" if len(columns) > 10 else ""
        self.notes[place] = f"{said}: {', '.join(columns[:10])}{more}."

    def drop(self, column: str, reason: str) -> None:
        """Leave a column out and say why."""
        self.dropped_columns[column] = reason
        self.note_column(f"left out ({reason})", column)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON can hold it."""
        return asdict(self)


# ---------------------------------------------------------------- what names tell


# both ends of an edge; of several pairs the first counts
_PAIRS = """
source-target src-dst src-dest source-destination source-dest from-to u-v head-tail start-end
sender-receiver citing-cited follower-followee subject-object parent-child node1-node2 id1-id2 user1-user2
i-j row-col a-b x-y
"""
PAIRS = tuple((a, b) for a, _, b in (pair.partition("-") for pair in _PAIRS.split()))
ENDINGS = ("", "id", "node", "nodeid", "name", "uuid", "ip", "address", "account")
ENDS = tuple((a + end, b + end) for end in ENDINGS for a, b in PAIRS)
WEIGHTS = ("weight", "weights", "edgeweight")
_MAY_WEIGH = "w wt n count counts sign strength value similarity score combinedscore"
# "label" names nodes in some formats and classes in others: never guessed
IDS = ("id", "nodeid", "node", "nodes", "uuid", "key", "vertex", "vertexid", "name")
_COUNTERS = {"edge", "link", "row", "line", "record", "relation", "relationship", "eid"}
_MEASURED = r"^\s*[+-]?\d*\.\d{2,}[1-9]\d*([eE][+-]?\d+)?\s*$"  # three decimals: no float that was an id
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
    table: "InputTable",
    reading: ReadingOptions,
    report: ReadReport,
    choose: Callable[[list[str]], list[str]],
) -> tuple[str, str, str | None]:
    """Names of the source, target and weight columns; what was not given is guessed, and reported.

    ``choose`` puts the ends first where more than two columns without telling names may be ends.
    """
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
        source, target = _guess_ends(table, free, source, target, choose)
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
        _warn_of_unused(table, unused, reading, report, weighted=bool(weight))
    report.edge_columns = {"source": source, "target": target, "weight": weight or None}
    return source, target, weight or None


def _warn_of_unused(
    table: "InputTable", unused: list[str], reading: ReadingOptions, report: ReadReport, *, weighted: bool
) -> None:
    """Warn of columns that are not used and may be weights, or say that the edges are directed."""
    third = (unnamed(3), "2") if len(table.names) == 3 else ()  # such as networkx and node2vec write
    may_weigh = [name for name in unused if plain(name) in _MAY_WEIGH.split() or name in third]
    may_weigh = may_weigh if reading.weight is None and not weighted else []
    columns = [*may_weigh]
    columns += [name for name in unused if plain(name) == "type" and not reading.directed]
    columns += [name for name in unused if name == unnamed(3) and name not in columns]
    first: Any = next(iter(table.batches(columns, "Reading edges")), None) if columns else None
    for name in columns if first is not None and first.num_rows else []:
        values = first[name]
        if plain(name) == "type":
            if {str(value).lower() for value in values.unique().to_pylist()} == {"directed"}:
                report.warnings.append(
                    f"column {name!r} says that the edges are directed, and they are read without direction: "
                    "say directed=True to keep it."
                )
            continue
        if str(values[0]).startswith("{"):
            report.warnings.append(
                "the edges have attributes, as networkx.write_edgelist writes them, which are not read: use "
                "networkx.write_weighted_edgelist, or give the graph itself to nodejepa.from_networkx."
            )
            continue
        if name not in may_weigh:
            continue
        try:
            signed = (pc.min(values.cast(pa.float64())).as_py() or 0) < 0
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
        how = f"weight={name!r} makes it the weight of edges, weight=False says that it is none"
        how = "edges of both signs count alike" if signed else how
        report.warnings.append(f"column {name!r} of numbers is not used: {how}.")


def counts_rows(values: pa.ChunkedArray) -> bool:
    """Whether a column is 0, 1, 2, ... or 1, 2, 3, ...; a few rows may be so by chance."""
    if len(values) < _FEWEST_COUNTED or values.null_count:
        return False
    try:
        numbers = values.cast(pa.int64()).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return bool(numbers[0] in (0, 1) and (np.diff(numbers) == 1).all())


_EDGE_OPTIONS = ("source", "target", "weight")


def _guess_ends(
    table: "InputTable",
    free: list[str],
    source: str | None,
    target: str | None,
    choose: Callable[[list[str]], list[str]],
) -> tuple[str, str]:
    """The ends of the edges by telling names, else the first columns that may be ends."""
    known = {plain(name): name for name in reversed([*free, *filter(None, (source, target))])}
    pairs = ([known[a], known[b]] for a, b in ENDS if a in known and b in known)
    pair = next((pair for pair in pairs if source in (None, pair[0]) and target in (None, pair[1])), [])
    wanted = (source is None) + (target is None)
    possible = free
    counters = [name for name in free if _nouns(name) and _nouns(name) <= _COUNTERS]
    weights = [name for name in free if plain(name) in WEIGHTS]
    for unlikely in (frame_indexes(table.names), weights, counters):
        left = [name for name in possible if name not in unlikely]
        possible = left if len(left) >= wanted else possible
    others = [name for name in possible if name not in pair]
    if pair and (wanted < 2 or len(others) < 2 or choose([*pair, *others])[:2] == pair):
        return pair[0], pair[1]
    if len(possible) < wanted:
        raise GraphError(
            "the ends of the edges cannot be found", where=table.where, fix="Name source and target."
        )
    if len(possible) > wanted == 2:
        possible = choose([*pair, *others])
    for name in possible[:wanted]:
        _refuse_unlikely_end(table, name, counts=len(possible) > wanted)
    ends = iter(possible)
    return source or next(ends), target or next(ends)


def _refuse_unlikely_end(table: "InputTable", name: str, *, counts: bool) -> None:
    """Refuse measured numbers as an end, and, where it may number the edges, what ``counts`` the rows."""
    first = next(iter(table.batches([name], "Reading edges")), None)
    if first is None:
        return
    if not table.typed:
        place = pc.index(pc.match_substring_regex(first[name], _MEASURED), True).as_py()
        if place >= 0:
            raise GraphError(
                f"column {name!r} holds numbers such as {first[name][place].as_py()}, which are no ids",
                where=table.where,
                fix="Name the ends with source=COLUMN and target=COLUMN. Or are edges and nodes swapped?",
            )
    if counts and counts_rows(first[name]):
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


def _tell_one_kind(source: str, target: str) -> bool:
    """Whether the names of the ends tell that they are of one kind: partners, a noun of both, or roles."""
    first, second = _nouns(source) - {"column"}, _nouns(target) - {"column"}
    related = first & second or (first | second) & set(_ROLES.split())
    return bool(related) or are_partners(source, target) or are_partners(target, source)


def name_two_ends(first: str, second: str) -> bool:
    """Whether two columns are named alike, or each as ids, a kind of nodes or a role: all may be ends."""
    return (speaks_of_nodes(first) and speaks_of_nodes(second)) or share_a_noun(first, second)


def speaks_of_nodes(name: str) -> bool:
    """Whether a column is called as one of ids, as a kind of nodes or as a role."""
    return names_ids(name) or not _nouns(name).isdisjoint((*_KINDS.split(), *_ROLES.split()))


def share_a_noun(first: str, second: str) -> bool:
    """Whether two columns are named alike: ``sender_account`` and ``receiver_account``."""
    return bool(_nouns(first) & _nouns(second))


def two_kinds(source: str, target: str) -> bool:
    """Whether the ends of the edges are named after two kinds of nodes, such as user_id and item_id."""
    first, second = _nouns(source), _nouns(target)
    if _tell_one_kind(source, target) or not first or not second:
        return False
    kinds = set(_KINDS.split())
    return (names_ids(source) and names_ids(target)) or bool(first & kinds and second & kinds)


def refuse_mixed_spaces(
    shared: npt.NDArray[np.integer[Any]], ids: Any, described: bool, report: ReadReport
) -> None:
    """Refuse to make one node of two that only share their number (``shared``: those at both ends).

    Where a node table, whose ids are of neither kind, has all of them (``described``), warn instead. Where
    names tell nothing, as in a file without header, a note says what is taken for granted.
    """
    first, second = (str(report.edge_columns.get(end) or "") for end in ("source", "target"))
    if report.id_kind != "integer" or not shared.size:
        return
    if not two_kinds(first, second):
        if not described and not _tell_one_kind(first, second):
            report.note(
                f"{shared.size:,} numbers occur in both {first!r} and {second!r} and are taken for the same "
                "nodes; bipartite=True keeps two kinds of nodes apart."
            )
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


def names_ids(name: str) -> bool:
    """Whether a column is called as one of ids, such as user_id."""
    return plain(name).endswith(("id", "ids", "key", "number", "idx", "index", "code", "nr", "no"))
