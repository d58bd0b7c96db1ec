"""CSV, TSV and their kin: how a file is laid out, found by looking at its beginning, and its cells as text.

Nothing is converted here: ``007`` stays ``007`` and a 64-bit id never passes through a float. What a column
holds is decided later, from all of it.
"""

import csv
import io
import mmap
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from nodejepa.errors import DataError, GraphError
from nodejepa.machine import progress_bar
from nodejepa.tables.cells import MISSING
from nodejepa.tables.options import ReadReport, speaks_of_a_graph, unnamed
from nodejepa.tables.table import InputTable, column_kinds, reading

_BLOCK = 1 << 22
_SHOW_PROGRESS_ABOVE = 8_000_000  # bytes; smaller files are read in a blink
_END = "nodejepaEndOfRows"
_QUOTING = "Check quotes and delimiters there: a cell with a delimiter in it needs quotes on both sides."
_NOT_UTF8 = 'Save it as UTF-8; spreadsheets call that "CSV UTF-8".'


@dataclass(frozen=True)
class _Layout:
    """A delimited file whose columns are known; ``skip_lines`` stand above the first row."""

    path: Path
    compression: str | None
    names: tuple[str, ...]
    delimiter: str
    skip_lines: int

    def batches(self, columns: Sequence[str], label: str) -> Iterator[pa.Table]:
        """The named columns as text, a few megabytes at a time."""
        where = str(self.path)
        options: dict[str, Any] = {
            "read_options": pacsv.ReadOptions(
                column_names=list(self.names),
                skip_rows=self.skip_lines,
                block_size=_BLOCK,
                use_threads=False,  # as fast, and a bad row is named by its number
            ),
            "parse_options": pacsv.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=self._may_break_lines()
            ),
            "convert_options": pacsv.ConvertOptions(
                column_types={name: pa.string() for name in columns},
                include_columns=list(columns),
                strings_can_be_null=False,
            ),
        }
        last = ("\n" + self.delimiter.join([_END] * len(self.names)) + "\n").encode()
        size, done = self.path.stat().st_size, 0
        bar = progress_bar(label, round(size / 1e6), shown=size > _SHOW_PROGRESS_ABOVE)
        with reading(where, _QUOTING), self.path.open("rb") as file, bar as advance:
            held: pa.Table | None = None  # the last batch ends in the row that marks the end
            try:
                ended = pa.PythonFile(_WithLastRow(_unpacked(file, self.compression), last), mode="r")
                with pacsv.open_csv(ended, **options) as reader:
                    for batch in reader:
                        if held is not None:
                            yield held
                        held = pa.Table.from_batches([batch]) if batch.num_rows else held
                        done, before = file.tell(), done
                        advance((done - before) / 1e6)
            except pa.ArrowInvalid as error:
                if comment := re.search(r"Row #\d+: Expected .*: [#%].*", str(error)):
                    fix = "Comments may stand above the first row only: remove the others."
                    raise DataError(
                        f"a comment is among the rows: {comment[0]}", where=where, fix=fix
                    ) from None
                if "invalid UTF8" not in str(error):
                    raise
                raise DataError(f"the text is not UTF-8: {error}", where=where, fix=_NOT_UTF8) from None
            if held is None or any(column[-1].as_py() != _END for column in held.columns):
                raise DataError("a quote is opened and never closed", where=where, fix=_QUOTING)
            if held.num_rows > 1:
                yield held.slice(0, held.num_rows - 1)

    def _may_break_lines(self) -> bool:
        """Only between quotes can a cell hold a line break; without quotes lines are cut faster."""
        if self.compression is not None:
            return True
        with self.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(b'"') >= 0


class _WithLastRow:
    """A stream and one row more. An open quote would swallow everything to the end, and so this row."""

    closed = False

    def __init__(self, stream: Any, row: bytes) -> None:
        self._stream, self._row = stream, row

    def read(self, size: int) -> bytes:
        """The next bytes; the row when there are no more."""
        content: bytes = self._stream.read(size)
        if not content:
            content, self._row = self._row, b""
        return content

    def close(self) -> None:
        """The stream belongs to its opener."""


def _unpacked(file: Any, compression: str | None) -> Any:
    stream = pa.PythonFile(file, mode="r")
    return pa.CompressedInputStream(stream, compression) if compression else stream


# ---------------------------------------------------------------- layout


