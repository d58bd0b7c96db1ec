"""Edges as positions on disk -> CSR arrays on disk, through buckets of rows that are sorted in memory.

The same rules as :meth:`nodejepa.graph.Graph.from_edges`: self-loops go, repeated edges are merged (weights
add up), of the two directions of an undirected edge the larger weight counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nodejepa.compiled import compiled
from nodejepa.errors import GraphError
from nodejepa.progress import progress_bar
from nodejepa.store.layout import put, write_array

_ROWS = 1 << 21  # edges that are looked at together
_BUCKET = 1 << 23  # records that are sorted together: 64 MB, and as much again for sorting
_MOST_BUCKETS = 512  # files that are open at once
_BACK = np.uint32(1 << 31)  # marks the reverse of a listed edge
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class EdgeFiles:
    """Edges as listed: positions of both ends and, maybe, weights, each in a file of its own."""

    source: Path
    target: Path
    weight: Path | None
    count: int

    def pieces(self) -> Iterator[tuple[Any, Any, Any]]:
        """Some edges at a time: source, target and weight."""
        for start in range(0, self.count, _ROWS):
            size = min(_ROWS, self.count - start)
            yield (
                np.fromfile(self.source, np.int32, size, offset=4 * start),
                np.fromfile(self.target, np.int32, size, offset=4 * start),
                None if self.weight is None else np.fromfile(self.weight, np.float64, size, offset=8 * start),
            )


@dataclass
class Counted:
    """What became of the edges; ``pairs`` are distinct pairs of nodes as listed, one way."""

    entries: int = 0
    pairs: int = 0
    loops: int = 0
    zeros: int = 0
    kept: int = 0
    weighted: bool = False
    total: float = 0.0


def sort_edges(
    edges: EdgeFiles, nodes: int, folder: Path, *, prefix: str = "", symmetric: bool, turned: bool = False
) -> Counted:
    """Write ``indptr``, ``indices`` and, where some weigh, ``weights`` of the adjacency into ``folder``.

    Args:
        edges: as listed.
        nodes: how many there are.
        folder: also holds the buckets while they are needed.
        prefix: of the files' names.
        symmetric: an edge joins both ways.
        turned: write the transpose.
    """
    found = Counted()
    starts = _bucket_starts(edges, nodes, symmetric, turned, found)
    bucket_of = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
    names = [folder / f"{prefix}bucket{i}" for i in range(len(starts) - 1)]
    with ExitStack() as stack, progress_bar("Sharing out edges", total=edges.count) as advance:
        files = [stack.enter_context(name.open("wb")) for name in names]
        for piece in edges.pieces():
            _share_out(*_records(*piece, symmetric, turned), bucket_of, files)
            advance(len(piece[0]))
    weighted = edges.weight is not None
    degrees = np.zeros(nodes + 1, dtype=np.int64)
    with (
        (folder / f"{prefix}indices.i32").open("wb") as indices,
        (folder / f"{prefix}weights.f32").open("wb") as weights,
        progress_bar("Sorting edges", total=len(names)) as advance,
    ):
        for name, low in zip(names, starts[:-1].tolist(), strict=True):
            columns, values = _sorted_bucket(name, low, weighted, degrees, found)
            put(indices, columns)
            if weighted:
                put(weights, values)
                found.weighted = found.weighted or bool((values != 1).any())
            found.entries += len(columns)
            name.unlink()
            advance()
    if found.total > _LARGEST / 2:  # as from_edges: degrees must fit into float32
        raise GraphError(
            f"the weights add up to {found.total:.1e}", where="edge weights", fix="Scale them down."
        )
    if not found.weighted:
        (folder / f"{prefix}weights.f32").unlink()
    np.cumsum(degrees, out=degrees)
    write_array(folder / f"{prefix}indptr.i64", degrees)
    return found


def _bucket_starts(
    edges: EdgeFiles, nodes: int, symmetric: bool, turned: bool, found: Counted
) -> npt.NDArray[np.int64]:
    """First rows of buckets with about as many records each, and the number of nodes."""
    counts = np.zeros(nodes, dtype=np.int64)
    with progress_bar("Counting edges", total=edges.count) as advance:
        for source, target, weight in edges.pieces():
            loop = source == target
            found.loops += int(loop.sum())
            if weight is not None:
                found.zeros += int((weight == 0).sum())
                loop |= weight == 0
            found.kept += int(len(loop) - loop.sum())
            _count(target if turned else source, counts)
            if symmetric:
                _count(target, counts)
            advance(len(source))
    total = int(counts.sum())
    size = max(_BUCKET, -(-total // _MOST_BUCKETS))
    ends = np.searchsorted(np.cumsum(counts), np.arange(size, total, size)) + 1
    return np.unique(np.concatenate([[0], ends, [nodes]]))


def _records(
    source: Any, target: Any, weight: Any, symmetric: bool, turned: bool
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint32], npt.NDArray[np.float64] | None]:
    """Row, column (marked where it is the reverse of a listed edge) and weight of what is stored."""
    keep = source != target
    row, column = source[keep], target[keep]
    weight = None if weight is None else weight[keep]
    if turned:
        row, column = column, row
    marked = column.astype(np.uint32)
    if not symmetric:
        return row, marked, weight
    both = None if weight is None else np.concatenate([weight, weight])
    return np.concatenate([row, column]), np.concatenate([marked, row.astype(np.uint32) | _BACK]), both


def _share_out(row: Any, column: Any, weight: Any, bucket_of: Any, files: list[Any]) -> None:
    place, ends = _places(row, bucket_of, len(files))
    kind = [("row", np.int32), ("column", np.uint32)] + ([] if weight is None else [("weight", np.float64)])
    records = np.empty(len(row), dtype=kind)
    records["row"][place], records["column"][place] = row, column
    if weight is not None:
        records["weight"][place] = weight
    for file, start, end in zip(files, ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        put(file, records[start:end])


def _sorted_bucket(
    path: Path, low: int, weighted: bool, degrees: Any, found: Counted
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Columns and weights of a bucket's rows in order; ``degrees`` and counts are filled on the way."""
    kind = [("row", np.int32), ("column", np.uint32)] + ([("weight", np.float64)] if weighted else [])
    records = np.fromfile(path, dtype=kind)
    key = (records["row"] - np.int32(low)).astype(np.uint64) << np.uint64(32)
    key |= (records["column"] & ~_BACK).astype(np.uint64) << np.uint64(1)
    key |= (records["column"] >> np.uint32(31)).astype(np.uint64)
    if weighted:
        order = np.argsort(key, kind="stable")  # equal edges add up in the order in which they are listed
        key, weight = key[order], records["weight"][order]
    else:
        key.sort()
        weight = np.zeros(0)
    columns, values, pairs, total = _merge(key, weight, weighted, low, degrees)
    found.pairs += pairs
    found.total += total if weighted else 0.0
    return columns, values


