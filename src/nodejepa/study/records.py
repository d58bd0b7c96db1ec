"""``records.jsonl``: one line a measured cell, appended safely by any number of processes."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from nodejepa.config import of_type
from nodejepa.errors import DataError
from nodejepa.files import hold, parse_json, refusals
from nodejepa.study.spec import coordinates, identified

Record = dict[str, Any]


@dataclass(frozen=True)
class _Place:
    """What every record says of where it stands in a table."""

    method: str
    dataset: str
    seed: int
    shots: int | None = None


def read_records(folder: str | Path) -> list[Record]:
    """The newest record of every cell, in a fixed order that does not depend on when they were measured.

    A last line that is no whole object was being written when the process was killed; it is not a record. A
    failure does not undo the same measurement done before.
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
            of_type(_Place, record)
        except ValueError as error:
            raise DataError(
                f"line {number} is no record of a study: {error}",
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
    with refusals(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            hold(file, wait=True)
            _end_last_line(file)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())


def finished(records: Sequence[Mapping[str, Any]], *, retry_failed: bool = False) -> set[str]:
    """Keys of the cells that need no further work; ``not run`` is tried again whenever asked."""
    ended = ("done",) if retry_failed else ("done", "failed")
    return {str(record.get("key")) for record in records if record.get("status") in ended}


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


def _end_last_line(file: IO[bytes]) -> None:
    """Behind the last line end: complete a whole record, drop what a killed process left."""
    file.seek(0)
    text = file.read()
    start = text.rfind(b"\n") + 1
    if start < len(text):
        if _is_whole(text[start:]):
            file.write(b"\n")
        else:
            file.truncate(start)
