"""One progress bar for everything that takes longer than a moment, and how long that is, in words."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column


@contextmanager
def progress_bar(
    description: str, total: float | None = None, *, shown: bool = True
) -> Iterator[Callable[..., None]]:
    """Yield ``advance(amount=1, note="")``. Drawn on stderr, only on a terminal, and gone when done.

    >>> with progress_bar("Counting", total=3) as advance:
    ...     for _ in range(3):
    ...         advance()
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", table_column=Column(no_wrap=True)),
        BarColumn(bar_width=20, table_column=Column(min_width=10)),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True, min_width=5)),
        # what is too long for the line is cut here, and nowhere else
        TextColumn("{task.fields[note]}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
    )
    hidden = not (shown and console.is_terminal)
    with Progress(*columns, console=console, transient=True, disable=hidden, expand=True) as bar:
        task = bar.add_task(description, total=total, note="")

        def advance(amount: float = 1, note: str = "") -> None:
            bar.update(task, advance=amount, note=note)

        yield advance


@contextmanager
def timed(seconds: dict[str, float], phase: str, digits: int = 3) -> Iterator[None]:
    """Add the seconds of the block to those of the phase, also if it fails."""
    started = time.perf_counter()
    try:
        yield
    finally:
        seconds[phase] = round(seconds.get(phase, 0.0) + time.perf_counter() - started, digits)


def in_words(seconds: float, *, precise: bool = False) -> str:
    """``40 s``, ``12 min`` or ``3.5 h``; what was measured may be said more precisely than an estimate.

    >>> in_words(100), in_words(100, precise=True), in_words(6000)
    ('2 min', '100.0 s', '1.7 h')
    """
    most = 120 if precise else 90  # of a unit, before the next one
    if seconds < most:
        return f"{seconds:.{int(precise)}f} s"
    return f"{seconds / 60:.0f} min" if seconds < 60 * most else f"{seconds / 3600:,.1f} h"


def announce_duration(description: str, seconds: float, *, may_end_early: bool = False) -> None:
    """Say on stderr how long something will take, if it is more than two minutes."""
    if seconds > 120:
        minutes = f"{seconds / 60:.0f} minutes"
        text = f"at most {minutes}, likely fewer: it stops early" if may_end_early else f"about {minutes}"
        announce(f"{description}: {text}")


def announce(text: str) -> None:
    """Say something on stderr before the work begins."""
    Console(stderr=True).print(text, markup=False, soft_wrap=True)
