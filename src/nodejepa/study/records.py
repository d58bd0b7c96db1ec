"""``records.jsonl``: one line a measured cell, appended safely by any number of processes."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodejepa.errors import DataError, NodeJEPAError
from nodejepa.files import hold, parse_json
from nodejepa.study.spec import coordinates, identified
from nodejepa.validation import of_type

Record = dict[str, Any]


def read_records(folder: str | Path) -> list[Record]:
    """The newest record of every cell, in a fixed order that does not depend on when they were measured.

    A last line that is no whole object was being written when the process was killed; it is not a record. A
    failure does not undo the same measurement done before: a worker may crash after its record, or a second
    one be killed beside the first.
    """
    path = Path(folder) / "records.jsonl"
    try:
        *lines, tail = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DataError(f"cannot read the records: {error.strerror}", where=str(path)) from None
    if _is_whole(tail):
        lines.append(tail)
    newest: dict[tuple[str, ...], Record] = {}
    for number, line in enumerate(lines, start=1):
        try:
            record = identified(_parse(line))
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


@dataclass(frozen=True)
class _Row:
    """What places a record in a table."""

    method: str
    dataset: str
    seed: int
    shots: int | None = None


def require_names(records: Iterable[Mapping[str, Any]], folder: str | Path) -> None:
    """Refuse records that belong to no row of a table: another program's, or edited by hand."""
    for record in records:
        try:
            of_type(_Row, record)
        except ValueError as error:
            raise DataError(
                f"a record is not one of a study: {error}",
                where=str(Path(folder) / "records.jsonl"),
                fix="Delete that line; its cell is measured again by the next run.",
            ) from None


def append_record(folder: str | Path, record: Mapping[str, Any]) -> None:
    """Add one line, whole or not at all, beside other processes doing the same."""
    path = Path(folder) / "records.jsonl"
    line = json.dumps(record, allow_nan=False, ensure_ascii=False).encode() + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            hold(file, wait=True)
            _end_last_line(file.fileno())
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise NodeJEPAError(
            f"cannot write the record: {error.strerror}",
            where=str(path),
            fix="Check the path, its permissions and the free space.",
        ) from None


def finished(records: Sequence[Mapping[str, Any]], *, retry_failed: bool = False) -> set[str]:
    """Keys of the cells that need no further work.

    ``not run`` is tried again whenever asked, and so is what failed for want of memory, disk or a machine.
    """
    done = {str(record.get("key")) for record in records if _is_done(record)}
    return done if retry_failed else done | left_failed(records)


def left_failed(records: Iterable[Mapping[str, Any]]) -> set[str]:
    """Keys of the cells that failed by themselves: measured again, they would fail again."""
    own = (r for r in records if r.get("status") == "failed" and r.get("machine") is not True)
    return {str(record.get("key")) for record in own}


def _is_done(record: Mapping[str, Any]) -> bool:
    return record.get("status") == "done"


def _parse(line: bytes) -> Record:
    if not line.strip():
        raise ValueError("it is empty")
    return of_type(Record, parse_json(line))


def _is_whole(line: bytes) -> bool:
    """Whether only the end of the line is missing: an object is whole when its bracket is closed."""
    try:
        _parse(line)
    except ValueError:
        return False
    return True


def _end_last_line(handle: int) -> None:
    """Behind the last line end: complete a whole record, drop what a killed process left."""
    size = os.fstat(handle).st_size
    start = size
    while start > 0:
        before = max(0, start - 4096)
        found = os.pread(handle, start - before, before).rfind(b"\n")
        if found >= 0:
            start = before + found + 1
            break
        start = before
    if start == size:
        return
    if _is_whole(os.pread(handle, size - start, start)):
        os.write(handle, b"\n")
    else:
        os.ftruncate(handle, start)
