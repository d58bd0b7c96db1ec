"""Running a study: measure what has no record yet, some cells at a time, and lose nothing on the way.

The runner starts a process for every cell and ends it with itself. A process of its own has its own peak
memory, and if the system kills it the study goes on. It claims the cell and writes the record itself, so
neither a second runner nor the death of the first one does harm. A process that was killed leaves no record:
the next run measures its cell.
"""

import hashlib
import os
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from nodejepa.data.catalogue import CATALOGUE, load_dataset
from nodejepa.errors import ConfigError, DataError, NodeJEPAError
from nodejepa.files import lock_file, refusals, write_text
from nodejepa.machine import progress_bar
from nodejepa.study.measure import measure
from nodejepa.study.records import Record, append_record, finished, read_records
from nodejepa.study.spec import Cell, StudySpec

MEASURED, FAILED, TAKEN = 0, 3, 4  # exit codes of a cell's process
_ENDED = {MEASURED: "done", FAILED: "FAILED", TAKEN: "taken by another runner"}
# glibc returns every matrix above 32 MB to the system, and the next step waits for zeroed pages again. Kept,
# they take more memory: where time and memory are measured, they are handled as a user's would be.
_KEPT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**32)}
NO_DATA = "not run here: data not available offline"
_PROCESSES = get_context("spawn")


@dataclass(frozen=True)
class Folders:
    """Where a study reads and writes."""

    out: Path  # records.jsonl, later tables and figures
    runs: Path  # trained encoders, shared by all studies
    data_root: Path | None = None


@dataclass(frozen=True)
class Worklist:
    """What is left to do."""

    cells: tuple[Cell, ...]
    measured: int  # cells of the study that need nothing
    failed: int = 0  # those that failed before and are not tried again


def make_worklist(
    spec: StudySpec,
    folders: Folders,
    *,
    retry_failed: bool = False,
    wanted: Callable[[Cell], bool] = lambda _: True,
) -> Worklist:
    """The cells without a record, in the order of the specification."""
    records = read_records(folders.out)
    done = finished(records, retry_failed=True)
    failed = set() if retry_failed else finished(records) - done
    return Worklist(
        tuple(cell for cell in spec.cells if cell.key not in done | failed and wanted(cell)),
        sum(cell.key in done for cell in spec.cells),
        sum(cell.key in failed and wanted(cell) for cell in spec.cells),
    )


