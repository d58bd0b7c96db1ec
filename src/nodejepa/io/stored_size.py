"""What a file becomes in memory, found before it is read: a small one can hold or promise a great deal."""

import math
import zipfile
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow.parquet as pq

from nodejepa.errors import DataError
from nodejepa.io.files_in import reading
from nodejepa.memory import Room

# memory at the peak of reading a byte of it: measured on 1 and 4 million edges, of XML on 200,000
_TEXT, _BINARY, _XML = 4, 8, 40
_PARQUET_CELL = 16
_LONGEST_HEADER = 10_000


def unpacked_limit(path: Path, kind: str, compression: str | None, room: Room) -> int:
    """Refuse a file that cannot be read within ``room``; else the most bytes that it may unpack to."""
    stored = path.stat().st_size
    factor = {"text": _TEXT, "graphml": _XML}.get(kind, _BINARY)
    needed = stored * factor
    if kind in ("npz", "npy") and compression is None:
        with reading(str(path)):
            needed = max(needed, _BINARY * array_bytes(path))
    elif kind == "parquet" and compression is None:
        with reading(str(path)), pq.ParquetFile(path) as file:
            needed = max(needed, _PARQUET_CELL * file.metadata.num_rows * file.metadata.num_columns)
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
