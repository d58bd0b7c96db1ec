"""The options that say how a user's files are read, and the hints of the reader in their words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from nodejepa.errors import NodeJEPAError

NodeFile = Annotated[
    Path | None,
    typer.Option(help="Nodes, a row each; without it only the structure describes them.", metavar="FILE"),
]
SourceColumn = Annotated[str | None, typer.Option(help="Column of an edge's start.", metavar="COLUMN")]
TargetColumn = Annotated[str | None, typer.Option(help="Column of an edge's end.", metavar="COLUMN")]
WeightColumn = Annotated[str | None, typer.Option(help="Column of edge weights.", metavar="COLUMN")]
NoWeight = Annotated[
    bool, typer.Option("--no-weight", help="Read no edge weights, also where a column is named weight.")
]
IdColumn = Annotated[
    str | None, typer.Option("--id", help="Column of the node table that edges refer to.", metavar="COLUMN")
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header", help="Whether the first row of text files names the columns (else guessed)."
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(help="Between columns of text files: one character, tab or space (else guessed)."),
]
Structural = Annotated[
    str | None,
    typer.Option(
        help="Structural features, separated by commas: pagerank, degree, clustering, spectral; all or none. "
        "Without it: all if there are no other features. On large graphs spectral is the slow one; the "
        "predictor's own are chosen with --set predictor.descriptors=...",
        metavar="NAMES",
    ),
]

_DELIMITERS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}
_HINT = re.compile(
    r'\b(header|weight|unknown_ids|text|missing|infinite|ignore)=(True|False|"\w+"|(?![^\s.,;)]))'
)


class TextColumns(StrEnum):
    """What to do with free text."""

    refuse = "refuse"
    hash = "hash"
    ignore = "ignore"


class UnknownIds(StrEnum):
    """What to do with nodes that only the edges name."""

    add = "add"
    drop = "drop"
    refuse = "refuse"


class Missing(StrEnum):
    """What to do with missing numbers."""

    fill = "fill"
    refuse = "refuse"


class Infinite(StrEnum):
    """What to do with infinite numbers."""

    refuse = "refuse"
    missing = "missing"


UnknownIdPolicy = Annotated[
    UnknownIds,
    typer.Option(help="Nodes that only edges name: add them, drop their edges, or refuse."),
]


def weight_choice(column: str | None, none: bool) -> str | Literal[False] | None:
    """--weight and --no-weight as the reader wants them."""
    if none and column is not None:
        raise typer.BadParameter("Give --weight or --no-weight, not both.")
    return False if none else column


def delimiter_choice(given: str | None) -> str | None:
    """A delimiter that is hard to type has a name."""
    return None if given is None else _DELIMITERS.get(given, given)


def structural_choice(given: str | None) -> bool | tuple[str, ...] | None:
    """``all``, ``none`` or names."""
    if given is None or given in ("all", "none"):
        return None if given is None else given == "all"
    return tuple(name.strip() for name in given.split(","))


def in_options(text: str) -> str:
    """The reader speaks of Python's arguments; here they are options.

    >>> in_options('say header=True, or unknown_ids="drop"; leave it out with ignore=.')
    'say --header, or --unknown-ids drop; leave it out with --ignore COLUMN.'
    """

    def option(found: re.Match[str]) -> str:
        name, value = found[1].replace("_", "-"), found[2].strip('"')
        if value in ("True", "False"):
            return f"--{name}" if value == "True" else f"--no-{name}"
        return f"--{name} {value or 'COLUMN'}"

    return _HINT.sub(option, text)


@contextmanager
def fixes_in_options() -> Iterator[None]:
    """Errors leave with advice that can be typed."""
    try:
        yield
    except NodeJEPAError as error:
        fix = in_options(error.fix)
        if fix == error.fix:
            raise
        raise type(error)(error.what, where=error.where, fix=fix) from error
