"""A user's table, whatever it is stored in: parquet, delimited text, or a data frame in memory.

A table is read in batches of rows; one that is to be in memory is one batch.

GraphML is read through NetworkX: XML can name other files and addresses, and a few bytes of it can stand for
gigabytes. Both need a document type, which GraphML has no use for: a file with one is refused before.
"""

import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self
from xml.parsers import expat

import pyarrow as pa
import pyarrow.parquet as pq

from nodejepa.errors import DataError, GraphError, did_you_mean
from nodejepa.graph_checks import Features
from nodejepa.progress import progress_bar
from nodejepa.tables.convert import optional_module
from nodejepa.tables.inputs import byte_stream, file_format, reading
from nodejepa.tables.matrices import MatrixFile
from nodejepa.tables.options import ReadReport
from nodejepa.tables.text import TextTable, find_layout

_BATCH_CELLS = 1 << 21  # that are read together
_BATCH_BYTES = 1 << 26  # and what they may take, by the first rows of the file
_PROBED = 1 << 10


@dataclass(frozen=True)
class InputTable:
    """A table whose columns are known; :meth:`batches` reads some of them.

    ``typed`` says whether the columns have types of their own; those of text files are all strings. All rows
    of a ``whole`` one are read at once.
    """

    where: str
    names: tuple[str, ...]
    typed: bool
    source: "TextTable | Path | pa.Table | Stacked"
    whole: bool = True

    @property
    def doubtful(self) -> bool:
        """Whether its header was taken for one by nothing but its look."""
        if isinstance(self.source, Stacked):
            return any(part.doubtful for part in self.source.parts)
        return isinstance(self.source, TextTable) and self.source.doubtful

    @property
    def num_rows(self) -> int:
        """Rows of a table in memory."""
        assert isinstance(self.source, pa.Table)
        return int(self.source.num_rows)

    def held(self, columns: Sequence[str], label: str) -> Self:
        """The named columns of a whole table in memory, so that none is read twice; else the same table."""
        if not self.whole:
            return self
        (table,) = self.batches(columns, label)
        return replace(self, source=table, names=tuple(columns))

    def batches(self, columns: Sequence[str], label: str) -> Iterator[pa.Table]:
        """The named columns, in that order, some rows at a time."""
        if isinstance(self.source, Stacked):
            parts = self.source.batches(columns, label, whole=self.whole)
            yield from [pa.concat_tables(parts)] if self.whole else parts
            return
        if isinstance(self.source, TextTable):
            if self.whole:
                yield self.source.read(columns, label)
            else:
                yield from (table for table in self.source.batches(columns, label) if table.num_rows)
            return
        with reading(self.where):
            if isinstance(self.source, pa.Table):
                yield self.source.select(list(columns))
            else:
                yield from _parquet_batches(self.source, list(columns), label, self.whole)

    def kind_of(self, column: str) -> pa.DataType:
        """The type that a file gives a column; text files give none."""
        if isinstance(self.source, Stacked):
            return self.source.kinds[column]
        if isinstance(self.source, TextTable):
            return pa.string()
        if isinstance(self.source, pa.Table):
            return self.source.schema.field(column).type
        with reading(self.where):
            return pq.read_schema(self.source).field(column).type

    def find(self, column: str, argument: str) -> str:
        """The column of this name, or an error that lists those there are."""
        if column not in self.names:
            known = ", ".join(map(repr, self.names[:20])) + (", ..." if len(self.names) > 20 else "")
            raise GraphError(
                f"there is no column {column!r}",
                where=f"{self.where}, {argument}=...",
                fix=f"{did_you_mean(repr(column), map(repr, self.names))}There are: {known}.",
            )
        return column


@dataclass(frozen=True)
class Tables:
    """The opened files, and which of their columns mean what.

    Args:
        edges: one row an edge, or a matrix; None when no longer needed.
        source: column of the edges' start.
        target: column of the edges' end.
        weight: column of the edges' weights.
        nodes: one row a node.
        ids: the column that names the nodes.
        features: columns that become features.
        labels: the column of labels.
        matrix: the file whose arrays describe the nodes in place of columns.
        x: its features.
        doubtful_edges: the header of the edges may be a row.
        doubtful_nodes: the same of the nodes.
    """

    edges: InputTable | MatrixFile | None
    source: str = ""
    target: str = ""
    weight: str | None = None
    nodes: InputTable | None = None
    ids: str | None = None
    features: tuple[str, ...] = ()
    labels: str | None = None
    matrix: MatrixFile | None = None
    x: Features | None = None
    doubtful_edges: bool = False
    doubtful_nodes: bool = False


