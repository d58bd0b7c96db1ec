"""A user's table, whatever it is stored in: parquet, delimited text, or a data frame in memory.

A table is read in batches of rows; one that is to be in memory (:meth:`InputTable.held`) is one batch.

GraphML is read through NetworkX: XML can name other files and addresses, and a few bytes of it can stand for
gigabytes. Both need a document type, which GraphML has no use for: a file with one is refused before.
"""

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.parsers import expat

import pyarrow as pa
import pyarrow.parquet as pq

from nodejepa.errors import DataError, GraphError, did_you_mean
from nodejepa.graph_checks import Features
from nodejepa.memory import Room
from nodejepa.progress import progress_bar
from nodejepa.tables.convert import optional_module
from nodejepa.tables.inputs import PEAK_OF_TEXT, byte_stream, reading, refuse_unpacked
from nodejepa.tables.matrices import MatrixFile
from nodejepa.tables.text import TextTable

_BATCH_CELLS = 1 << 21  # that are read together
_BATCH_BYTES = 1 << 26  # and what they may take
_ROWS = 1 << 13  # of a parquet file that are decoded together: their size is not known before


@dataclass(frozen=True)
class InputTable:
    """A table whose columns are known, by their names and types; ``batches`` reads some of them.

    Args:
        where: for errors.
        kinds: the type of every column; those of text files are all strings.
        typed: whether the columns have types of their own.
        batches: reads the named columns, in that order, some rows at a time; also takes what the progress
            bar says.
        num_rows: of a table in memory, which is one batch; unknown of others.
        doubtful: its header was taken for one by nothing but its look.
    """

    where: str
    kinds: Mapping[str, pa.DataType]
    typed: bool
    batches: Callable[[Sequence[str], str], Iterable[pa.Table]]
    num_rows: int | None = None
    doubtful: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.kinds)

    def held(self, columns: Sequence[str], label: str, room: Room | None) -> "InputTable":
        """The named columns in memory, so that none is read twice; the same table where there is no room."""
        if room is None or self.num_rows is not None:
            return self
        parts, size = [pa.schema([(name, self.kinds[name]) for name in columns]).empty_table()], 0
        for batch in self.batches(columns, label):
            parts.append(batch)
            size += batch.nbytes
            refuse_unpacked(size, room.free // PEAK_OF_TEXT, self.where)
        return table_in_memory(pa.concat_tables(parts), self.where, typed=self.typed)

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
        edges: one row per edge, or a matrix; None when no longer needed.
        source: column of the edges' start.
        target: column of the edges' end.
        weight: column of the edges' weights.
        nodes: one row per node.
        ids: the column that names the nodes.
        features: columns that become features.
        labels: the column of labels.
        matrix: the file whose arrays describe the nodes in place of columns.
        x: its features.
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


def text_table(text: TextTable) -> InputTable:
    """The table in a text file."""
    where = str(text.path)
    _refuse_repeated(text.names, where)
    kinds = dict.fromkeys(text.names, pa.string())
    return InputTable(where, kinds, False, text.batches, doubtful=text.doubtful)


def parquet_table(path: Path) -> InputTable:
    """The table in a parquet file."""
    with reading(str(path)):
        schema = pq.read_schema(path)
    _refuse_repeated(schema.names, str(path))

    def batches(columns: Sequence[str], label: str) -> Iterator[pa.Table]:
        with reading(str(path)):
            yield from _parquet_batches(path, list(columns), label)

    return InputTable(str(path), dict(zip(schema.names, schema.types, strict=True)), True, batches)


def frame_table(frame: Any, where: str) -> InputTable:
    """The table in a data frame: anything that exports Arrow data, such as pandas, polars or Arrow itself."""
    with reading(where, "Every column must hold values of one type."):
        table = frame if isinstance(frame, pa.Table) else pa.table(frame)
        table.validate(full=True)
    return table_in_memory(table, where)


def table_in_memory(table: pa.Table, where: str, *, typed: bool = True) -> InputTable:
    """A table of Arrow's."""
    names = tuple(map(str, table.column_names))
    _refuse_repeated(names, where)
    kinds = dict(zip(names, table.schema.types, strict=True))
    return InputTable(where, kinds, typed, lambda columns, _: [table.select(list(columns))], table.num_rows)


def is_frame(value: object) -> bool:
    """Whether the object is a table in memory."""
    return isinstance(value, pa.Table) or hasattr(value, "__arrow_c_stream__")


def stacked(tables: Sequence[InputTable]) -> InputTable:
    """One table of the rows of several, columns by name; what a table does not have is missing there."""
    if len(tables) == 1:
        return tables[0]
    where = ", ".join(table.where for table in tables)
    if len({table.typed for table in tables}) > 1:
        fix = "Give all of them as text or all of them as parquet or data frames."
        raise GraphError("text files and tables with types cannot be one table", where=where, fix=fix)
    try:
        schemas = [pa.schema(list(table.kinds.items())) for table in tables]
        schema = pa.unify_schemas(schemas, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        fix = "Store it with one type in all files."
        raise GraphError(f"a column has two types: {error}", where=where, fix=fix) from None
    kinds = dict(zip(schema.names, schema.types, strict=True))

    def batches(columns: Sequence[str], label: str) -> Iterator[pa.Table]:
        for part in tables:
            there = [name for name in columns if name in part.names]
            for batch in part.batches(there or part.names[:1], label):
                nothing = {name: pa.nulls(batch.num_rows, kinds[name]) for name in columns}
                yield pa.table(nothing | {name: batch[name].cast(kinds[name]) for name in there})

    return InputTable(where, kinds, tables[0].typed, batches, doubtful=any(t.doubtful for t in tables))


def _refuse_repeated(names: Sequence[str], where: str) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise GraphError(
            f"the header has {', '.join(map(repr, repeated[:5]))} more than once",
            where=where,
            fix="Give every column a name of its own.",
        )


def _parquet_batches(path: Path, columns: list[str], label: str) -> Iterator[pa.Table]:
    """Every batch is validated: a damaged file may hold text that is not text."""
    with pq.ParquetFile(path) as file, progress_bar(label, total=file.metadata.num_rows) as advance:
        parts: list[pa.Table] = []
        rows = max(1, min(_ROWS, _BATCH_CELLS // (len(columns) * _longest_list(file.metadata))))
        for batch in file.iter_batches(rows, columns=columns, use_threads=False):
            parts.append(pa.Table.from_batches([batch]).select(columns))
            parts[-1].validate(full=True)
            advance(batch.num_rows)
            cells = len(columns) * sum(part.num_rows for part in parts)
            if cells >= _BATCH_CELLS or sum(part.nbytes for part in parts) >= _BATCH_BYTES:
                yield pa.concat_tables(parts).combine_chunks()
                parts = []
        if parts:
            yield pa.concat_tables(parts).combine_chunks()


def _longest_list(metadata: pq.FileMetaData) -> int:
    """Values in a cell, on average over the rows that are stored together."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    lengths = (g.column(j).num_values // max(1, g.num_rows) for g in groups for j in range(g.num_columns))
    return max(1, *(int(length) for length in lengths), 1)


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
    with reading(where, "Every column must hold values of one type."):
        return table_in_memory(pa.table({**known, **columns}), where)


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
