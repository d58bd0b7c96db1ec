"""Opening a user's file: what it is by its content, how large it becomes, any trouble as one kind of error.

A small file can hold or promise a great deal: that is found before it is read.
"""

import io
import math
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nodejepa.errors import DataError, NodeJEPAError, nearest
from nodejepa.memory import Room, gigabytes
from nodejepa.progress import progress_bar

COMPRESSIONS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
_SHOW_PROGRESS_ABOVE = 8_000_000  # bytes; smaller files are read in a blink
_LISTED = 5000  # files of a folder that are compared with a name


def existing_file(path: str | os.PathLike[str], role: str) -> Path:
    """The path of a file that is there and may be read."""
    try:
        file = Path(path)
        if file.is_dir():
            raise DataError(f"the {role} file is a folder", where=str(file), fix="Name a file in it.")
        if not file.is_file() and file.exists():
            raise DataError(
                f"the {role} file is a pipe or a device",
                where=str(file),
                fix="It is read more than once: write it to a file first.",
            )
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
    """``("parquet" | "npz" | "npy" | "mtx" | "graphml" | "text", compression or None)``, by its start."""
    with reading(str(path)):
        with path.open("rb") as file:
            start = file.read(512)
        compression = next((name for magic, name in COMPRESSIONS.items() if start.startswith(magic)), None)
        if compression is not None:
            with pa.input_stream(str(path), compression=compression) as stream:
                start = stream.read(512)
    if not start.strip():
        raise DataError("the file is empty", where=str(path), fix="Write it again.")
    return _format_of(start, path), compression


def _format_of(start: bytes, path: Path) -> str:
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b"\x93NUMPY"):
        return "npy"
    if start[:14].lower() == b"%%matrixmarket":
        return "mtx"
    endings = [ending.lower() for ending in path.suffixes[-2:]]
    if ".npz" in endings[-1:]:
        return "npz"
    if b"<graphml" in start or ".graphml" in endings:
        return "graphml"
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


class _LimitedStream(io.BufferedIOBase):
    """A stream that ends in an error after ``most`` bytes: a megabyte of gzip may unpack to gigabytes."""

    def __init__(self, stream: Any, most: int, where: str) -> None:
        self._stream, self._taken, self._most, self._where = stream, 0, most, where

    def read(self, size: int | None = -1, /) -> bytes:
        """The next bytes."""
        left = self._most - self._taken + 1
        content: bytes = self._stream.read(left if size is None or size < 0 else min(size, left))
        self._taken += len(content)
        refuse_unpacked(self._taken, self._most, self._where)
        return content

    read1 = read

    def readable(self) -> bool:
        """Decoders of text ask."""
        return True


@contextmanager
def byte_stream(
    path: Path, compression: str | None, label: str | None = None, most: int | None = None
) -> Iterator[Any]:
    """The bytes of a file, unpacked as they are read and at most ``most`` of them.

    A big file shows a progress bar over what was read of it.
    """
    with _bytes_of(path, compression, label) as stream:
        yield stream if compression is None or most is None else _LimitedStream(stream, most, str(path))


@contextmanager
def _bytes_of(path: Path, compression: str | None, label: str | None) -> Iterator[Any]:
    size = path.stat().st_size
    if label is None or size < _SHOW_PROGRESS_ABOVE:
        with pa.input_stream(str(path), compression=compression) as stream:
            yield stream
        return
    with progress_bar(label, total=round(size / 1e6)) as advance, _CountedFile(path, advance) as file:
        stream = pa.PythonFile(file, mode="r")
        yield pa.CompressedInputStream(stream, compression) if compression else stream


class _CountedFile(io.FileIO):
    """A file that tells how many megabytes were read of it."""

    def __init__(self, path: Path, advance: Callable[..., None]) -> None:
        super().__init__(path)
        self._advance = advance

    def read(self, size: int | None = -1, /) -> bytes:
        """The next bytes, counted."""
        content = super().read(size)
        self._advance(len(content) / 1e6)
        return content


# ---------------------------------------------------------------- what is not read


