"""Seconds of each phase, for the manifest."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Timings:
    """Collects seconds by the name of the phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the seconds of the block to the phase, also if it fails."""
        started = time.perf_counter()
        try:
            yield
        finally:
            spent = self.seconds.get(name, 0.0) + time.perf_counter() - started
            self.seconds[name] = round(spent, 3)
