"""A graph in parquet parts that another program (Spark, DuckDB) has numbered and sorted: taken as it is.

It is the way for a graph that no single machine can number and sort. The folder has

``edges/*.parquet``     columns ``source`` and ``target``, positions of nodes from 0 on, and maybe ``weight``;
                        sorted by source, then target, over all parts in the order of their names. Each edge
                        once, without self-loops; of an undirected graph in both directions.
``in_edges/*.parquet``  only of a directed graph: the same rows, sorted by target, then source.
``nodes/*.parquet``     row i describes node i, over all parts: ``id`` is its id, other columns are features.

What is promised here is checked: order, range and, by a checksum, that every edge has its reverse. That ids
differ is not.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from nodejepa.errors import DataError, GraphError
from nodejepa.tables.ids import plain_ids
from nodejepa.tables.options import ReadingOptions, ReadReport
from nodejepa.tables.read import node_columns
from nodejepa.tables.store import put, write_array
from nodejepa.tables.table import InputTable, Tables, parquet_table, stacked

_LARGEST = float(np.finfo(np.float32).max)
_BITS = (1 << 64) - 1
_MOST = np.iinfo(np.int32).max  # nodes: positions are 32-bit numbers in every array of the store


def described_parts(parts: Path, reading: ReadingOptions, report: ReadReport) -> tuple[Tables, Any]:
    """The table of nodes with its columns of features and labels, and the ids, if there are any."""
    table, files = _stacked(parts / "nodes")
    report.nodes = report.node_rows = sum(pq.read_metadata(file).num_rows for file in files)
    if report.nodes > _MOST:
        raise GraphError(
            f"there are {report.nodes:,} nodes, and positions are 32-bit numbers",
            where=table.where,
            fix=f"Split the graph: one may have {_MOST:,}.",
        )
    tables = node_columns(Tables(None), [table], reading, report)
    if tables.ids is None:
        return tables, None
    batches = table.batches([tables.ids], "Reading ids")
    found = [plain_ids(batch[tables.ids], True, table.place(tables.ids)) for batch in batches]
    values = pa.chunked_array([chunk for part in found for chunk in part.chunks])
    if values.type == pa.int64():
        return tables, values.to_numpy()
    return tables, values.cast(pa.large_string()).combine_chunks()


def write_sorted_edges(parts: Path, report: ReadReport, folder: Path, *, directed: bool) -> tuple[int, bool]:
    """Write the adjacency into ``folder``; how many entries it has, and whether they have weights."""
    out = _Rows(parts / "edges", report.nodes, ("source", "target"))
    alone = out.write(folder, "") == 0
    if directed:
        back = _Rows(parts / "in_edges", report.nodes, ("target", "source"))
        alone &= back.write(folder, "in_") == 0
        what = "edges and in_edges are not the same edges" if out.backward != back.forward else ""
    else:
        what = "some edges lack their reverse" if out.backward != out.forward else ""
    if what:
        fix = "List each edge in both directions, or say directed=True and give in_edges."
        raise DataError(what, where=str(parts), fix=fix)
    report.edge_rows, report.edges = out.count, out.count // (1 if directed else 2)
    report.isolated_nodes = int(alone.sum())
    report.edge_columns = {"source": "source", "target": "target", "weight": out.weight}
    if not out.weighted:
        for path in folder.glob("*weights.f32"):
            path.unlink()
    return out.count, out.weighted


class _Rows:
    """Rows of the adjacency, or of its transpose, from parts that are sorted by them.

    ``forward`` and ``backward`` are checksums of the entries and of their reverses, in any order.
    """

    def __init__(self, folder: Path, nodes: int, ends: tuple[str, str]) -> None:
        self.table, _ = _stacked(folder)
        self.nodes, self.ends = nodes, [self.table.find(name, "edges") for name in ends]
        self.weight = "weight" if "weight" in self.table.names else None
        self.weighted = False
        self.count, self.last = 0, -1
        self.forward = self.backward = 0

    def write(self, folder: Path, side: str) -> npt.NDArray[np.int64]:
        """Write them; how many entries each row has."""
        lengths = np.zeros(self.nodes, dtype=np.int64)
        named = [*self.ends, *([self.weight] if self.weight else [])]
        with (
            (folder / f"{side}indices.i32").open("wb") as indices,
            (folder / f"{side}weights.f32").open("wb") as weights,
        ):
            for batch in self.table.batches(named, "Reading edges"):
                row, column = (self._positions(batch[name], name) for name in self.ends)
                weight = self._weights(batch)
                self._check(row, column, weight)
                counts = np.bincount(row - row[0])
                lengths[row[0] : row[0] + len(counts)] += counts
                put(indices, column.astype(np.int32))
                put(weights, weight)
        write_array(folder / f"{side}indptr.i64", np.concatenate([[0], np.cumsum(lengths)]))
        return lengths

    def _positions(self, values: Any, name: str) -> npt.NDArray[np.int64]:
        where = self.table.place(name)
        if not pa.types.is_integer(values.type) or values.null_count:
            raise GraphError("positions of nodes are whole numbers", where=where)
        numbers: npt.NDArray[np.int64] = values.to_numpy().astype(np.int64)
        wrong = numbers[(numbers < 0) | (numbers >= self.nodes)]
        if wrong.size:
            fix = "Positions run from 0 to one less than the number of rows of nodes."
            raise GraphError(f"there is no node {wrong[0]} of {self.nodes:,}", where=where, fix=fix)
        return numbers

    def _weights(self, batch: pa.Table) -> npt.NDArray[np.float32]:
        if self.weight is None:
            return np.ones(batch.num_rows, dtype=np.float32)
        weight: npt.NDArray[np.float64] = batch[self.weight].to_numpy().astype(np.float64)
        if not ((weight > 0) & (weight <= _LARGEST)).all():
            raise GraphError("a weight is missing, not above 0 or infinite", where=self.table.where)
        self.weighted = self.weighted or bool((weight != 1).any())
        return weight.astype(np.float32)

    def _check(self, row: Any, column: Any, weight: npt.NDArray[np.float32]) -> None:
        keys = row * self.nodes + column
        unsorted, loops = np.diff(keys, prepend=self.last) <= 0, row == column
        if unsorted.any() or loops.any():
            at = int(np.argmax(unsorted | loops))
            what = "joins a node with itself" if loops[at] else "repeats another or is out of order"
            raise DataError(
                f"row {self.count + at + 1} ({row[at]}, {column[at]}) {what}",
                where=self.table.where,
                fix=f"Sort by {self.ends[0]}, then {self.ends[1]}, each edge once, without self-loops.",
            )
        self.count, self.last = self.count + len(row), int(keys[-1])
        self.forward = (self.forward + _checksum(keys, weight)) & _BITS
        self.backward = (self.backward + _checksum(column * self.nodes + row, weight)) & _BITS


def _checksum(keys: npt.NDArray[np.int64], weight: npt.NDArray[np.float32]) -> int:
    """Of entries in any order: their mixed bits (splitmix64), added up."""
    bits = keys.astype(np.uint64) ^ (weight.view(np.uint32).astype(np.uint64) << np.uint64(32))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return int((bits ^ (bits >> np.uint64(31))).sum(dtype=np.uint64))


def _stacked(folder: Path) -> tuple[InputTable, list[Path]]:
    files = sorted(folder.glob("*.parquet"))
    if not files:
        fix = "Give a file of edges, or parts as nodejepa.tables.sorted_parts describes them."
        raise DataError("there are no parquet files", where=str(folder), fix=fix)
    return stacked([parquet_table(file) for file in files]), files