_TABLES = "Give parquet, CSV or TSV in UTF-8 (also .gz, .bz2, .zst), npz, npy, MatrixMarket or GraphML."
_IN_PYTHON = "in Python read_graph takes the frame that pandas.{}(...) makes of it."
_WAYS = {
    "a spreadsheet": f"Save each sheet as CSV; {_IN_PYTHON.format('read_excel')}",
    "JSON": f"Write it as CSV or parquet; {_IN_PYTHON.format('read_json')} Of node-link data NetworkX makes "
    "a graph: from_networkx(networkx.node_link_graph(...)).",
    "XML or GML": "In Python: from_networkx(networkx.read_gexf(path)), read_gml likewise; or write GraphML.",
}
_ENDINGS = {".json": "JSON", ".jsonl": "JSON", ".ndjson": "JSON", ".gexf": "XML or GML", ".gml": "XML or GML"}
_STARTS = {
    b"PK\x03\x04": "a zip archive (or a spreadsheet)",
    b"\xd0\xcf\x11\xe0": "a spreadsheet",
    b"\xfd7zXZ": "an xz archive",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"ARROW1": "an Arrow IPC file",
    b"\x89HDF": "an HDF5 file",
    b"SQLite format 3": "an SQLite database",
    b"\x80\x04": "a Python pickle",
    **dict.fromkeys((b'{"', b"[{", b"[["), "JSON"),
    **dict.fromkeys((b"<?xml", b"<gexf"), "XML or GML"),
}


def _refuse_foreign(start: bytes, ending: str, where: str) -> None:
    """Refuse what is no table that we read; formats that people do have come with a way to go on."""
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    known = (kind for begins, kind in _STARTS.items() if start.startswith(begins) or text.startswith(begins))
    kind = _ENDINGS.get(ending) or next(known, None)
    if kind and "spreadsheet" in kind and ending in (".xlsx", ".xls", ".ods", ".xlsm"):
        kind = "a spreadsheet"
    if kind is None and ending in (".parquet", ".pq", ".npy", ".mtx"):
        kind = f"no {ending} file inside"
    if kind is not None:
        raise DataError(f"the file is {kind}", where=where, fix=_WAYS.get(kind, _TABLES))


# ---------------------------------------------------------------- sizes


# memory at the peak of reading a byte of it: measured on 1 and 4 million edges, of XML on 200,000
PEAK_OF_TEXT, _PEAK_OF_ARRAYS, _PEAK_OF_XML = 4, 8, 40
_PARQUET_VALUE = 16
_LONGEST_HEADER = 10_000


def unpacked_limit(path: Path, kind: str, compression: str | None, room: Room) -> int:
    """Refuse a file that cannot be read within ``room``; else the most bytes that it may unpack to."""
    factor = {"text": PEAK_OF_TEXT, "graphml": _PEAK_OF_XML}.get(kind, _PEAK_OF_ARRAYS)
    needed = path.stat().st_size * factor
    with reading(str(path)):
        if kind in ("npz", "npy") and compression is None:
            needed = max(needed, _PEAK_OF_ARRAYS * array_bytes(path))
        elif kind == "parquet" and compression is None:
            metadata = pq.read_metadata(path)
            groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
            values = sum(group.column(j).num_values for group in groups for j in range(group.num_columns))
            needed = max(needed, _PARQUET_VALUE * values)
    room.require(needed, "reading the file", str(path))
    return room.free // factor


def array_bytes(path: Path) -> int:
    """Bytes of the arrays in an npz or npy file; one whose header promises more than is there is refused."""
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            file.seek(0)
            return _checked(file, path.stat().st_size, str(path))
        total = 0
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                with archive.open(entry) as array:
                    total += _checked(array, entry.file_size, f"{path}, {entry.filename}")
        return total


def _checked(file: IO[bytes], size: int, where: str) -> int:
    """The header of one array against the bytes that follow it; room for it is made by the header alone."""
    if file.read(6) != b"\x93NUMPY":
        return size  # no array: NumPy hands its bytes over as they are
    version = tuple(file.read(2))
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise DataError(
            f"an array in version {version} of the format", where=where, fix="Store plain numbers."
        )
    shape, _, dtype = readers[version](file, max_header_size=_LONGEST_HEADER)
    promised = math.prod(shape) * dtype.itemsize
    if promised > size and not dtype.hasobject:
        raise DataError(
            f"the header promises an array of {promised} bytes, {size} are there",
            where=where,
            fix="The file is damaged, cut off or of another format.",
        )
    return max(size, promised)
