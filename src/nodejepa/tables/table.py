"""A user's file: what it is by its content, how large it becomes, and its table, read in batches of rows.

A table that is to be in memory (:meth:`InputTable.held`) is one batch. Tables of delimited text are opened by
:mod:`nodejepa.tables.text`. A small file can hold or promise a great deal: that is found before it is read.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from nodejepa.errors import DataError, GraphError, NodeJEPAError, did_you_mean, nearest
from nodejepa.machine import Room, gigabytes, progress_bar
from nodejepa.tables.options import first_names

COMPRESSIONS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
_LISTED = 5000  # files of a folder that are compared with a name


def existing_file(path: str | os.PathLike[str], role: str) -> Path:
    """The path of a file that is there and may be read."""
    try:
        file = Path(path)
        if file.exists() and not file.is_file():
            what = "folder" if file.is_dir() else "pipe or a device"
            fix = "Name a file: it is read more than once."
            if file.is_dir() and next(file.glob("*.parquet"), None):
                fix = "Join its parts: pyarrow.parquet.write_table(pyarrow.parquet.read_table(folder), file)."
            raise DataError(f"the {role} file is a {what}", where=str(file), fix=fix)
        with file.open("rb"):
            return file
    except FileNotFoundError:
        fix = f"{near_path(path)}Check the path for typing errors."
        raise DataError(f"there is no {role} file", where=str(path), fix=fix) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(
            f"the {role} file cannot be opened: {reason}",
            where=str(path),
            fix="Check the path and its permissions.",
        ) from None


MANIFEST = "manifest.json"  # of a graph store


def is_store(path: object) -> bool:
    """Whether there is a graph store at a path."""
    return isinstance(path, str | Path) and (Path(path) / MANIFEST).is_file()


def near_path(path: str | os.PathLike[str]) -> str:
    """``"Did you mean data/edges.csv? "`` for a path that is not there, if something much like it is."""
    wanted = Path(path)
    while not wanted.parent.is_dir() and wanted.parent != wanted:  # the folder may be the mistake
        wanted = wanted.parent
    try:
        near = nearest(wanted.name, sorted(os.listdir(wanted.parent))[:_LISTED])
    except (OSError, ValueError):
        return ""
    return f"Did you mean {wanted.parent / near}? " if near else ""


def refuse_replacing(out: Path, *sources: Path) -> None:
    """Refuse to write over a file that is read."""
    for source in sources:
        if out.exists() and source.exists() and out.samefile(source):
            fix = "Choose another out=...."
            raise DataError("the output would replace an input", where=str(out), fix=fix)


def refuse_other_kind(out: Path, begins: bytes, *, force: bool) -> None:
    """Refuse to replace a file by one of another kind, whose files begin with ``begins`` in any case."""
    if force or not out.is_file() or not out.stat().st_size:
        return
    with out.open("rb") as file:
        same = file.read(len(begins)).lower() == begins.lower()
    if not same:
        raise DataError(
            "the file is there and holds something else",
            where=str(out),
            fix="Choose another out=..., or replace it with force=True.",
        )


@contextmanager
def reading(
    where: str, fix: str = "The file is damaged, cut off or of another format.", what: str = "the file"
) -> Iterator[None]:
    """Whatever a foreign parser raises on bad bytes, as an error that names the file.

    Wrap calls of other libraries only: a fault of ours would be blamed on the file.
    """
    try:
        yield
    except NodeJEPAError:
        raise
    except MemoryError:
        raise DataError(f"{what} asks for more memory than there is", where=where, fix=fix) from None
    except Exception as error:  # parsers raise anything: struct.error, zlib.error, KeyError, ...
        said = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{what} cannot be read: {said[:500]}", where=where, fix=fix) from error


def file_format(path: Path) -> tuple[str, str | None]:
    """``("parquet" | "text", compression or None)``, by its start."""
    with reading(str(path)):
        with path.open("rb") as file:
            start = file.read(512)
        compression = next((name for magic, name in COMPRESSIONS.items() if start.startswith(magic)), None)
        if compression is not None:
            with pa.input_stream(str(path), compression=compression) as stream:
                start = stream.read(512)
    if not start.strip():
        raise DataError("the file is empty", where=str(path), fix="Write it again.")
    if start.startswith(b"PAR1"):
        if compression is not None:
            raise DataError("parquet within another compression", where=str(path), fix="Decompress it first.")
        return "parquet", None
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    for what, begins, endings, fix in _FOREIGN:  # formats that people do have come with a way to go on
        if path.suffix.lower() in endings or start.startswith(begins) or text.startswith(begins):
            raise DataError(f"the file is {what}", where=str(path), fix=fix)
    return "text", compression


_READ = "Give parquet, or CSV or TSV in UTF-8 (also .gz, .bz2, .zst)."
_Foreign: TypeAlias = tuple[str, tuple[bytes, ...], tuple[str, ...], str]  # what, beginnings, endings, fix
_FOREIGN: tuple[_Foreign, ...] = (
    (
        "a spreadsheet",
        (b"\xd0\xcf\x11\xe0",),
        (".xlsx", ".xls", ".ods", ".xlsm"),
        "Save each sheet as CSV, or give read_graph the frame that pandas.read_excel(...) makes.",
    ),
    (
        "JSON",
        (b'{"', b"[{", b"[["),
        (".json", ".jsonl", ".ndjson"),
        "Give read_graph the frame that pandas.read_json(...) makes; of node-link data NetworkX makes a "
        "graph: from_networkx(networkx.node_link_graph(...)).",
    ),
    (
        "XML or GML",
        (b"<?xml", b"<gexf", b"<graphml"),
        (".graphml", ".gexf", ".gml"),
        "In Python: from_networkx(networkx.read_graphml(path)); read_gexf and read_gml likewise.",
    ),
    (
        "a MatrixMarket file",
        (b"%%MatrixMarket",),
        (".mtx",),
        "In Python: nodejepa.Graph.from_scipy(scipy.io.mmread(path)), which embed_graph takes, too.",
    ),
    (
        "a file of arrays",
        (b"\x93NUMPY",),
        (".npz", ".npy"),
        "In Python: Graph.from_scipy(scipy.sparse.load_npz(path), features) or Graph.from_edges(*edge_index, "
        "features=x), which embed_graph takes, too.",
    ),
    ("UTF-16 text", (b"\xff\xfe", b"\xfe\xff"), (), _READ),
    ("a zip archive", (b"PK\x03\x04",), (), _READ),
    ("a Python pickle", (b"\x80\x04",), (".pkl", ".pickle"), _READ),
    ("a binary file", (b"\xfd7zXZ", b"ARROW1", b"\x89HDF", b"SQLite format 3"), (), _READ),
    ("not what its name says", (), (".parquet", ".pq"), _READ),
)


# ---------------------------------------------------------------- sizes


# memory at the peak of reading a byte of it, or a value: measured on 1 and 4 million edges
PEAK_OF_TEXT, _PEAK_OF_PARQUET, _PARQUET_VALUE = 4, 8, 16


# ---------------------------------------------------------------- tables


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
        range_index: the column, if there is one, that is the named range of a data frame's index. It may hold
            ids, and is no feature.
    """

    where: str
    kinds: Mapping[str, pa.DataType]
    typed: bool
    batches: Callable[[Sequence[str], str], Iterable[pa.Table]]
    num_rows: int | None = None
    range_index: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.kinds)

    def place(self, column: str) -> str:
        """A column, for errors."""
        return f"{self.where}, column {column!r}"

    def held(self, columns: Sequence[str], label: str, room: Room | None) -> "InputTable":
        """The named columns in memory, so that none is read twice; the same table where there is no room."""
        if room is None or self.num_rows is not None:
            return self
        parts, size = [pa.schema([(name, self.kinds[name]) for name in columns]).empty_table()], 0
        for batch in self.batches(columns, label):
            parts.append(batch)
            size += batch.nbytes
            most = room.free // PEAK_OF_TEXT
            if size > most:
                raise DataError(
                    f"the file unpacks to more than {gigabytes(most)}: too much for the memory there is",
                    where=self.where,
                    fix="If you know better, raise memory_limit=....",
                )
        return table_in_memory(pa.concat_tables(parts), self.where, typed=self.typed)

    def find(self, column: str, argument: str) -> str:
        """The column of this name, or an error that lists those there are."""
        if column not in self.names:
            near = did_you_mean(repr(column), map(repr, self.names))
            raise GraphError(
                f"there is no column {column!r}",
                where=f"{self.where}, {argument}=...",
                fix=f"{near}There are: {first_names(self.names, 20)}.",
            )
        return column


