"""``prepare_store``: a user's files, which may be larger than memory, to a graph on disk.

Ids are numbered, edges sorted, features and labels encoded. At the end :func:`finalise` makes checksums and
the identity, which is that of the graph in memory.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.sparse as sp

from nodejepa.errors import ConfigError, GraphError
from nodejepa.files import output_owned, refusals
from nodejepa.graph import digest
from nodejepa.graph_checks import Features, read_features
from nodejepa.machine import Room
from nodejepa.tables.columns import count_filled, join_blocks, worth_sparse
from nodejepa.tables.edges import write_adjacency
from nodejepa.tables.options import COMPARABLE, REMEMBERED, IdKind, ReadingOptions, ReadReport
from nodejepa.tables.read import labels_of, number_files
from nodejepa.tables.schema import FeatureSchema, side_by_side, structural_names, with_structure
from nodejepa.tables.sorted_parts import described_parts, write_sorted_edges
from nodejepa.tables.store import (
    DENSE,
    LABELS,
    PIECE,
    SPARSE,
    Manifest,
    StoredGraph,
    pieces,
    put,
    whole_folder,
    write_array,
)
from nodejepa.tables.table import Tables, existing_file, is_store

_ROWS = 1 << 12  # of features that are rewritten from one form into the other at a time


def prepare_store(
    edges: str | os.PathLike[str],
    nodes: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    reading: ReadingOptions | None = None,
    *,
    out: str | os.PathLike[str],
    force: bool = False,
    announce: Callable[[Sequence[str]], None] | None = None,
    memory_limit: float | None = None,
    **options: Any,
) -> StoredGraph:
    """Write a graph store.

    Args:
        edges: a file of edges as in :func:`nodejepa.read_graph`. Tables (parquet, CSV) may be larger than
            memory. Or a folder of parts that are numbered and sorted already, as
            :mod:`nodejepa.tables.sorted_parts` describes it.
        nodes: a file of nodes, or several. Without one, or with nothing but ids in it, nodes are described
            by structural features, as in :func:`nodejepa.read_graph`, but without the adjacency.
        reading: how the tables are read. Labels are stored beside the graph.
        out: the folder to make. It appears when it is whole.
        force: replace a store that is there.
        announce: called with every guess and everything left out, when the store is whole.
        memory_limit: gigabytes the process may take for it; what is available if not given. It grows with
            the number of nodes.
        options: single options of ``reading`` by their names.
    """
    final, reading = Path(out), (reading or ReadingOptions()).changed(options)
    if "adjacency" in (reading.structural or ()):  # its coordinates take 128 vectors and more in memory
        raise ConfigError(
            "the structural feature 'adjacency' is made of graphs in memory only",
            where="structural=...",
            fix=f"Leave it out; a graph store may have {', '.join(COMPARABLE)}.",
        )
    node_files = [nodes] if isinstance(nodes, str | os.PathLike) else nodes or []
    in_parts = Path(edges).is_dir() and not node_files
    files = [] if in_parts else [existing_file(edges, "edges")]
    files += [existing_file(file, "nodes") for file in node_files]
    with output_owned(final), refusals(final):
        if final.exists() and not (force and is_store(final)):
            said = "" if is_store(final) else " and is no graph store"
            fix = "Choose another out=..., or replace a store with force=True."
            raise ConfigError(f"{final} exists{said}", fix=fix)
        with whole_folder(final) as folder:
            if in_parts:
                report = _from_parts(Path(edges), reading, folder)
            else:
                report = _from_tables(files, reading, folder, Room.of(memory_limit))
    if announce is not None:
        announce([*report.notes, *report.warnings])
    return StoredGraph(final)


def _from_tables(files: list[Path], reading: ReadingOptions, folder: Path, room: Room) -> ReadReport:
    report = ReadReport()
    listed = folder / "listed"
    listed.mkdir()
    tables, found = number_files(files[0], files[1:] or None, reading, report, room, listed)
    report.seconds.clear()  # a store is the same whenever it is made
    report.kept_apart = bool(reading.bipartite)
    _write_ids(found.ids, folder)
    counted = write_adjacency(found.edges, found.nodes, folder, room, directed=reading.directed)
    weighted = tables.weight is not None
    counted.say(report, found.nodes, directed=reading.directed, weighted=weighted)
    shutil.rmtree(listed)
    bare = Manifest(found.nodes, counted.entries, 0, reading.directed, counted.weighted, report.id_kind)
    finalise(tables, bare, reading, folder, report)
    return report


def _from_parts(parts: Path, reading: ReadingOptions, folder: Path) -> ReadReport:
    """A graph that another program has numbered and sorted; see :mod:`nodejepa.tables.sorted_parts`."""
    report = ReadReport(edge_file=str(parts / "edges"), node_file=str(parts / "nodes"))
    tables, ids = described_parts(parts, reading, report)
    entries, weighted = write_sorted_edges(parts, report, folder, directed=reading.directed)
    report.id_kind = "position" if ids is None else _write_ids(ids, folder)
    bare = Manifest(report.nodes, entries, 0, reading.directed, weighted, report.id_kind)
    finalise(tables, bare, reading, folder, report)
    return report


def finalise(
    tables: Tables, bare: Manifest, reading: ReadingOptions, folder: Path, report: ReadReport
) -> None:
    """Features and labels of a graph whose ids and edges are in ``folder``, its identity and manifest."""
    schema, entries = _write_features(tables, bare, reading, folder, report)
    labels, classes = labels_of(tables, report)
    if labels is not None:
        write_array(folder / LABELS, labels.astype(np.int32))
    facts = replace(bare, columns=schema.width, classes=classes, feature_entries=entries)
    structure = _structure(facts, folder)
    shape = np.asarray((facts.nodes, facts.columns), dtype=np.int64)
    if entries is None:
        features = [pieces(folder / DENSE, np.float32)]
    else:
        features = [pieces(folder / SPARSE[2], np.float32), *_positions(folder, "feature_", entries)]
    replace(
        facts,
        schema=schema.to_dict(),
        reading={name: getattr(reading, name) for name in REMEMBERED},
        report=report.to_dict(),
        structure_hash=structure,
        content_hash=digest(structure.encode(), shape, *features),
    ).write(folder)


# ---------------------------------------------------------------- features and ids in files


def _write_features(
    tables: Tables, bare: Manifest, reading: ReadingOptions, folder: Path, report: ReadReport
) -> tuple[FeatureSchema, int | None]:
    """Write X: the columns of the node table, then structural descriptors, as the reader in memory does.

    Nodes that only edges name come last, with all values missing. How X was made comes back, and how many
    entries are kept where it is sparse, as in memory.
    """
    table, added = tables.nodes, report.added_nodes
    own = FeatureSchema()
    if table is not None and tables.features:
        own, _ = FeatureSchema.fit(table, tables.features, added, reading, report)
    schema = with_structure(own, structural_names(reading.structural, own, report), report)
    if not schema.width:
        raise GraphError(
            "there is no column that can be a feature",
            where=report.node_file or report.edge_file,
            fix="Give columns of numbers, categories or lists, or allow structural=... ones.",
        )
    places = np.zeros((bare.nodes, 0), dtype=np.float32)
    if schema.structural:
        from nodejepa.structure import descriptors  # brings the compiler with it

        known = replace(bare, structure_hash=_structure(bare, folder))  # what was computed before is found
        places = descriptors(_unfinished(known, folder), schema.described_by)
    if table is None or not own.width:
        with FeatureWriter(folder, sparse=False) as dense:
            dense.add(places)
        return schema, None
    rows = filled = 0
    with ExitStack() as stack:
        writer: FeatureWriter | None = None
        for blocks, size in own.encode(table, added):
            filled += count_filled(blocks)
            if writer is None:  # as the first rows are: only all of them can tell
                sparse = worth_sparse(filled, size * own.width)
                writer = stack.enter_context(FeatureWriter(folder, sparse=sparse))
            x = read_features(join_blocks(blocks, size, sparse=writer.sparse), rows)
            assert x is not None
            writer.add(side_by_side(x, places[rows : rows + size]))
            rows += size
    assert writer is not None
    sparse, entries = worth_sparse(filled, rows * own.width), writer.entries
    if sparse != writer.sparse:
        made = replace(bare, columns=schema.width, feature_entries=entries if writer.sparse else None)
        entries = _rewrite(made, folder)
    return schema, entries if sparse else None


class FeatureWriter(ExitStack):
    """Appends rows to the files of one form, dense or sparse; given in the other form, rows are rewritten."""

    def __init__(self, folder: Path, *, sparse: bool) -> None:
        super().__init__()
        self.sparse, self.entries = sparse, 0
        names = SPARSE if sparse else (DENSE,)
        self._files = [self.enter_context((folder / name).open("wb")) for name in names]
        if sparse:
            put(self._files[0], np.zeros(1, dtype=np.int64))

    def add(self, rows: Features) -> None:
        """Write some more rows."""
        if not self.sparse:
            put(self._files[0], rows if isinstance(rows, np.ndarray) else rows.toarray())
            return
        matrix = sp.csr_array(rows)
        pointers, columns, values = self._files
        put(pointers, self.entries + matrix.indptr[1:].astype(np.int64))
        put(columns, matrix.indices.astype(np.int32))
        put(values, matrix.data)
        self.entries += int(matrix.nnz)


def _rewrite(facts: Manifest, folder: Path) -> int:
    """Write features again in the other form and remove them in the one that ``facts`` tells of."""
    sparse = facts.feature_entries is None
    old = _unfinished(facts, folder)
    with FeatureWriter(folder, sparse=sparse) as writer:
        for low in range(0, facts.nodes, _ROWS):
            writer.add(old.feature_rows(low, min(low + _ROWS, facts.nodes)))
    for name in (DENSE,) if sparse else SPARSE:
        (folder / name).unlink()
    return writer.entries


def _write_ids(ids: Any, folder: Path) -> IdKind:
    """Write ids (int64 as NumPy has them, or text as Arrow has it) and say of which kind they are."""
    if isinstance(ids, np.ndarray):
        write_array(folder / "ids.i64", ids)
        return "integer"
    text = ids.cast(pa.large_string())
    _, offsets, letters = text.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[text.offset : text.offset + len(text) + 1]
    write_array(folder / "id_ends.i64", ends[1:] - ends[0])
    write_array(folder / "id_letters.u8", np.frombuffer(letters or b"", dtype=np.uint8)[ends[0] : ends[-1]])
    return "text"


def _unfinished(facts: Manifest, folder: Path) -> StoredGraph:
    """The graph whose edges and, where there are columns, features are in a folder already."""
    bare = replace(facts, id_kind="position", classes=None)
    names = [name for name in bare.sizes() if facts.columns or name != DENSE]
    files = {name: {"bytes": (folder / name).stat().st_size} for name in names}
    return StoredGraph(folder, replace(bare, files=files))


def _structure(facts: Manifest, folder: Path) -> str:
    """The ``structure_hash`` of a Graph."""
    starts = range(0, facts.entries, PIECE)
    ones = (np.ones(min(PIECE, facts.entries - at), np.float32) for at in starts)
    weights = pieces(folder / "weights.f32", np.float32) if facts.weighted else ones
    kind = b"directed" if facts.directed else b"undirected"
    return digest(kind, weights, *_positions(folder, "", facts.entries))


def _positions(folder: Path, side: str, entries: int) -> list[Iterator[npt.NDArray[Any]]]:
    """Columns and row pointers of a matrix as they are in memory, where small ones have small pointers."""
    pointer = np.int32 if entries <= np.iinfo(np.int32).max else np.int64
    files = ((f"{side}indices.i32", np.int32), (f"{side}indptr.i64", np.int64))
    return [(part.astype(pointer) for part in pieces(folder / name, kind)) for name, kind in files]
