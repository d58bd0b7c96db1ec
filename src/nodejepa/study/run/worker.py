"""One process measures one cell (``python -m nodejepa.study.run.worker``, the order on stdin).

A process of its own has its own peak memory, and if the system kills it the study goes on. It claims the cell
and writes the record itself, so neither a second runner nor the death of the first one does harm.
"""

from __future__ import annotations

import errno
import hashlib
import json
import sys
import traceback
from pathlib import Path
from typing import Any

from nodejepa.errors import NodeJEPAError
from nodejepa.files import write_text
from nodejepa.locks import lock_file
from nodejepa.memory import ran_out
from nodejepa.study.run.cell import Cell
from nodejepa.study.run.records import Record, append_record, finished, read_records

MEASURED, FAILED, TAKEN = 0, 3, 4  # exit codes
_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ESTALE)


def work(cell: Cell, out: Path, runs: Path, data_root: Path | None, *, retry_failed: bool) -> int:
    """Measure the cell unless somebody has done it or is doing it; the record says how it ended."""
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

            found = measure(cell, runs, data_root)
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


def main() -> int:
    """Read the order, obey."""
    order = json.loads(sys.stdin.read())
    root = order["data_root"]
    return work(
        Cell.from_json(order["cell"]),
        Path(order["out"]),
        Path(order["runs"]),
        Path(root) if root else None,
        retry_failed=order["retry_failed"],
    )


if __name__ == "__main__":
    sys.exit(main())
