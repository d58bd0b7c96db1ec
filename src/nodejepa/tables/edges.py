"""Edges of a table -> positions of nodes -> the adjacency: in memory at once, or on disk in buckets of rows.

Nodes are numbered in the order of the node table; others follow, first those at the start of edges, then
those that are only at the end of some. Self-loops go, repeated edges are merged (weights add up), of the two
directions of an undirected edge the larger weight counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nodejepa.errors import GraphError
from nodejepa.graph_checks import SparseMatrix, merge_directions, merge_entries
from nodejepa.machine import Room, progress_bar
from nodejepa.tables.cells import interpret
from nodejepa.tables.ids import IdReader, IdSource, Place
from nodejepa.tables.options import ReadingOptions, ReadReport, is_one_of, refuse_mixed_spaces
from nodejepa.tables.store import put, write_array
from nodejepa.tables.table import InputTable, Tables

_ROWS = 1 << 21  # edges on disk that are looked at together
_BUCKET = 1 << 23  # records that are sorted together, if there is room
_RECORD_BYTES = 80  # while it is sorted
_NODE_BYTES = 40  # while edges are counted
_MOST_BUCKETS = 512  # files that are open at once
_BACK = np.uint32(1 << 31)  # marks the reverse of a listed edge
_SMALLEST = float(np.finfo(np.float32).tiny)
_COMPARED = 1000  # unknown ids that are compared with those of the node table
_LARGEST = float(np.finfo(np.float32).max)


class EdgeRows:
    """Edges as listed: positions of both ends and, maybe, weights; in memory or in files in ``folder``.

    Where ``place`` is given, positions are those of ids that turned out to be others in disguise.
    """

    def __init__(self, folder: Path | None, *, weighted: bool) -> None:
        self.folder, self.weighted, self.count = folder, weighted, 0
        self.place: Place | None = None
        self._parts: dict[str, list[npt.NDArray[Any]]] = {"source": [], "target": [], "weight": []}

    def add(self, name: str, part: npt.NDArray[Any]) -> None:
        """Append some sources, targets or weights."""
        if self.folder is None:
            self._parts[name].append(part)
            return
        with (self.folder / name).open("ab") as file:
            put(file, part)

    def _read(self, name: str, start: int, size: int) -> npt.NDArray[Any]:
        kind = np.dtype(np.float64 if name == "weight" else np.int32)
        if self.folder is not None:
            return np.fromfile(self.folder / name, kind, size, offset=kind.itemsize * start)
        if len(self._parts[name]) != 1:
            self._parts[name] = [np.concatenate([np.zeros(0, kind), *self._parts[name]])]
        return self._parts[name][0]

    def chunks(self) -> Iterator[tuple[Any, Any, Any]]:
        """Some edges at a time, in memory all of them: source, target and weight."""
        at_once = _ROWS if self.folder else max(self.count, 1)
        for start in range(0, self.count, at_once):
            size = min(at_once, self.count - start)
            source, target = self._read("source", start, size), self._read("target", start, size)
            weight = self._read("weight", start, size) if self.weighted else None
            if self.place is not None:
                source, target = self.place[source], self.place[target]
            yield source, target, weight


# ---------------------------------------------------------------- numbering


@dataclass(frozen=True)
class Numbered:
    """The edges as positions, how many nodes there are, and their ids (NumPy's or Arrow's array)."""

    edges: EdgeRows
    nodes: int
    ids: Any


def number_nodes(
    tables: Tables, reading: ReadingOptions, report: ReadReport, room: Room, folder: Path | None = None
) -> Numbered:
    """Number the nodes of tables; what is as long as the edges is kept in ``folder``, if one is given."""
    from nodejepa.tables.numbering import Numbering  # brings the compiler with it

    apart = bool(reading.bipartite)
    assert tables.edges is not None
    starts = IdSource(tables.edges, tables.source, f"{tables.source}:" if apart else "")
    ends = IdSource(tables.edges, tables.target, f"{tables.target}:" if apart else "")
    rows = None
    if tables.nodes is not None and tables.ids is not None:
        described = apart and tables.ids in (tables.source, tables.target)
        rows = IdSource(tables.nodes, tables.ids, f"{tables.ids}:" if described else "")
    reader = IdReader([*([rows] if rows else []), starts, ends], report)
    numbers = Numbering(8 if reader.whole else 0, room)
    named = [numbers.codes(v) for v, *_ in reader.batches(rows, None, "Numbering nodes")] if rows else []
    edges = EdgeRows(folder, weighted=tables.weight is not None)
    for values, *_ in reader.batches(starts, None, "Numbering starts of edges"):
        edges.add("source", numbers.codes(values))
        edges.count += len(values)
    for values, weights, before in reader.batches(ends, tables.weight, "Numbering ends of edges"):
        edges.add("target", numbers.codes(values))
        if edges.weighted:
            edges.add("weight", read_weights(weights, tables.edges, str(tables.weight), before))
    report.edge_rows = edges.count
    distinct = numbers.ids()
    del numbers
    ids, edges.place = reader.settled(distinct)
    codes = np.concatenate([np.zeros(0, dtype=np.int32), *named])
    codes = codes if edges.place is None else edges.place[codes]
    if rows is not None:
        report.node_rows = len(codes)
    return _with_unknown(edges, codes, ids, tables, rows, reading, report)


def read_weights(values: Any, table: InputTable, name: str, before: int = 0) -> npt.NDArray[np.float64]:
    """Edge weights as numbers, finite and not negative; ``before`` rows of the file were read already."""
    where = table.place(name)
    advice = "Correct or scale it, or leave weights out with weight=False; rows are counted from 1."
    if not len(values):
        return np.zeros(0)
    content = interpret(values, table.typed, where)
    if content.kind not in ("numeric", "boolean"):
        raise GraphError("edge weights are not numbers", where=where, fix=advice)
    numbers = content.numbers[:, 0]
    lost = (numbers > 0) & (numbers < _SMALLEST)  # zero in single precision: the edge would be gone
    bad = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)) | lost)
    if bad.size:
        shown = "missing" if np.isnan(numbers[bad[0]]) else numbers[bad[0]]
        raise GraphError(
            f"the weight of row {before + bad[0] + 1} is {shown} ({bad.size} such)", where=where, fix=advice
        )
    return numbers


def _with_unknown(
    edges: EdgeRows,
    codes: Place,
    ids: Any,
    tables: Tables,
    rows: IdSource | None,
    reading: ReadingOptions,
    report: ReadReport,
) -> Numbered:
    """How many nodes there are; those that only edges name follow the ``codes`` of the node table."""
    known, outside = len(codes), 0
    as_edges = ""
    if reading.bipartite and rows is not None and not rows.prefix:
        as_edges = (
            f"Call the id column of each kind as the edges do: {tables.source!r} and {tables.target!r}."
        )
    starts, ends = np.zeros(len(ids), dtype=bool), np.zeros(len(ids), dtype=bool)
    for source, target, _ in edges.chunks():
        starts[source], ends[target] = True, True
        outside += int(((source >= known) | (target >= known)).sum())
    if rows is not None:
        refuse_repeated(codes, ids, rows.table.place(rows.name), as_edges)
    if reading.bipartite is None:
        described = rows is not None and len(ids) == known and not is_one_of(tables.ids, report)
        refuse_mixed_spaces(np.flatnonzero(starts & ends), ids, described, report)
    if rows is None:
        if not len(ids):
            raise GraphError(
                "there are no edges: the table has no rows",
                where=report.edge_file,
                fix="Give at least one, or a node table.",
            )
        return Numbered(edges, len(ids), ids)
    if not known:
        fix = "Give one for each node, or leave the table out."
        raise GraphError("the node table has no rows", where=rows.table.where, fix=fix)
    if not outside:
        return Numbered(edges, known, ids)
    report.unknown_id_rows, report.added_nodes = outside, len(ids) - known
    name = _shown(ids, known)
    if not (starts[:known].any() or ends[:known].any()):
        raise GraphError(
            f"no edge names a node of the node table: the first names {name}, the table {_shown(ids, 0)}",
            where=rows.table.place(rows.name),
            fix=as_edges or "Name the right id column, and write ids the same way in both files.",
        )
    report.note(
        f"{report.added_nodes} ids of the edges are not in the node table, such as {name}: they are added "
        "without features."
    )
    linked = int((starts | ends)[:known].sum())
    if 2 * linked < known and report.added_nodes > linked:
        report.warnings.append(
            f"only {linked:,} of {known:,} nodes of the node table have an edge, and the edges name "
            f"{report.added_nodes:,} others: the tables may not belong together. Check both, or say "
            "id_column=COLUMN."
        )
    if isinstance(ids, pa.Array) and (near := near_misses(ids, known)):
        report.warnings.append(
            f"ids of the edges are written otherwise in the node table, such as {near[0]!r} and {near[1]!r}: "
            "they are taken for different nodes. Write ids the same way in both files if they are the same."
        )
    return Numbered(edges, len(ids), ids)


def near_misses(ids: pa.Array, known: int) -> tuple[str, str] | None:
    """One of the first ids after the ``known``, and one of these that only differs in case, zeros or form."""

    def bare(text: pa.Array) -> pa.Array:
        plain = pc.utf8_trim_whitespace(pc.utf8_lower(pc.utf8_normalize(text, form="NFKC")))
        return pc.replace_substring_regex(plain, r"^[+0]+(\d)", r"\1")

    unknown = ids.slice(known, _COMPARED)
    wanted = bare(unknown)
    for start in range(0, known, _ROWS):
        here = ids.slice(start, min(_ROWS, known - start))
        places = pc.index_in(wanted, value_set=bare(here))
        if places.null_count < len(places):
            first = pc.index(pc.is_valid(places), True).as_py()
            return unknown[first].as_py(), here[places[first].as_py()].as_py()
    return None


def refuse_repeated(codes: Place, ids: Any, where: str, fix: str = "") -> None:
    """Refuse a node table that names a node twice."""
    if not codes.size or int(codes.max()) == codes.size - 1:
        return
    repeated = np.flatnonzero(np.bincount(codes) > 1)
    rows = np.flatnonzero(codes == repeated[0])[:2] + 1
    said = ", ".join(_shown(ids, i) for i in repeated[:5])
    raise GraphError(
        f"{repeated.size} ids appear more than once: {said} (rows {rows[0]} and {rows[1]})",
        where=where,
        fix=fix
        or "Keep one row per node (rows are counted from 1). bipartite=True keeps two kinds of nodes apart. "
        "Or are edges and nodes swapped?",
    )


def _shown(ids: Any, position: int) -> str:
    return repr(ids[int(position) : int(position) + 1].tolist()[0])[:100]


# ---------------------------------------------------------------- the adjacency


@dataclass
class Counted:
    """What became of the edges; ``pairs`` are distinct pairs of nodes as listed, one way."""

    loops: int = 0
    zeros: int = 0
    kept: int = 0
    pairs: int = 0
    entries: int = 0
    isolated: int = 0
    weighted: bool = False
    total: float = 0.0

    def look(self, source: Any, target: Any, weight: Any) -> npt.NDArray[np.bool_]:
        """Count some edges as listed; which of them are no self-loops comes back."""
        keep: npt.NDArray[np.bool_] = source != target
        self.loops += int(len(keep) - keep.sum())
        self.zeros += 0 if weight is None else int((weight == 0).sum())
        self.kept += int((keep if weight is None else keep & (weight > 0)).sum())
        return keep

    def say(self, report: ReadReport, nodes: int, *, directed: bool, weighted: bool) -> None:
        """Fill in the report, and note what was left out and merged."""
        report.self_loop_rows, report.zero_weight_rows = self.loops, self.zeros
        report.duplicate_rows = self.kept - self.pairs
        report.reciprocal_pairs = 0 if directed else self.pairs - self.entries // 2
        report.nodes, report.edges = nodes, self.entries // (1 if directed else 2)
        report.isolated_nodes = self.isolated
        merged = "their weights add up" if weighted else "each counts once"
        once = "count once, with the larger weight" if weighted else "count once"
        for count, said in (
            (self.loops, "edges join a node with itself and are left out."),
            (self.zeros, "edges weigh 0 and are left out."),
            (report.duplicate_rows, f"edges repeat another; {merged}."),
            (report.reciprocal_pairs, f"edges are listed in both directions and {once}."),
            (self.isolated, "nodes have no edge; they are kept."),
        ):
            if count:
                report.note(f"{count} {said}")


def adjacency_in_memory(edges: EdgeRows, nodes: int, *, directed: bool) -> tuple[SparseMatrix, Counted]:
    """The adjacency of all edges at once."""
    counted = Counted()
    if not nodes:
        raise GraphError("the graph is empty: no nodes", where="nodes", fix="Give at least one node.")
    parts = list(edges.chunks())
    source, target, weight = parts[0] if parts else (np.zeros(0, np.int32), np.zeros(0, np.int32), None)
    keep = counted.look(source, target, weight)
    heavy = None if weight is None else weight[keep]
    matrix = merge_entries(source[keep], target[keep], heavy, (nodes, nodes))
    counted.pairs = matrix.nnz
    if not directed:
        matrix = merge_directions(matrix, matrix.T)
    counted.entries, counted.weighted = matrix.nnz, bool((matrix.data != 1).any())
    alone = np.diff(matrix.indptr) == 0
    alone[matrix.indices] = False  # a directed edge is one of its target as well
    counted.isolated = int(alone.sum())
    return matrix, counted


def write_adjacency(edges: EdgeRows, nodes: int, folder: Path, room: Room, *, directed: bool) -> Counted:
    """Write ``indptr``, ``indices`` and, where some weigh, ``weights`` into ``folder``.

    Those of a directed graph's transpose follow, under names that begin with ``in_``.
    """
    room.require(_NODE_BYTES * nodes, f"sorting edges between {nodes:,} nodes", "edges")
    bucket = max(1, min(_BUCKET, (room.free - _NODE_BYTES * nodes) // _RECORD_BYTES))
    counted, degrees = _write_rows(edges, nodes, folder, "", bucket, symmetric=not directed)
    alone = degrees == 0
    if directed:
        alone &= _write_rows(edges, nodes, folder, "in_", bucket, symmetric=False)[1] == 0
    counted.isolated = int(alone.sum())
    return counted


def _write_rows(
    edges: EdgeRows, nodes: int, folder: Path, prefix: str, bucket: int, *, symmetric: bool
) -> tuple[Counted, npt.NDArray[np.int64]]:
    """Share edges out into buckets of rows, then merge each; counts and the length of every row come back."""
    counted, turned = Counted(), bool(prefix)
    starts = _bucket_starts(edges, nodes, bucket, symmetric, turned, counted)
    names = [folder / f"{prefix}bucket{i}" for i in range(len(starts) - 1)]
    bucket_of = np.repeat(np.arange(len(names), dtype=np.int16), np.diff(starts))
    kind = np.dtype([("row", np.int32), ("column", np.uint32)])
    if edges.weighted:
        kind = np.dtype([*kind.descr, ("weight", np.float64)])
    with ExitStack() as stack, progress_bar("Distributing edges", total=edges.count) as advance:
        files = [stack.enter_context(name.open("wb")) for name in names]
        for source, target, weight in edges.chunks():
            _share_out(_records(source, target, weight, kind, symmetric, turned), bucket_of, files)
            advance(len(source))
    degrees = np.zeros(nodes, dtype=np.int64)
    with (
        (folder / f"{prefix}indices.i32").open("wb") as indices,
        (folder / f"{prefix}weights.f32").open("wb") as weights,
        progress_bar("Sorting edges", total=len(names)) as advance,
    ):
        for name, low, high in zip(names, starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            block = _merged_bucket(np.fromfile(name, kind), low, (high - low, nodes), symmetric, counted)
            degrees[low:high] = np.diff(block.indptr)
            put(indices, block.indices.astype(np.int32, copy=False))
            if edges.weighted:
                put(weights, block.data)
                counted.weighted = counted.weighted or bool((block.data != 1).any())
            counted.entries += int(block.nnz)
            name.unlink()
            advance()
    if counted.total > _LARGEST / 2:  # as in memory: degrees must fit into float32
        raise GraphError(
            f"the weights add up to {counted.total:.1e}", where="edge weights", fix="Scale them down."
        )
    if not counted.weighted:
        (folder / f"{prefix}weights.f32").unlink()
    write_array(folder / f"{prefix}indptr.i64", np.concatenate([[0], np.cumsum(degrees)]))
    return counted, degrees


def _bucket_starts(
    edges: EdgeRows, nodes: int, bucket: int, symmetric: bool, turned: bool, counted: Counted
) -> npt.NDArray[np.int64]:
    """First rows of buckets with about as many records each, and the number of nodes."""
    lengths = np.zeros(nodes, dtype=np.int64)
    with progress_bar("Counting edges", total=edges.count) as advance:
        for source, target, weight in edges.chunks():
            counted.look(source, target, weight)
            for end in (source, target) if symmetric else (target,) if turned else (source,):
                np.add.at(lengths, end, 1)
            advance(len(source))
    total = int(lengths.sum())
    size = max(bucket, -(-total // _MOST_BUCKETS))
    ends = np.searchsorted(np.cumsum(lengths), np.arange(size, total, size)) + 1
    return np.unique(np.concatenate([[0], ends, [nodes]]))


def _records(
    source: Any, target: Any, weight: Any, kind: np.dtype[Any], symmetric: bool, turned: bool
) -> npt.NDArray[Any]:
    """Row, column (marked where it is the reverse of a listed edge) and weight of what is stored."""
    keep = source != target
    row, column = (target[keep], source[keep]) if turned else (source[keep], target[keep])
    size = len(row)
    records = np.empty(2 * size if symmetric else size, dtype=kind)
    records["row"][:size], records["column"][:size] = row, column
    if symmetric:
        records["row"][size:], records["column"][size:] = column, row.astype(np.uint32) | _BACK
    if weight is not None:
        records["weight"] = np.concatenate([weight[keep]] * (2 if symmetric else 1))
    return records


def _share_out(records: npt.NDArray[Any], bucket_of: npt.NDArray[np.int16], files: list[Any]) -> None:
    bucket = bucket_of[records["row"]]
    order = np.argsort(bucket, kind="stable")  # of 16-bit numbers: radix sort
    ends = np.concatenate([[0], np.cumsum(np.bincount(bucket, minlength=len(files)))])
    records = records[order]
    for file, start, end in zip(files, ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        put(file, records[start:end])


def _merged_bucket(
    records: npt.NDArray[Any], low: int, shape: tuple[int, int], symmetric: bool, counted: Counted
) -> SparseMatrix:
    """Rows of the adjacency from the records of a bucket whose first row is ``low``."""
    back = records["column"] >= _BACK if symmetric else np.zeros(len(records), dtype=bool)
    sides = []
    for chosen in (~back, back) if symmetric else (~back,):
        part = records[chosen]
        weight = part["weight"] if "weight" in (records.dtype.names or ()) else None
        column = (part["column"] & ~_BACK).astype(np.int32)
        sides.append(merge_entries(part["row"] - np.int32(low), column, weight, shape))
    counted.pairs += int(sides[0].nnz)
    counted.total += float(sides[0].data.sum(dtype=np.float64))
    return merge_directions(*sides) if symmetric else sides[0]
