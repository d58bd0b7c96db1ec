"""Running a study: measure what has no record yet, some cells at a time, and lose nothing on the way.

The runner starts a process for every cell, ``python -m nodejepa.study.runner`` with its order on stdin, and
ends it with itself. A process of its own has its own peak memory, and if the system kills it the study goes
on. It claims the cell and writes the record itself, so neither a second runner nor the death of the first one
does harm.
"""

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nodejepa.data.catalogue import CATALOGUE, load_dataset
from nodejepa.errors import ConfigError, DataError, NodeJEPAError
from nodejepa.files import lock_file, write_text
from nodejepa.memory import ran_out
from nodejepa.progress import announce_duration, in_words, progress_bar
from nodejepa.study.estimate import Forecast, Remaining
from nodejepa.study.measure import encoder_folder, measure
from nodejepa.study.records import Record, append_record, finished, left_failed, read_records
from nodejepa.study.spec import Cell, StudySpec

MEASURED, FAILED, TAKEN = 0, 3, 4  # exit codes
_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ESTALE)
# glibc returns every matrix above 32 MB to the system, and the next step waits for zeroed pages again. Kept,
# they take more memory: where time and memory are measured, they are handled as a user's would be.
_KEPT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**32)}
_ENDED_BY_SOMEBODY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # no fault of the cell: left for later
_ENDED_BY_THE_SYSTEM = (signal.SIGKILL, signal.SIGBUS, signal.SIGXCPU)  # nor here: tried again
_QUIET_LOAD = 0.5  # processes at work on average; above it somebody else is one of them
NO_DATA = "not run here: data not available offline"


@dataclass(frozen=True)
class Folders:
    """Where a study reads and writes."""

    out: Path  # records.jsonl, later tables and figures
    runs: Path  # trained encoders, shared by all studies
    data_root: Path | None = None


@dataclass(frozen=True)
class Worklist:
    """What is left to do, and about how long it takes one worker."""

    cells: tuple[Cell, ...]
    seconds: tuple[float, ...]
    measured: int  # cells of the study that need nothing
    failed: int = 0  # those that failed before and are not tried again


@dataclass
class Outcome:
    """How a run of a study went."""

    measured: int = 0
    failed: int = 0
    elsewhere: int = 0  # taken by another runner, or ended by somebody
    not_run: int = 0


