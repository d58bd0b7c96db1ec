"""Everything a caller may say about how files are read, and what became of every row and column."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, Self, TypeAlias, get_args

from nodejepa.config import right_name
from nodejepa.errors import ConfigError, did_you_mean

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
_CHOICES = {"text": TextPolicy, "scale": Scale}


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
        for name, choices in _CHOICES.items():
            embeds = name == "text" and re.match(f"{TEXT_MODEL}.", str(self.text))
            if getattr(self, name) not in get_args(choices) and not embeds:
                raise ConfigError(
                    f"{name} is {getattr(self, name)!r}",
                    where=name,
                    fix=f"Use one of {', '.join(map(repr, get_args(choices)))}.",
                )
        if type(self.text_columns) is not int or not 0 < self.text_columns <= MOST_TEXT_COLUMNS:
            raise ConfigError(
                f"text_columns is {self.text_columns!r}",
                where="text_columns",
                fix=f"Use a whole number from 1 to {MOST_TEXT_COLUMNS:,}.",
            )
        for name in _TEXTS:
            value = getattr(self, name)
            if not (value is None or isinstance(value, str) or (name == "weight" and value is False)):
                raise ConfigError(f"{name} is {value!r}", where=name, fix='Give text, such as "user" or "0".')
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
