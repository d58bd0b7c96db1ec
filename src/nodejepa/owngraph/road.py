"""What keeping a graph on disk would take, guessed from files that are too large to be read."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from nodejepa.io.files_in import byte_stream, file_format, reading
from nodejepa.io.reading_options import STRUCTURAL, structural_width
from nodejepa.memory import Room
from nodejepa.methods.budget import Workload
from nodejepa.methods.estimator import Estimator
from nodejepa.owngraph.plan import Proposal, stored_roads

_LOOKED_AT = 1 << 16  # bytes of a text file
_UNPACKED = 4  # bytes of text in one of a compressed file, about


def roads_of_files(
    estimator: Estimator, edges: Path | None, nodes: Path | None, room: Room
) -> list[Proposal]:
    """The roads on disk for tables of edges and maybe nodes; none for other files and where none fits."""
    found = None if edges is None else _rows_and_columns(edges)
    if found is None:
        return []
    rows = found[0]
    described = (rows, structural_width(STRUCTURAL) + 1)  # of edges alone: hardly more nodes than rows
    if nodes is not None:
        found = _rows_and_columns(nodes)
        if found is None:
            return []
        described = found
    count, columns = described
    work = Workload(count, 2 * rows, columns - 1, count * (columns - 1), True)
    return stored_roads(estimator, work, room)


def _rows_and_columns(path: Path) -> tuple[int, int] | None:
    kind, compression = file_format(path)
    with reading(str(path)):
        if kind == "parquet":
            with pq.ParquetFile(path) as file:
                return file.metadata.num_rows, file.metadata.num_columns
        if kind != "text":
            return None
        with byte_stream(path, compression) as stream:
            lines = stream.read(_LOOKED_AT).splitlines()
    length = sum(map(len, lines)) / len(lines) + 1
    size = path.stat().st_size * (_UNPACKED if compression else 1)
    commas = max(lines[0].count(mark) for mark in (b",", b"\t", b";", b" "))
    return round(size / length), commas + 1
