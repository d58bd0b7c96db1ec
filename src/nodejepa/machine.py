"""The machine: how much memory this process may still take, threads where they pay, and how long things take.

Memory is what is free, and what the control groups of the process allow. Threads work on independent problems
side by side, each with products of one thread: two threads inside many small products wait for each other
more than they compute, on a busy machine many times more. Side by side they wait for nothing, and bits do not
depend on the number of threads.
"""

from __future__ import annotations

import resource
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

import psutil
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column

from nodejepa.errors import ConfigError

Result = TypeVar("Result")
_UNLIMITED = 1 << 60


def resident_bytes() -> int:
    """What this process holds now."""
    return int(psutil.Process().memory_info().rss)


def available_bytes(root: Path = Path("/")) -> int:
    """What it may take beyond that, the smallest of all limits; below ``root`` are ``proc`` and ``sys``."""
    free = int(psutil.virtual_memory().available)
    return max(0, min([free, *_group_rooms(root)]))


def peak_memory_mb() -> float:
    """Highest resident memory of this process so far."""
    try:  # Linux: getrusage would also count the process that started this one
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.split("VmHWM:", 1)[1].split(maxsplit=1)[0]) / 2**10
    except (OSError, IndexError, ValueError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (2**20 if sys.platform == "darwin" else 2**10)


def reset_peak_memory() -> bool:
    """Let :func:`peak_memory_mb` count from now on; False where the system has no way to."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return False
    return True


class TooLarge(ConfigError):
    """Something needs more memory than there is."""


@dataclass(frozen=True)
class Room:
    """Bytes that the process holds and those it may hold at most; ``given``: a person said so."""

    held: int
    limit: int
    given: bool

    @classmethod
    def of(cls, memory_limit: float | None = None) -> Self:
        """The room there is within ``memory_limit`` gigabytes; without one: within what is available."""
        held = resident_bytes()
        if memory_limit is None:
            return cls(held, held + available_bytes(), False)
        if not isinstance(memory_limit, int | float) or not 0 < memory_limit < 1e9:
            raise ConfigError(f"the memory limit is {memory_limit!r} GB", fix="Give a positive number.")
        return cls(held, int(memory_limit * 1e9), True)

    def __str__(self) -> str:
        return f"{gigabytes(self.limit)} {'were allowed' if self.given else 'are available'}"

    @property
    def free(self) -> int:
        """What may be added to what is held."""
        return max(0, self.limit - self.held)

    def require(self, needed: int, what: str, where: str, fix: str | None = None) -> None:
        """Refuse what needs more; only a person can raise the limit, or do what ``fix`` says."""
        if needed > self.free:
            raise TooLarge(
                f"{what} needs about {gigabytes(self.held + needed)} of memory and {self}",
                where=where,
                fix=fix
                or (
                    "Use a machine with more memory or a smaller graph. If you know better, raise "
                    "memory_limit=...."
                ),
            )


def ran_out(error: BaseException | None) -> bool:
    """Whether an exception, or one that it came from, says that there was no memory left."""
    while error is not None:
        # PyTorch has no class of its own for it on a CPU
        if isinstance(error, MemoryError) or "allocate memory" in str(error).lower():
            return True
        error = error.__cause__ or error.__context__
    return False


def gigabytes(count: float) -> str:
    """``1.8 GB``."""
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.0f} MB"


def _group_rooms(root: Path) -> list[int]:
    """Room left in each memory control group that this process is in."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    rooms: list[int] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            mount, limit, usage = root / "sys/fs/cgroup", "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            mount = root / "sys/fs/cgroup/memory"
            limit, usage = "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        here = mount / path.lstrip("/")
        # in a container the path is often that of the host; what is mounted then is the group itself
        above = [folder for folder in here.parents if folder.is_relative_to(mount)]
        rooms += [_room(folder, limit, usage) for folder in (here, *above)]
    return rooms


def _room(folder: Path, limit: str, usage: str) -> int:
    """What a group may still take; version 1 writes a huge number, version 2 a word where there is no limit.

    Cached files count as used and are given up on demand.
    """
    try:
        most, used = (int((folder / name).read_text(encoding="utf-8")) for name in (limit, usage))
        lines = (folder / "memory.stat").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return _UNLIMITED
    values = dict(line.split(maxsplit=1) for line in lines)
    return most - used + int(values.get("total_inactive_file") or values.get("inactive_file") or 0)


# ---------------------------------------------------------------- threads


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch's products and decompositions in the calling thread only."""
    import torch  # not for who only asks for memory

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def side_by_side(jobs: Iterable[Callable[[], Result]]) -> Iterator[Result]:
    """Results of some jobs in their order, as many at a time as PyTorch has threads.

    Jobs are taken when there is room for them, so a generator keeps only those at work in memory.
    """
    import torch
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    workers = torch.get_num_threads()
    with one_thread(), threadpool_limits(1, user_api="blas"):
        if workers == 1:
            for job in jobs:
                yield job()
            return
        with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            begun: deque[Future[Result]] = deque()
            try:
                for job in jobs:
                    begun.append(pool.submit(job))
                    if len(begun) == workers:
                        yield begun.popleft().result()
                while begun:
                    yield begun.popleft().result()
            finally:
                pool.shutdown(cancel_futures=True)


# ---------------------------------------------------------------- progress, and time in words


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
