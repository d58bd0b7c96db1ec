"""One measured comparison, and how its seconds are taken."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """Seconds of both sides; ``note`` says what was compared and how closely the results agree."""

    name: str
    ours_s: float
    naive_s: float
    note: str

    def to_dict(self) -> dict[str, str | float]:
        """The row as it stands in results.json."""
        return {
            "name": self.name,
            "ratio": round(self.naive_s / self.ours_s, 2),
            "ours_s": round(self.ours_s, 6),
            "naive_s": round(self.naive_s, 6),
            "note": self.note,
        }


def best_of(function: Callable[[], object], repeats: int) -> float:
    """The shortest wall-clock seconds of ``repeats`` calls: what else the machine does only adds time."""
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - started)
    return best