_SAMPLE = 1 << 16
_LARGEST_SAMPLE = 1 << 23
_MOST_COLUMNS = 1 << 17  # more take minutes to tell apart, and are rows without line breaks
_LINES = 4  # a sample has at least as many lines, however long they are
_DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", " ": "space", "|": "bar"}
_PREFERRED = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
_DATA_LIKE = re.compile(
    r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|\d{4}-\d\d-\d\d.*"
)
_FEWEST_NUMBERED = 3  # columns called 0, 1, 2 are numbered, two of them may be chance


def open_text(
    path: Path, compression: str | None, report: ReadReport, delimiter: str | None, header: bool | None
) -> InputTable:
    """Look at the beginning of a file; what was not given is guessed, and doubtful guesses are noted."""
    if delimiter is not None and not _is_plain(delimiter):
        raise GraphError(f"delimiter {delimiter!r} is not one plain character", where="delimiter")
    sample, whole = _sample(path, compression)
    lines = io.StringIO(sample, newline="").readlines()
    skipped = 0
    declared = _SEPARATOR_LINE.fullmatch(lines[0]) if lines else None
    if declared and _is_plain(declared[1]):  # spreadsheets declare the delimiter so
        skipped, delimiter = 1, delimiter or declared[1]
    while skipped < len(lines) and lines[skipped].startswith(("#", "%")):
        skipped += 1
    if lines and skipped == len(lines):
        raise DataError(
            "every line begins with # or %, as comments do",
            where=str(path),
            fix="Write a row with the names of the columns above: below it such ids are read.",
        )
    body = "".join(lines[skipped:])
    delimiter = delimiter or _guess_delimiter(body, path, whole, report)
    rows, lines_of_first = _rows(body, delimiter, whole)
    if not rows:
        raise DataError("the file has no rows", where=str(path), fix="Write it again.")
    if len(rows[0]) > _MOST_COLUMNS:
        raise DataError(
            f"the first row has more than {_MOST_COLUMNS:,} columns",
            where=str(path),
            fix="Check the delimiter and the line breaks. In Python, Graph.from_edges(..., features=x) takes "
            "features so wide.",
        )
    if delimiter == " " and any("" in row[:-1] for row in rows):
        raise GraphError(
            "columns are separated by several spaces, so nobody can tell an empty cell from none",
            where=str(path),
            fix="Separate them by one tab or one comma.",
        )
    above = _names_above(lines[:skipped], delimiter, rows[0]) if header is None else []
    header = _guess_header(rows, path, report) if header is None and not above else bool(header)
    given = above or (rows[0] if header else [""] * len(rows[0]))
    names = tuple(name.strip() or unnamed(i) for i, name in enumerate(given, start=1))
    layout = _Layout(path, compression, names, delimiter, skipped + (lines_of_first if header else 0))
    kinds = column_kinds(names, [pa.string()] * len(names), str(path))
    return InputTable(str(path), kinds, False, layout.batches)


def _names_above(comments: list[str], delimiter: str, row: list[str]) -> list[str]:
    """The names of the columns if they stand in the comment above the first row: ``#source,target``."""
    line = comments[-1] if comments else ""
    names = next(csv.reader([line.lstrip("#%").strip()], delimiter=delimiter), [])
    counted = any(name.strip().endswith(":") or _DATA_LIKE.fullmatch(name.strip()) for name in names)
    return names if len(names) == len(row) and speaks_of_a_graph(names) and not counted else []  # Nodes: 3


def _is_plain(delimiter: str) -> bool:
    return (
        len(delimiter) == 1 and delimiter.isascii() and not delimiter.isalnum() and delimiter not in '\r\n"'
    )


def _sample(path: Path, compression: str | None) -> tuple[str, bool]:
    """The beginning of the text, a few lines of it at least, and whether that is all of it."""
    size = _SAMPLE
    while True:
        with reading(str(path)), path.open("rb") as file:
            content: bytes = _unpacked(file, compression).read(size + 1)
        whole = len(content) <= size
        lines = max(content.count(b"\n"), content.count(b"\r"))
        if whole or lines >= _LINES or size >= _LARGEST_SAMPLE:
            break
        size *= 8
    if not whole and not lines:
        raise DataError(
            f"the first line is longer than {size >> 20} MB",
            where=str(path),
            fix="A table is text with a line for every row.",
        )
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        return content.decode("utf-8"), whole
    except UnicodeDecodeError as error:
        if whole or error.start < len(content) - 4:  # else a letter was cut through
            line = content.count(b"\n", 0, error.start) + 1
            raise DataError(f"line {line} is not UTF-8 text", where=str(path), fix=_NOT_UTF8) from None
        return content.decode("utf-8", errors="ignore"), whole