def open_file_table(
    path: Path,
    report: ReadReport,
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    most: int | None = None,
    whole: bool = True,
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
        return _checked(InputTable(str(path), names, True, path, whole))
    layout = find_layout(path, compression, report=report, delimiter=delimiter, header=header)
    text = TextTable(path, compression, *layout, most)
    return _checked(InputTable(str(path), text.names, False, text, whole))


def frame_table(frame: Any, role: str) -> InputTable:
    """The table in a data frame: anything that exports Arrow data, such as pandas, polars or Arrow itself."""
    where = f"the {role} table"
    with reading(where, "Every column must hold values of one type."):
        table = frame if isinstance(frame, pa.Table) else pa.table(frame)
        table.validate(full=True)
    return _checked(InputTable(where, tuple(map(str, table.column_names)), True, table))


@dataclass(frozen=True)
class Stacked:
    """Tables whose rows follow each other; their columns, by name, have these types."""

    parts: tuple[InputTable, ...]
    kinds: Mapping[str, pa.DataType]

    def batches(self, columns: Sequence[str], label: str, *, whole: bool) -> Iterator[pa.Table]:
        """Rows of all parts; a column that a part does not have is missing there."""
        for part in self.parts:
            there = [name for name in columns if name in part.names]
            for batch in replace(part, whole=whole).batches(there or part.names[:1], label):
                yield pa.table(
                    {
                        name: batch[name].cast(self.kinds[name])
                        if name in there
                        else pa.nulls(batch.num_rows, self.kinds[name])
                        for name in columns
                    }
                )


def stacked(tables: Sequence[InputTable]) -> InputTable:
    """One table of the rows of several, columns by name."""
    if len(tables) == 1:
        return tables[0]
    where = ", ".join(table.where for table in tables)
    if len({table.typed for table in tables}) > 1:
        fix = "Give all of them as text or all of them as parquet or data frames."
        raise GraphError("text files and tables with types cannot be one table", where=where, fix=fix)
    try:
        schema = pa.unify_schemas(
            [pa.schema([(name, table.kind_of(name)) for name in table.names]) for table in tables],
            promote_options="permissive",
        )
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        fix = "Store it with one type in all files."
        raise GraphError(f"a column has two types: {error}", where=where, fix=fix) from None
    kinds = dict(zip(schema.names, schema.types, strict=True))
    source = Stacked(tuple(tables), kinds)
    return InputTable(where, tuple(schema.names), tables[0].typed, source, tables[0].whole)


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


def _parquet_batches(path: Path, columns: list[str], label: str, whole: bool) -> Iterator[pa.Table]:
    """Every batch is validated: a damaged file may hold text that is not text."""
    with pq.ParquetFile(path) as file, progress_bar(label, total=file.metadata.num_rows) as advance:
        if whole:
            parts = [file.schema_arrow.empty_table()]
            for group in range(file.num_row_groups):
                parts.append(file.read_row_group(group, columns=columns))
                advance(parts[-1].num_rows)
            table = pa.concat_tables(part.select(columns) for part in parts)
            table.validate(full=True)
            yield table
            return
        for batch in file.iter_batches(_rows_at_once(file, columns), columns=columns, use_threads=False):
            table = pa.Table.from_batches([batch]).select(columns)
            table.validate(full=True)
            yield table
            advance(table.num_rows)


def _rows_at_once(file: pq.ParquetFile, columns: list[str]) -> int:
    """Rows of a batch, so many that they do not take too much: a cell may be a long text or a list."""
    first = next(file.iter_batches(_PROBED, columns=columns, use_threads=False), None)
    wide = 1 if first is None else max(1, first.nbytes // max(1, first.num_rows))
    return max(_PROBED, min(_BATCH_CELLS // max(1, len(columns)), _BATCH_BYTES // wide))


# ---------------------------------------------------------------- GraphML


@dataclass(frozen=True)
class GraphFile:
    """A file that holds the whole graph: its edges, and its nodes with their attributes."""

    edges: InputTable
    nodes: InputTable
    directed: bool


def open_graphml(path: Path, compression: str | None, most: int | None) -> GraphFile:
    """The graph in a GraphML file."""
    networkx = optional_module("networkx", "networkx")
    with byte_stream(path, compression, most=most) as stream, reading(str(path)):
        content = stream.read()
    _refuse_document_types(content, str(path))
    with reading(str(path)), progress_bar("Reading GraphML"):
        graph = networkx.read_graphml(io.BytesIO(content))
    names, ends = list(graph.nodes), list(graph.edges(data=True))
    edges = {"source": [u for u, _, _ in ends], "target": [v for _, v, _ in ends]}
    return GraphFile(
        _table(edges, [attributes for _, _, attributes in ends], str(path)),
        _table({"id": names}, [attributes for _, attributes in graph.nodes(data=True)], str(path)),
        graph.is_directed(),
    )


def _table(known: dict[str, list[Any]], attributes: Sequence[dict[str, Any]], where: str) -> InputTable:
    found = dict.fromkeys(name for each in attributes for name in each)
    columns = {
        f"{name} (attribute)" if name in known else str(name): [each.get(name) for each in attributes]
        for name in found
    }
    table = frame_table(pa.table({**known, **columns}), "")
    return InputTable(where, table.names, True, table.source)


def _refuse_document_types(content: bytes, where: str) -> None:
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise DataError(
            "the file declares a document type, which can stand for files, addresses or endless text",
            where=where,
            fix="Take the line <!DOCTYPE ...> out; GraphML needs none.",
        )

    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    with reading(where, "The file is no well-formed XML."):
        parser.Parse(content, True)