def run_study(
    work: Worklist,
    folders: Folders,
    *,
    jobs: int = 1,
    threads: int | None = None,
    retry_failed: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Counter[str]:
    """Measure the cells of a worklist in ``jobs`` processes; one line of ``records.jsonl`` a cell.

    One thread each (all cores are shared evenly if ``threads`` is not given) is usually faster than one cell
    with all threads. ``say`` is called for each finished cell. Returns how many cells ended how: ``done``,
    ``FAILED``, ``taken by another runner``, ``killed`` or ``not run``.
    """
    check_run(work, folders, jobs)
    for folder in (folders.out, folders.runs):
        with refusals(folder):
            folder.mkdir(parents=True, exist_ok=True)
    cells = _with_data(work.cells, folders, say)
    outcome = Counter({"not run": len(work.cells) - len(cells)})
    own_threads = str(threads or max(1, _cores() // jobs))
    left, running = cells[::-1], dict[Any, tuple[Any, Cell]]()
    with progress_bar("Cells", total=len(cells)) as advance, _terminate_is_interrupt():
        try:
            while left or running:
                while left and len(running) < jobs:
                    cell = left.pop()
                    with _environment(cell, own_threads):
                        process = _PROCESSES.Process(target=_work_alone, args=(cell, folders, retry_failed))
                        process.start()
                    running[process.sentinel] = process, cell
                for sentinel in wait(list(running)):
                    process, cell = running.pop(sentinel)
                    process.join()
                    how = _ENDED.get(process.exitcode, "killed")
                    outcome[how] += 1
                    advance(1, note=f"last: {cell.label}")
                    say(f"[{len(cells) - len(left) - len(running)}/{len(cells)}] {how}: {cell.label}")
        finally:  # Ctrl-C or kill: left alone they would compete with the next run; each has its checkpoint
            for process, _ in running.values():
                process.terminate()
    return outcome


@contextmanager
def _environment(cell: Cell, threads: str) -> Iterator[None]:
    """What libraries read when a process starts."""
    before = dict(os.environ)
    memory = {} if cell.kind == "efficiency" else _KEPT_MEMORY
    os.environ.update(memory | before | {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _terminate_is_interrupt() -> Iterator[None]:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _work_alone(cell: Cell, folders: Folders, retry_failed: bool) -> None:
    """In a process of its own, which draws no progress bars."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stderr(nowhere):
        code = work(cell, folders, retry_failed)
    sys.exit(code)


def check_run(work: Worklist, folders: Folders, jobs: int) -> None:
    """Refuse what would fail every cell or spoil what is measured, before any work."""
    if folders.data_root is not None and not folders.data_root.is_dir():
        raise DataError(
            "there is no such folder of data",
            where=str(folders.data_root),
            fix="Correct data_root=...; create the folder if graphs are to be downloaded into it.",
        )
    if not 1 <= jobs <= 4 * _cores():
        raise ConfigError(f"jobs is {jobs}", fix=f"Use 1 to {4 * _cores()}.")
    if jobs > 1 and any(cell.kind == "efficiency" for cell in work.cells):
        raise ConfigError(
            f"jobs is {jobs}, and the study measures time: cells side by side would slow each other down",
            fix="Use 1, on a machine that does nothing else.",
        )


def _cores() -> int:
    return os.cpu_count() or 1


def _with_data(cells: Sequence[Cell], folders: Folders, say: Callable[[str], None]) -> list[Cell]:
    """The cells whose graph is here or can be fetched; the others are recorded as not run."""
    missing = set()
    for name in dict.fromkeys(cell.dataset for cell in cells):
        if not CATALOGUE[name].is_present(folders.data_root):
            try:
                load_dataset(name, folders.data_root)
            except DataError as error:
                say(f"{name}: {error}")
                missing.add(name)
    known = {r["key"] for r in read_records(folders.out) if r.get("status") == "not run"}
    for cell in cells:
        if cell.dataset in missing and cell.key not in known:
            append_record(folders.out, cell_record(cell, "not run", reason=NO_DATA))
    return [cell for cell in cells if cell.dataset not in missing]


def work(cell: Cell, folders: Folders, retry_failed: bool = False) -> int:
    """Measure the cell unless somebody has done it or is doing it; the record says how it ended."""
    claimed = claim_path(cell, folders)
    claimed.parent.mkdir(parents=True, exist_ok=True)
    claim = lock_file(claimed, wait=False)
    if claim is None:
        return TAKEN
    with claim:
        if cell.key in finished(read_records(folders.out), retry_failed=retry_failed):
            return TAKEN
        try:
            found = measure(cell, folders.runs, folders.data_root)
        except Exception as error:
            whole = f"{cell.label}\n\n{traceback.format_exc()}"  # the record has one line of it
            write_text(folders.runs / "failures" / f"{cell.key}.txt", whole)
            # without ``where``: records are committed, and it may be a path of this machine
            reason = error.what if isinstance(error, NodeJEPAError) else f"{type(error).__name__}: {error}"
            append_record(folders.out, cell_record(cell, "failed", reason=reason))
            return FAILED
        append_record(folders.out, cell_record(cell, "done", **found))
        return MEASURED


def claim_path(cell: Cell, folders: Folders) -> Path:
    """The file that the process which measures a cell holds locked.

    Two studies, or two folders of one study, may have the same cell, each with a record of its own.
    """
    place = hashlib.sha256(str(folders.out.resolve()).encode()).hexdigest()[:8]
    return folders.runs / "claims" / f"{cell.study}-{cell.key}-{place}"


def cell_record(cell: Cell, status: str, **found: Any) -> Record:
    """A line of ``records.jsonl``."""
    identity = {"config": cell.config, "config_hash": cell.config_hash, "key": cell.key}
    return {**cell.describe(), "status": status, **found, **identity}
