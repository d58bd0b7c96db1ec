"""The processes that measure cells: started one a cell, and ended with the runner."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nodejepa.study.run.cell import Cell
from nodejepa.study.run.records import finished, read_records
from nodejepa.study.run.worker import TAKEN

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
        root = self.folders.data_root
        text = json.dumps(
            {
                "cell": cell.to_json(),
                "out": str(self.folders.out),
                "runs": str(self.folders.runs),
                "data_root": str(root) if root else None,
                "retry_failed": self.retry_failed,
            }
        )
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
        _, said = process.communicate(text.encode())
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
