"""Opening a user's file: what it is by its content, how large it becomes, any trouble as one kind of error.

A small file can hold or promise a great deal: that is found before it is read.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from nodejepa.errors import DataError, NodeJEPAError, nearest
from nodejepa.memory import Room, gigabytes

COMPRESSIONS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
_LISTED = 5000  # files of a folder that are compared with a name


def existing_file(path: str | os.PathLike[str], role: str) -> Path:
    """The path of a file that is there and may be read."""
    try:
        file = Path(path)
        if file.exists() and not file.is_file():
            what = "folder" if file.is_dir() else "pipe or a device"
            fix = "Name a file: it is read more than once."
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
def reading(where: str, fix: str = "The file is damaged, cut off or of another format.") -> Iterator[None]:
    """Whatever a foreign parser raises on bad bytes, as an error that names the file.

    Wrap calls of other libraries only: a fault of ours would be blamed on the file.
    """
    try:
        yield
    except NodeJEPAError:
        raise
    except MemoryError:
        raise DataError("the file asks for more memory than there is", where=where, fix=fix) from None
    except Exception as error:  # parsers raise anything: struct.error, zlib.error, KeyError, ...
        what = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"the file cannot be read: {what[:500]}", where=where, fix=fix) from error


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
    kind = _format_of(start, path)
    if compression is not None and kind != "text":
        raise DataError(f"{kind} within another compression", where=str(path), fix="Decompress it first.")
    return kind, compression


def _format_of(start: bytes, path: Path) -> str:
    if start.startswith(b"PAR1"):
        return "parquet"
    _refuse_foreign(start, path.suffix.lower(), str(path))
    return "text"


def refuse_unpacked(size: int, most: int, where: str) -> None:
    """Refuse what has come out of a file if it is more than ``most`` bytes."""
    if size > most:
        raise DataError(
            f"the file unpacks to more than {gigabytes(most)}: too much to be read in the memory there is",
            where=where,
            fix="If you know better, raise memory_limit=....",
        )


# ---------------------------------------------------------------- what is not read


_READ = "Give parquet, or CSV or TSV in UTF-8 (also .gz, .bz2, .zst)."
_FOREIGN: tuple[
    tuple[str, tuple[bytes, ...], tuple[str, ...], str], ...
] = (  # what, beginnings, endings, fix
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


def _refuse_foreign(start: bytes, ending: str, where: str) -> None:
    """Refuse what is no table that we read; formats that people do have come with a way to go on."""
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    for what, begins, endings, fix in _FOREIGN:
        if ending in endings or start.startswith(begins) or text.startswith(begins):
            raise DataError(f"the file is {what}", where=where, fix=fix)


# ---------------------------------------------------------------- sizes


# memory at the peak of reading a byte of it: measured on 1 and 4 million edges
PEAK_OF_TEXT, _PEAK_OF_PARQUET = 4, 8
_PARQUET_VALUE = 16


def require_room(path: Path, kind: str, room: Room) -> None:
    """Refuse a file that cannot be read into memory within ``room``."""
    needed = path.stat().st_size * (PEAK_OF_TEXT if kind == "text" else _PEAK_OF_PARQUET)
    if kind == "parquet":
        with reading(str(path)):
            metadata = pq.read_metadata(path)
            groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
            values = sum(group.column(j).num_values for group in groups for j in range(group.num_columns))
            needed = max(needed, _PARQUET_VALUE * values)
    room.require(needed, "reading the file", str(path))
