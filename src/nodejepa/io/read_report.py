"""What became of every row and column of a user's files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class ReadReport:
    """Filled while a graph is read: what was there, what was left out and why, what was guessed.

    ``notes`` are sentences for people, in the order things happened: every guess, everything left out.
    """

    edge_file: str = ""
    node_file: str | None = None
    edge_columns: dict[str, str | None] = field(default_factory=dict)
    id_column: str | None = None
    id_kind: str = "position"
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

    def note(self, sentence: str) -> None:
        """Say something once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def note_guess(self, column: str, guess: str) -> None:
        """Say how a column was understood, if that was a guess."""
        if guess:
            self.note(f"column {column!r}: {guess}.")

    def drop(self, column: str, reason: str) -> None:
        """Leave a column out and say why."""
        self.dropped_columns[column] = reason
        self.note(f"column {column!r} is left out: {reason}.")

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
