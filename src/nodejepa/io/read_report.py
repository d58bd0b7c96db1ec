"""What became of every row and column of a user's files."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class _Group:
    """Columns of which one note speaks."""

    place: int
    names: list[str]
    low: int
    high: int


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
    id_kind: str = "position"
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
        self._groups: dict[str, _Group] = {}

    def note(self, sentence: str) -> None:
        """Say something once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def note_column(self, column: str, said: str, several: str = "", count: int = 0) -> None:
        """Say something of a column; where it holds for others too, one note says it of all of them.

        Args:
            column: its name.
            said: what follows its name if it is the only one.
            several: what is said of several, ``{count}`` is the range of ``count``; as ``said`` if empty.
            count: of whatever is counted.
        """
        group = self._groups.setdefault(several or said, _Group(len(self.notes), [], count, count))
        if not group.names:
            self.notes.append(f"column {column!r}{said}.")
        group.names.append(column)
        if len(group.names) > 1:
            group.low, group.high = min(group.low, count), max(group.high, count)
            words = f"{group.low:,}" if group.low == group.high else f"{group.low:,} to {group.high:,}"
            rest = (several or said).replace("{count}", words)
            self.notes[group.place] = f"{len(group.names):,} columns ({first_names(group.names)}){rest}."

    def drop(self, column: str, reason: str, several: str) -> None:
        """Leave a column out and say why."""
        self.dropped_columns[column] = reason
        self.note_column(column, f" is left out: {reason}", f" are left out: {several}")

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add the seconds of the block to ``seconds[phase]``."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[phase] = round(self.seconds.get(phase, 0.0) + time.perf_counter() - started, 4)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON can hold it."""
        return asdict(self)
