"""CSV, TSV and their kin: delimiter and header found by looking, every cell kept as the text it is.

Nothing is converted here: ``007`` stays ``007`` and a 64-bit id never passes through a float. What a column
holds is decided later, from all of it.
"""

from __future__ import annotations

import csv
import io
import mmap
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from nodejepa.errors import DataError, GraphError
from nodejepa.io.files_in import byte_stream, reading
from nodejepa.io.report import ReadReport

_SAMPLE = 1 << 16
_BLOCK = 1 << 22
_NAMES = {",": "comma", "\t": "tab", ";": "semicolon", " ": "space", "|": "bar"}
_PREFERRED = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_DATA_LIKE = re.compile(
    r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|\d{4}-\d\d-\d\d.*"
)
_END = "nodejepaEndOfRows"
_QUOTING = "Check quotes and delimiters there: a cell with a delimiter in it needs quotes on both sides."


@dataclass(frozen=True)
class TextTable:
    """A delimited file whose columns are known and whose rows are read on request."""

    path: Path
    compression: str | None
    names: tuple[str, ...]
    delimiter: str
    skip_lines: int

    def read(self, columns: Sequence[str], label: str) -> pa.Table:
        """The named columns as text."""
        where = str(self.path)
        with reading(where, _QUOTING):
            try:
                return self._parse(columns, label, threads=True)
            except pa.ArrowInvalid as error:
                if "Row #" in str(error):
                    raise
            return self._parse(columns, None, threads=False)  # slower, but it knows which row is bad

    def _parse(self, columns: Sequence[str], label: str | None, *, threads: bool) -> pa.Table:
        quoted = self._may_break_lines()
        with byte_stream(self.path, self.compression, label) as stream:
            table = pacsv.read_csv(
                pa.PythonFile(_WithLastRow(stream, self._last_row()), mode="r") if quoted else stream,
                read_options=pacsv.ReadOptions(
                    column_names=list(self.names),
                    skip_rows=self.skip_lines,
                    block_size=_BLOCK,
                    use_threads=threads,
                ),
                parse_options=pacsv.ParseOptions(delimiter=self.delimiter, newlines_in_values=quoted),
                convert_options=pacsv.ConvertOptions(
                    column_types={name: pa.string() for name in columns},
                    include_columns=list(columns),
                    strings_can_be_null=False,
                ),
            )
        if not quoted:
            return table
        last = table.num_rows - 1
        if last < 0 or any(column[last].as_py() != _END for column in table.columns):
            raise DataError("a quote is opened and never closed", where=str(self.path), fix=_QUOTING)
        return table.slice(0, last)

    def _last_row(self) -> bytes:
        return ("\n" + self.delimiter.join([_END] * len(self.names)) + "\n").encode()

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
        """The stream belongs to whoever opened it."""


def open_text(
    path: Path,
    compression: str | None,
    *,
    report: ReadReport,
    delimiter: str | None = None,
    header: bool | None = None,
) -> TextTable:
    """Look at the beginning of a file: comment lines, delimiter, header.

    Args:
        path: the file.
        compression: as :func:`nodejepa.io.files_in.file_format` found it.
        report: guesses are noted there.
        delimiter: one character; guessed if not given.
        header: whether the first row names the columns; guessed if not given.
    """
    sample, whole = _sample(path, compression)
    comments = _comment_lines(sample)
    body = "".join(sample.splitlines(keepends=True)[comments:])
    if delimiter is None:
        delimiter = _guess_delimiter(body, path, whole, report)
    elif len(delimiter) != 1 or not delimiter.isascii() or delimiter.isalnum() or delimiter in '\r\n"':
        raise GraphError(f"delimiter {delimiter!r} is not one plain character", where="delimiter")
    rows, lines_of_first = _rows(body, delimiter, whole)
    if not rows:
        raise DataError("the file has no rows", where=str(path), fix="Write it again.")
    if header is None:
        header = _guess_header(rows, path, report)
    names = tuple(rows[0]) if header else ("",) * len(rows[0])
    names = tuple(name.strip() or f"column {i}" for i, name in enumerate(names, start=1))
    return TextTable(path, compression, names, delimiter, comments + (lines_of_first if header else 0))


def _sample(path: Path, compression: str | None) -> tuple[str, bool]:
    """The beginning of the text, and whether that is all of it."""
    with reading(str(path)), byte_stream(path, compression) as stream:
        content = stream.read(_SAMPLE + 1)
    whole = len(content) <= _SAMPLE
    text = content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="replace")
    return text, whole


def _comment_lines(sample: str) -> int:
    """How many lines at the top start with # or %, as published edge lists have them."""
    count = 0
    for line in sample.splitlines():
        if not line.startswith(("#", "%")):
            break
        count += 1
    return count


def _rows(body: str, delimiter: str, whole: bool) -> tuple[list[list[str]], int]:
    """Rows of the sample that are complete, and how many lines the first one ends after."""
    reader = csv.reader(io.StringIO(body, newline=""), delimiter=delimiter)
    rows: list[list[str]] = []
    first = 0
    try:
        for row in reader:
            if row and not rows:
                first = reader.line_num
            rows += [row] if row else []
    except csv.Error:  # a field beyond the module's limit: Arrow will say where
        pass
    return (rows if whole or len(rows) < 2 else rows[:-1]), first


def _guess_delimiter(body: str, path: Path, whole: bool, report: ReadReport) -> str:
    preferred = next(
        (_PREFERRED[ending.lower()] for ending in path.suffixes if ending.lower() in _PREFERRED), ""
    )
    best, width = "", 1
    for candidate in dict.fromkeys([preferred or ",", *_NAMES]):
        rows, _ = _rows(body, candidate, whole)
        counts = {len(row) for row in rows}
        if len(counts) == 1 and max(counts) > width:
            best, width = candidate, max(counts)
        if best and best == preferred:
            break
    if not best:  # nothing is regular: take what the first row has, and let the parser name the bad row
        first = body.split("\n", 1)[0]
        best = preferred if preferred and preferred in first else max(_NAMES, key=first.count)
        if first.count(best) == 0:
            raise GraphError(
                "the file has one column",
                where=str(path),
                fix="Separate columns by comma, tab or semicolon: an edge has two ends, a node an id.",
            )
    if best != preferred:
        report.note(f"{path.name}: columns are taken to be separated by {_NAMES[best]}.")
    return best


def _guess_header(rows: list[list[str]], path: Path, report: ReadReport) -> bool:
    first, rest = rows[0], rows[1:]
    data_like = any(_DATA_LIKE.fullmatch(cell.strip()) for cell in first)
    repeated = any(cell in {row[i] for row in rest if i < len(row)} for i, cell in enumerate(first) if cell)
    shown = ", ".join(first[:4])[:80]
    if data_like or repeated:
        report.note(
            f"{path.name}: the first row ({shown}) looks like data, so the file is taken to have no header; "
            "say header=True if it has."
        )
        return False
    if len(set(first)) == len(first) and not rest:
        report.note(f"{path.name}: its only row ({shown}) is taken for the header.")
    return True
