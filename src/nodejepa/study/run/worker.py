"""The processes that measure cells: started one a cell by the runner, and ended with it.

Each is ``python -m nodejepa.study.run.worker``, the order on stdin. A process of its own has its own peak
memory, and if the system kills it the study goes on. It claims the cell and writes the record itself, so
neither a second runner nor the death of the first one does harm.
"""

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nodejepa.errors import NodeJEPAError
from nodejepa.files import lock_file, write_text
from nodejepa.memory import ran_out
from nodejepa.study.run.cell import Cell
from nodejepa.study.run.records import Record, append_record, finished, read_records

MEASURED, FAILED, TAKEN = 0, 3, 4  # exit codes
_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ESTALE)


# glibc returns every matrix above 32 MB to the system, and the next step waits for zeroed pages again. Kept,
# they take more memory: where time and memory are measured, they are handled as a user's would be.
_KEPT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**32)}


@dataclass(frozen=True)
class Folders:
    """Where a study reads and writes."""

    out: Path  # records.jsonl, later tables and figures
    runs: Path  # trained encoders, shared by all studies
    data_root: Path | None = None


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
                [sys.executable, "-m", "nodejepa.study.run.worker"],
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
    """A runner that is told to end takes its workers along: left alone they would compete with the next."""

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
            from nodejepa.study.run.measure import measure  # heavy: not before the cell is ours

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
    """What went wrong, in full, for whoever wants to know; the record has one line of it."""
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
