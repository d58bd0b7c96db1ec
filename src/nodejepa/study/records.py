"""``records.jsonl``: one line a measured cell, appended safely by any number of processes."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nodejepa.errors import DataError, NodeJEPAError

Record = dict[str, Any]


def read_records(folder: str | Path) -> list[Record]:
    """The newest record of every cell, in a fixed order that does not depend on when they were measured.

    A last line without its end was being written when the process was killed; it is not a record. A failure
    does not undo the same measurement done before: a worker may crash after its record, or a second one be
    killed beside the first.
    """
    path = Path(folder) / "records.jsonl"
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DataError(f"cannot read the records: {error.strerror}", where=str(path)) from None
    newest: dict[tuple[str, ...], Record] = {}
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError("not an object")
        except ValueError as error:
            raise DataError(
                f"line {number} is damaged: {error}",
                where=str(path),
                fix="Delete that line; its cell is measured again by the next run.",
            ) from None
        before = newest.get(coordinates(record), {})
        if not (_is_done(before) and not _is_done(record) and before.get("key") == record.get("key")):
            newest[coordinates(record)] = record
    return [newest[place] for place in sorted(newest)]


def append_record(folder: str | Path, record: Mapping[str, Any]) -> None:
    """Add one line, whole or not at all, beside other processes doing the same."""
    path = Path(folder) / "records.jsonl"
    line = json.dumps(record, allow_nan=False, ensure_ascii=False).encode() + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            _cut_torn_line(file.fileno())
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise NodeJEPAError(
            f"cannot write the record: {error.strerror}",
            where=str(path),
            fix="Check the path, its permissions and the free space.",
        ) from None


def coordinates(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Where a record stands in the tables."""
    names = ("kind", "method", "preset", "variant", "dataset", "split", "seed")
    return tuple(str(record.get(name)) for name in names)


def finished(records: Iterable[Mapping[str, Any]], *, retry_failed: bool = False) -> set[str]:
    """Keys of the cells that need no further work. ``not run`` is tried again whenever asked."""
    done = ("done",) if retry_failed else ("done", "failed")
    return {str(record.get("key")) for record in records if record.get("status") in done}


def _is_done(record: Mapping[str, Any]) -> bool:
    return record.get("status") == "done"


def _cut_torn_line(handle: int) -> None:
    """Drop what a killed process left behind the last whole line."""
    size = os.fstat(handle).st_size
    end = size
    while end > 0:
        start = max(0, end - 4096)
        found = os.pread(handle, end - start, start).rfind(b"\n")
        if found >= 0:
            end = start + found + 1
            break
        end = start
    if end < size:
        os.ftruncate(handle, end)
