"""A user's table, whatever it is stored in: parquet, delimited text, or a data frame in memory."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nodejepa.errors import Advice, DataError, GraphError, Setting, did_you_mean
from nodejepa.io.delimited import TextTable
from nodejepa.io.files_in import file_format, reading
from nodejepa.io.reading_options import ReadReport
from nodejepa.io.text_layout import find_layout
from nodejepa.progress import progress_bar

_BATCH_CELLS = 1 << 21  # that are read together by :meth:`InputTable.batches`


@dataclass(frozen=True)
class InputTable:
    """A table whose columns are known; :meth:`read` reads some of them.

    ``typed`` says whether the columns have types of their own; those of text files are all strings.
    """

    where: str
    names: tuple[str, ...]
    typed: bool
    source: Any

    def read(self, columns: Sequence[str], label: str) -> pa.Table:
        """The named columns, in that order."""
        if isinstance(self.source, TextTable):
            return self.source.read(columns, label)
        with reading(self.where):
            if isinstance(self.source, pa.Table):
                return self.source.select(list(columns))
            return _read_parquet(self.source, columns, label)

    def batches(self, columns: Sequence[str], label: str) -> Iterator[pa.Table]:
        """The same, some rows at a time: of a file that is larger than memory."""
        if isinstance(self.source, TextTable):
            yield from (table for table in self.source.batches(columns, label) if table.num_rows)
            return
        if isinstance(self.source, pa.Table):
            yield self.source.select(list(columns))
            return
        with reading(self.where), pq.ParquetFile(self.source) as file:
            nested = any(pa.types.is_nested(file.schema_arrow.field(name).type) for name in columns)
            rows = max(1024, _BATCH_CELLS // ((256 if nested else 1) * max(1, len(columns))))
            with progress_bar(label, total=file.metadata.num_rows) as advance:
                for batch in file.iter_batches(rows, columns=list(columns), use_threads=False):
                    table = pa.Table.from_batches([batch]).select(list(columns))
                    table.validate(full=True)
                    yield table
                    advance(table.num_rows)

    def kind_of(self, column: str) -> pa.DataType:
        """The type that a file gives a column; text files give none."""
        if isinstance(self.source, TextTable):
            return pa.string()
        with reading(self.where):
            return pq.read_schema(self.source).field(column).type

    def find(self, column: str, argument: str) -> str:
        """The column of this name, or an error that lists those there are."""
        if column not in self.names:
            known = ", ".join(map(repr, self.names[:20])) + (", ..." if len(self.names) > 20 else "")
            raise GraphError(
                f"there is no column {column!r}",
                where=Advice(self.where, ", ", Setting(argument)),
                fix=f"{did_you_mean(repr(column), map(repr, self.names))}There are: {known}.",
            )
        return column


def open_file_table(
    path: Path,
    report: ReadReport,
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    most: int | None = None,
) -> InputTable:
    """The table in a parquet or text file; ``most`` bytes may come out of a compressed one.

    What was not told of a text file is guessed, and guesses are noted in the report.
    """
    kind, compression = file_format(path)
    if kind == "parquet":
        if compression is not None:
            raise DataError("parquet within another compression", where=str(path), fix="Decompress it first.")
        with reading(str(path)):
            names = tuple(pq.read_schema(path).names)
        return _checked(InputTable(str(path), names, True, path))
    layout = find_layout(path, compression, report=report, delimiter=delimiter, header=header)
    text = TextTable(path, compression, *layout, most)
    return _checked(InputTable(str(path), text.names, False, text))


def frame_table(frame: Any, role: str) -> InputTable:
    """The table in a data frame: anything that exports Arrow data, such as pandas, polars or Arrow itself."""
    where = f"the {role} table"
    with reading(where, "Every column must hold values of one type."):
        table = frame if isinstance(frame, pa.Table) else pa.table(frame)
        table.validate(full=True)
    return _checked(InputTable(where, tuple(map(str, table.column_names)), True, table))


def is_frame(value: object) -> bool:
    """Whether the object is a table in memory."""
    return isinstance(value, pa.Table) or hasattr(value, "__arrow_c_stream__")


def _checked(table: InputTable) -> InputTable:
    repeated = [name for name, count in Counter(table.names).items() if count > 1]
    if repeated:
        raise GraphError(
            f"the header has {', '.join(map(repr, repeated[:5]))} more than once",
            where=table.where,
            fix="Give every column a name of its own.",
        )
    return table


def _read_parquet(path: Path, columns: Sequence[str], label: str) -> pa.Table:
    with pq.ParquetFile(path) as file:
        groups = file.num_row_groups
        with progress_bar(label, total=groups) as advance:
            parts = []
            for group in range(groups):
                parts.append(file.read_row_group(group, columns=list(columns)))
                advance()
        table = pa.concat_tables(parts) if parts else file.schema_arrow.empty_table()
    table = table.select(list(columns))
    table.validate(full=True)  # a damaged file may hold text that is not text
    return table