def _rows(body: str, delimiter: str, whole: bool) -> tuple[list[list[str]], int]:
    """Rows of the sample that are complete, and how many lines the first one ends after."""
    reader = csv.reader(io.StringIO(body, newline=""), delimiter=delimiter)
    rows: list[list[str]] = []
    first = 0
    try:
        for row in reader:
            if row and not rows:
                first = reader.line_num
                if len(row) > _MOST_COLUMNS:  # refused by the caller: the others need not be cut
                    return [row], first
            rows += [row] if row else []
    except csv.Error:  # a field beyond the module's limit: Arrow will say where
        pass
    return (rows if whole or len(rows) < 2 else rows[:-1]), first


def _guess_delimiter(body: str, path: Path, whole: bool, report: ReadReport) -> str:
    preferred = next(
        (_PREFERRED[ending.lower()] for ending in path.suffixes if ending.lower() in _PREFERRED), ""
    )
    best, width = "", 1
    for candidate in dict.fromkeys([preferred or ",", *_DELIMITERS]):
        rows, _ = _rows(body, candidate, whole)
        counts = {len(row) for row in rows}
        if len(counts) == 1 and max(counts) > width:
            best, width = candidate, max(counts)
        if best and best == preferred:
            break
    if not best:  # nothing is regular: take what the first row has, and let the parser name the bad row
        first = body.split("\n", 1)[0]
        best = preferred if preferred and preferred in first else max(_DELIMITERS, key=first.count)
        if first.count(best) == 0:
            raise GraphError(
                "the file has one column",
                where=str(path),
                fix="Separate columns by comma, tab or semicolon: an edge has two ends, a node an id.",
            )
    if best != preferred:
        report.note(f"{path.name}: columns are taken to be separated by {_DELIMITERS[best]}.")
    return best


def _guess_header(rows: list[list[str]], path: Path, report: ReadReport) -> bool:
    first, rest = [cell.strip() for cell in rows[0]], rows[1:]
    below = [[row[i].strip() for row in rest if i < len(row)] for i in range(len(first))]
    shown = ", ".join(first[:4])[:80]
    words = [i for i, cell in enumerate(first) if cell not in MISSING and not _DATA_LIKE.fullmatch(cell)]
    over_data = [i for i in words if _all_data(below[i])]
    numbered = len(words) < len(first) and _are_numbered(first, words)
    known = speaks_of_a_graph(first)
    telling = known and any(len(cell) > 1 for cell in first)  # a and b may as well be two nodes
    data_like = any(_DATA_LIKE.fullmatch(cell) for cell in first)
    if data_like and (numbered or (words and over_data == words)):
        return True
    cells = [set(column) for column in below]
    repeated = any(cell in cells[i] for i, cell in enumerate(first) if cell)
    elsewhere = not telling and not over_data and any(set(first[:2]) & column for column in cells[:2])
    if telling and first in [[cell.strip() for cell in row] for row in rest]:
        raise GraphError(
            f"the header ({shown}) stands again below",
            where=str(path),
            fix="Remove it there: files were joined, each with its header. If it is data, say header=False.",
        )
    if data_like or repeated or elsewhere:
        report.note(
            f"{path.name}: the first row ({shown}) looks like data, so the file is taken to have no header; "
            "say header=True if it has."
        )
        return False
    if not rest:
        report.note(f"{path.name}: its only row ({shown}) is taken for the header.")
    elif not known and not over_data:
        report.note(
            f"{path.name}: the first row ({shown}) is taken for the header; say header=False if it is data."
        )
    return True


def _all_data(cells: list[str]) -> bool:
    """Whether a column holds numbers, dates or UUIDs and nothing else: a word above it is its name."""
    there = [cell for cell in cells if cell not in MISSING]
    return bool(there) and all(map(_DATA_LIKE.fullmatch, there))


def _are_numbered(first: list[str], words: list[int]) -> bool:
    """Whether columns are called 0, 1, 2, ..., as those of a frame without names, beside one of ids."""
    numbers = [cell for i, cell in enumerate(first) if i not in words and cell not in MISSING]
    if len(numbers) < 2 or len(numbers) == len(first) or not all(cell.isdecimal() for cell in numbers):
        return False
    start = int(numbers[0])
    running = all(int(cell) == start + i for i, cell in enumerate(numbers))
    named = first[0] == "" or speaks_of_a_graph([first[i] for i in words])
    return running and (named or len(numbers) >= _FEWEST_NUMBERED)