@compiled()
def _count(nodes: Any, counts: Any) -> None:
    for node in nodes:
        counts[node] += 1


@compiled()
def _places(row: Any, bucket_of: Any, buckets: int) -> Any:
    """Where each record goes so that those of a bucket are together, in order, and where buckets end."""
    ends = np.zeros(buckets + 1, dtype=np.int64)
    for node in row:
        ends[bucket_of[node] + 1] += 1
    for b in range(buckets):
        ends[b + 1] += ends[b]
    at = ends[:-1].copy()
    place = np.empty(len(row), dtype=np.int64)
    for i in range(len(row)):
        bucket = bucket_of[row[i]]
        place[i] = at[bucket]
        at[bucket] += 1
    return place, ends


@compiled()
def _merge(key: Any, weight: Any, weighted: bool, low: int, degrees: Any) -> Any:
    """Distinct columns of sorted records, the larger weight of both directions, pairs as listed."""
    columns = np.empty(len(key), dtype=np.int32)
    values = np.empty(len(key) if weighted else 0, dtype=np.float32)
    out, pairs, total, at = 0, 0, 0.0, 0
    while at < len(key):
        pair = key[at] >> np.uint64(1)
        best = np.float32(0)
        while at < len(key) and key[at] >> np.uint64(1) == pair:
            this, summed, heavy = key[at], 0.0, False
            while at < len(key) and key[at] == this:
                if weighted:
                    summed += weight[at]
                    heavy = heavy or weight[at] > 0
                at += 1
            if this & np.uint64(1) == 0:
                pairs += 1 if heavy or not weighted else 0
                total += summed
            best = max(best, np.float32(summed))
        if weighted and best == 0:
            continue
        columns[out] = np.int32(pair & np.uint64(0x7FFFFFFF))
        if weighted:
            values[out] = best
        out += 1
        degrees[low + np.int64(pair >> np.uint64(31)) + 1] += 1
    return columns[:out], values[:out], pairs, total
