"""CSV, TSV and their kin, every cell kept as the text it is.

Nothing is converted here: ``007`` stays ``007`` and a 64-bit id never passes through a float. What a column
holds is decided later, from all of it.
"""

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from nodejepa.errors import DataError
from nodejepa.io.files_in import byte_stream, reading
from nodejepa.io.text_layout import NOT_UTF8

_BLOCK = 1 << 22
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
    doubtful: bool = False
    most: int | None = None  # bytes that it may unpack to

    def read(self, columns: Sequence[str], label: str) -> pa.Table:
        """The named columns as text."""
        where = str(self.path)
        with reading(where, _QUOTING):
            try:
                return self._parse(columns, label, threads=True)
            except pa.ArrowInvalid as error:
                if "invalid UTF8" in str(error):
                    raise DataError(f"the text is not UTF-8: {error}", where=where, fix=NOT_UTF8) from None
                if "Row #" in str(error):
                    raise
            return self._parse(columns, None, threads=False)  # slower, but it knows which row is bad

    def batches(self, columns: Sequence[str], label: str) -> Iterator[pa.Table]:
        """The named columns as text, a few megabytes at a time."""
        quoted = self._may_break_lines()
        with (
            reading(str(self.path), _QUOTING),
            byte_stream(self.path, self.compression, label) as stream,
            pacsv.open_csv(
                self._ended(stream, quoted), **self._options(columns, quoted, threads=False)
            ) as reader,
        ):
            held: pa.Table | None = None  # the last batch ends in the row that marks the end
            for batch in reader:
                if held is not None:
                    yield held
                held = pa.Table.from_batches([batch])
            if held is not None:
                yield self._without_end(held) if quoted else held

    def _parse(self, columns: Sequence[str], label: str | None, *, threads: bool) -> pa.Table:
        quoted = self._may_break_lines()
        with byte_stream(self.path, self.compression, label, self.most) as stream:
            table = pacsv.read_csv(
                self._ended(stream, quoted), **self._options(columns, quoted, threads=threads)
            )
        return self._without_end(table) if quoted else table

    def _options(self, columns: Sequence[str], quoted: bool, *, threads: bool) -> dict[str, Any]:
        return {
            "read_options": pacsv.ReadOptions(
                column_names=list(self.names),
                skip_rows=self.skip_lines,
                block_size=_BLOCK,
                use_threads=threads,
            ),
            "parse_options": pacsv.ParseOptions(delimiter=self.delimiter, newlines_in_values=quoted),
            "convert_options": pacsv.ConvertOptions(
                column_types={name: pa.string() for name in columns},
                include_columns=list(columns),
                strings_can_be_null=False,
            ),
        }

    def _ended(self, stream: Any, quoted: bool) -> Any:
        last = ("\n" + self.delimiter.join([_END] * len(self.names)) + "\n").encode()
        return pa.PythonFile(_WithLastRow(stream, last), mode="r") if quoted else stream

    def _without_end(self, table: pa.Table) -> pa.Table:
        last = table.num_rows - 1
        if last < 0 or any(column[last].as_py() != _END for column in table.columns):
            raise DataError("a quote is opened and never closed", where=str(self.path), fix=_QUOTING)
        return table.slice(0, last)

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