@dataclass(frozen=True)
class Tables:
    """The opened files, and which of their columns mean what.

    Args:
        edges: one row per edge; None when no longer needed.
        source: column of the edges' start.
        target: column of the edges' end.
        weight: column of the edges' weights.
        nodes: one row per node.
        ids: the column that names the nodes.
        features: columns that become features.
        labels: the column of labels.
    """

    edges: InputTable | None
    source: str = ""
    target: str = ""
    weight: str | None = None
    nodes: InputTable | None = None
    ids: str | None = None
    features: tuple[str, ...] = ()
    labels: str | None = None


def column_kinds(names: Sequence[str], types: Sequence[pa.DataType], where: str) -> dict[str, pa.DataType]:
    """The type of every column by its name; a name that stands twice is refused."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise GraphError(
            f"the header has {', '.join(map(repr, repeated[:5]))} more than once",
            where=where,
            fix="Give every column a name of its own.",
        )
    return dict(zip(names, types, strict=True))


def parquet_table(path: Path, room: Room | None = None) -> InputTable:
    """The table in a parquet file; the last column is the named index of a data frame, if it is a range.

    One that is to be read into memory is refused if it needs more than the ``room``.
    """
    with reading(str(path)), pq.ParquetFile(path) as file:
        # statistics of a damaged footer end the process, unless its columns are read first
        next(file.iter_batches(batch_size=1), None)
        schema, metadata = file.schema_arrow, file.metadata
        name, numbers = _named_range(schema, metadata.num_rows)
    if room is not None:
        groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
        values = sum(group.column(j).num_values for group in groups for j in range(group.num_columns))
        needed = max(path.stat().st_size * _PEAK_OF_PARQUET, _PARQUET_VALUE * values)
        room.require(needed, "reading the file", str(path))

    def batches(columns: Sequence[str], label: str) -> Iterator[pa.Table]:
        stored = [column for column in columns if column != name]
        before = 0
        with reading(str(path)):
            for batch in _parquet_batches(path, stored or schema.names[:1], label):
                if name in columns:
                    here = pa.array(numbers[before : before + batch.num_rows], pa.int64())
                    batch = batch.append_column(name, here).select(list(columns))
                before += batch.num_rows
                yield batch

    kinds = column_kinds(schema.names, schema.types, str(path))
    if name is not None:
        kinds[name] = pa.int64()
    return InputTable(str(path), kinds, True, batches, range_index=name)


def _named_range(schema: pa.Schema, rows: int) -> tuple[str | None, range]:
    """Name and numbers of an index that pandas describes in the metadata, in place of a column."""
    for index in (schema.pandas_metadata or {}).get("index_columns", ()):
        if isinstance(index, dict) and index.get("kind") == "range" and index.get("name") is not None:
            numbers = range(index["start"], index["stop"], index["step"])
            if len(numbers) == rows and index["name"] not in schema.names:
                return str(index["name"]), numbers
    return None, range(0)


def frame_table(frame: Any, where: str) -> InputTable:
    """The table in a data frame: anything that exports Arrow data, such as pandas, polars or Arrow itself.

    The index of a pandas frame is a column if it has a name.
    """
    with reading(where, "Every column must hold values of one type.", "the data frame"):
        table = frame if isinstance(frame, pa.Table) else pa.table(frame)
        name, numbers = _named_range(table.schema, table.num_rows)
        if name is not None:
            table = table.append_column(name, pa.array(numbers, pa.int64()))
        table.validate(full=True)
    return replace(table_in_memory(table, where), range_index=name)


def table_in_memory(table: pa.Table, where: str, *, typed: bool = True) -> InputTable:
    """A table of Arrow's."""
    kinds = column_kinds(list(map(str, table.column_names)), table.schema.types, where)
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

    return InputTable(where, kinds, tables[0].typed, batches, range_index=tables[0].range_index)


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