def make_worklist(
    spec: StudySpec,
    folders: Folders,
    *,
    retry_failed: bool = False,
    wanted: Callable[[Cell], bool] = lambda _: True,
) -> Worklist:
    """The cells without a record, in the order of the specification."""
    records = read_records(folders.out)
    done = finished(records, retry_failed=retry_failed)
    left = tuple(cell for cell in spec.cells if cell.key not in done and wanted(cell))
    seconds = tuple(Forecast(records, folders.runs).all_seconds(left))
    failed = left_failed(records) & done
    return Worklist(
        left,
        seconds,
        sum(cell.key in done - failed for cell in spec.cells),
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
) -> Outcome:
    """Measure the cells of a worklist in ``jobs`` processes; one line of ``records.jsonl`` a cell.

    One thread each (all cores are shared evenly if ``threads`` is not given) is usually faster than one cell
    with all threads. ``say`` is called for each finished cell.
    """
    check_run(work, folders, jobs)
    _make_folders(folders)
    outcome = Outcome()
    taken = take_over(work.cells, folders)
    if taken:
        say(f"{len(taken)} cells were measured in a study beside this one: their records are taken over.")
    cells = _with_data([cell for cell in work.cells if cell.key not in taken], folders, outcome, say)
    _warn_if_busy(cells, say)
    seconds = dict(zip((cell.key for cell in work.cells), work.seconds, strict=True))
    estimates = {cell.key: seconds[cell.key] for cell in cells}
    announce_duration("The study", sum(estimates.values()) / jobs)
    remaining = Remaining(estimates, jobs)
    workers = Workers(folders, threads or max(1, _cores() // jobs), retry_failed)
    started = time.monotonic()
    with progress_bar("Cells", total=len(cells)) as advance, pool_of(jobs, workers) as pool:
        futures = {pool.submit(workers.measure, cell): cell for cell in apart(cells, folders)}
        for number, future in enumerate(as_completed(futures), start=1):
            cell, (code, said) = futures[future], future.result()
            _count(outcome, cell, code, said, folders)
            spent = time.monotonic() - started
            left = f"about {in_words(remaining.after(cell.key, spent, measured=code != TAKEN))} left"
            advance(1, note=f"{left}; last: {cell.label}")
            ended = {MEASURED: "done", TAKEN: "left to others"}.get(code, "FAILED")
            say(f"[{number}/{len(cells)}, {in_words(spent)}, {left}] {ended}: {cell.label}")
    return outcome


def take_over(cells: Sequence[Cell], folders: Folders) -> set[str]:
    """Keys of the cells that studies beside this one have measured; their records become this study's, too.

    Only accuracies: times belong to the run that they were measured in.
    """
    wanted = {cell.key: cell for cell in cells if cell.kind == "probe"}
    taken: set[str] = set()
    for path in sorted(folders.out.parent.glob("*/records.jsonl")):
        if not wanted or path.parent == folders.out:
            continue
        for record in read_records(path.parent):
            if record.get("status") == "done" and (cell := wanted.pop(str(record.get("key")), None)):
                mine = {**record, **cell.describe(), "measured_in": str(record.get("study"))}
                append_record(folders.out, mine)
                taken.add(cell.key)
    return taken


def apart(cells: Sequence[Cell], folders: Folders) -> list[Cell]:
    """Cells that share an encoder one behind the other: side by side, all but one would wait."""
    seen: Counter[Path] = Counter()
    turns = []
    for cell in cells:
        folder = encoder_folder(cell, folders.runs)
        turns.append(seen[folder])
        seen[folder] += 1
    return [cells[i] for i in sorted(range(len(cells)), key=turns.__getitem__)]


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


def _warn_if_busy(cells: Sequence[Cell], say: Callable[[str], None]) -> None:
    load = os.getloadavg()[0]
    if load > _QUIET_LOAD and any(cell.kind == "efficiency" for cell in cells):
        say(
            f"The machine is not idle (load average {load:.1f}): times measured now are too long. "
            "Stop, end what else is running, wait a minute, and run this again."
        )


def _cores() -> int:
    return os.cpu_count() or 1


def _make_folders(folders: Folders) -> None:
    for folder in (folders.out, folders.runs):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            why = None if os.access(folder, os.W_OK) else "no permission"
        except OSError as error:
            why = error.strerror
        if why:
            fix = "Name another with out=... or runs=...."
            raise ConfigError(f"cannot write there: {why}", where=str(folder), fix=fix)


def _with_data(
    cells: Sequence[Cell], folders: Folders, outcome: Outcome, say: Callable[[str], None]
) -> list[Cell]:
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
        if cell.dataset in missing:
            outcome.not_run += 1
            if cell.key not in known:
                append_record(folders.out, cell_record(cell, "not run", reason=NO_DATA))
    return [cell for cell in cells if cell.dataset not in missing]


def _count(outcome: Outcome, cell: Cell, code: int, said: str, folders: Folders) -> None:
    if code == MEASURED:
        outcome.measured += 1
    elif code == TAKEN or -code in _ENDED_BY_SOMEBODY:
        outcome.elsewhere += 1
    else:
        outcome.failed += 1
        if code != FAILED:  # it did not live to say so itself
            how = f"signal {-code}: out of memory?" if code < 0 else f"exit code {code}{_error_name(said)}"
            keep_failure(folders.runs, cell, said or f"The process ended with {how} without a word.\n")
            blame = {"machine": True} if -code in _ENDED_BY_THE_SYSTEM else {}
            reason = f"the process ended with {how}"
            append_record(folders.out, cell_record(cell, "failed", reason=reason, **blame))


def _error_name(said: str) -> str:
    """The kind of the exception that ended a process; not its message, which may hold a path."""
    last = said.strip().rpartition("\n")[2].partition(":")[0].rpartition(".")[2]
    return f" ({last})" if last.isidentifier() else ""


class Workers:
    """Starts the worker processes and stops them with us."""

    def __init__(self, folders: Folders, threads: int, retry_failed: bool) -> None:
        self.folders, self.retry_failed = folders, retry_failed
        self.environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
        self.running: set[subprocess.Popen[bytes]] = set()
        self.stopped = False
        self.guard = threading.Lock()

    def measure(self, cell: Cell) -> tuple[int, str]:
        """The exit code of the process that measured the cell, and what it wrote to stderr."""
        if cell.key in finished(read_records(self.folders.out), retry_failed=self.retry_failed):
            return TAKEN, ""
        with self.guard:
            if self.stopped:
                return TAKEN, ""
            process = subprocess.Popen(
                [sys.executable, "-m", "nodejepa.study.runner"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=self.environment if cell.kind == "efficiency" else _KEPT_MEMORY | self.environment,
            )
            self.running.add(process)
        places = {name: path and str(path) for name, path in vars(self.folders).items()}
        order = {"cell": asdict(cell), "folders": places, "retry_failed": self.retry_failed}
        _, said = process.communicate(json.dumps(order).encode())
        with self.guard:
            self.running.discard(process)
            code = TAKEN if self.stopped else process.returncode
        return code, said.decode("utf-8", "replace")

    def stop(self) -> None:
        """End all workers; each has its last checkpoint."""
        with self.guard:
            self.stopped = True
            for process in self.running:
                process.terminate()


@contextmanager
def pool_of(jobs: int, workers: Workers) -> Iterator[ThreadPoolExecutor]:
    """Threads that wait for the workers; an interruption ends both."""
    with ThreadPoolExecutor(jobs) as pool, _terminate_is_interrupt():
        try:
            yield pool
        except BaseException:  # Ctrl-C or kill: what waits is dropped, what runs is ended
            workers.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _terminate_is_interrupt() -> Iterator[None]:
    """A runner that is asked to end also ends its workers: left alone they would compete with the next."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def work(cell: Cell, folders: Folders, retry_failed: bool = False) -> int:
    """Measure the cell unless somebody has done it or is doing it; the record says how it ended."""
    out, runs = folders.out, folders.runs
    claimed = claim_path(cell, out, runs)
    claimed.parent.mkdir(parents=True, exist_ok=True)
    claim = lock_file(claimed, wait=False)
    if claim is None:
        return TAKEN
    with claim:
        if cell.key in finished(read_records(out), retry_failed=retry_failed):
            return TAKEN
        try:
            found = measure(cell, runs, folders.data_root)
        except Exception as error:
            keep_failure(runs, cell, traceback.format_exc())
            blame = {"machine": True} if _is_of_the_machine(error) else {}
            append_record(out, cell_record(cell, "failed", reason=_reason(error), **blame))
            return FAILED
        append_record(out, cell_record(cell, "done", **found))
        return MEASURED


def claim_path(cell: Cell, out: Path, runs: Path) -> Path:
    """The file that the process which measures a cell holds locked.

    Two studies, or two folders of one study, may have the same cell, each with a record of its own.
    """
    place = hashlib.sha256(str(out.resolve()).encode()).hexdigest()[:8]
    return runs / "claims" / f"{cell.study}-{cell.key}-{place}"


def keep_failure(runs: Path, cell: Cell, text: str) -> None:
    """What went wrong, in full; the record has one line of it."""
    write_text(runs / "failures" / f"{cell.key}.txt", f"{cell.label}\n\n{text}")


def cell_record(cell: Cell, status: str, **found: Any) -> Record:
    """A line of ``records.jsonl``."""
    identity = {"config": cell.config, "config_hash": cell.config_hash, "key": cell.key}
    return {**cell.describe(), "status": status, **found, **identity}


def _reason(error: Exception) -> str:
    """Without ``where``: records are committed, and it may be a path of this machine."""
    return error.what if isinstance(error, NodeJEPAError) else f"{type(error).__name__}: {error}"


def _is_of_the_machine(error: BaseException | None) -> bool:
    """Whether the next attempt may well succeed: no space, no memory, too many open files."""
    if ran_out(error):
        return True
    while error is not None and not (isinstance(error, OSError) and error.errno in _PASSING):
        error = error.__cause__ or error.__context__
    return error is not None


if __name__ == "__main__":
    order = json.load(sys.stdin)
    folders: dict[str, Any] = {name: path and Path(path) for name, path in order["folders"].items()}
    sys.exit(work(Cell(**order["cell"]), Folders(**folders), order["retry_failed"]))
