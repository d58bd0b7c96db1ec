"""``StoredGraph``: a graph that stays on disk and is read by rows; its folder and its manifest.

The arrays are plain files. What a manifest says is checked against them before anything is read.
"""

from __future__ import annotations

import mmap
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nodejepa.config import Exact, NonNegativeInt, read_document, write_document
from nodejepa.errors import DataError
from nodejepa.files import file_digest, nameless
from nodejepa.graph_checks import Features, FloatArray, SparseMatrix, compact_csr, multiplied_sparse
from nodejepa.machine import progress_bar
from nodejepa.tables.options import IdKind
from nodejepa.tables.table import MANIFEST

PIECE = 1 << 22  # entries that are hashed together
LABELS = "labels.i32"
DENSE = "features.f32"
SPARSE = ("feature_indptr.i64", "feature_indices.i32", "feature_weights.f32")
_FORMAT, _VERSION = "nodejepa graph store", 2
_AGAIN = "Make the store again with `nodejepa prepare`, or restore it from a copy."


@dataclass(frozen=True)
class Manifest(Exact):
    """What a store holds. ``files`` has bytes and SHA-256 of every array; the hashes are those of a Graph.

    ``classes`` are the names of the labels' classes where labels were kept, ``feature_entries`` counts those
    of features that are kept sparse.
    """

    nodes: NonNegativeInt
    entries: NonNegativeInt
    columns: NonNegativeInt
    directed: bool
    weighted: bool
    id_kind: IdKind
    structure_hash: str = ""
    content_hash: str = ""
    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    schema: Mapping[str, Any] = field(default_factory=dict)
    reading: Mapping[str, Any] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict)
    classes: Sequence[str] | None = None
    feature_entries: NonNegativeInt | None = None

    def sizes(self) -> dict[str, int | None]:
        """Bytes that every file must have; None where only the file itself can say (the letters of ids)."""
        sides = ("", "in_") if self.directed else ("",)
        sizes: dict[str, int | None] = {DENSE: 4 * self.nodes * self.columns}
        if self.feature_entries is not None:
            entries = self.feature_entries
            sizes = dict(zip(SPARSE, (8 * (self.nodes + 1), 4 * entries, 4 * entries), strict=True))
        for side in sides:
            sizes[f"{side}indptr.i64"] = 8 * (self.nodes + 1)
            sizes[f"{side}indices.i32"] = 4 * self.entries
            if self.weighted:
                sizes[f"{side}weights.f32"] = 4 * self.entries
        if self.id_kind == "integer":
            sizes["ids.i64"] = 8 * self.nodes
        elif self.id_kind == "text":
            sizes |= {"id_ends.i64": 8 * self.nodes, "id_letters.u8": None}
        if self.classes is not None:
            sizes[LABELS] = 4 * self.nodes
        return sizes

    def write(self, folder: Path, more: Sequence[str] = ()) -> None:
        """Write it, with checksums of all files and a digest of its own."""
        names = [*self.sizes(), *more]
        files = {}
        with progress_bar("Computing checksums", total=len(names)) as advance:
            for name in names:
                path = folder / name
                files[name] = {"bytes": path.stat().st_size, "sha256": file_digest(path)}
                advance()
        write_document(folder / MANIFEST, _FORMAT, _VERSION, asdict(self) | {"files": files})

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read it back; nothing that it says is believed before it was checked against the files."""
        path = folder / MANIFEST
        if not path.is_file():
            what = "this is no graph store" if folder.is_dir() else "there is no such graph store"
            raise DataError(what, where=str(folder), fix="Make one with `nodejepa prepare`.")
        manifest = read_document(path, cls, _FORMAT, (1, _VERSION), damaged)
        manifest._check_files(folder)
        return manifest

    def _check_files(self, folder: Path) -> None:
        for name, wanted in self.sizes().items():
            said = self.files.get(name, {}).get("bytes")
            try:
                there = (folder / name).stat().st_size
            except OSError as error:
                raise damaged(folder / name, error.strerror or "it is missing") from None
            if there != said or (wanted is not None and there != wanted):
                raise damaged(folder / name, f"it has {there:,} bytes where {wanted or said} are expected")

    def verify(self, folder: Path) -> None:
        """Read every array and compare its checksum; the first that differs is an error."""
        with progress_bar("Verifying", total=len(self.files)) as advance:
            for name, told in self.files.items():
                if file_digest(folder / name) != told.get("sha256"):
                    raise damaged(folder / name, "its checksum does not match: bytes have changed")
                advance()


def put(file: Any, array: npt.NDArray[Any]) -> None:
    """Append an array to an open file; NumPy's own ``tofile`` does not say why it failed."""
    file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def pieces(path: Path, kind: Any) -> Iterator[npt.NDArray[Any]]:
    """An array in a file, some entries at a time."""
    size = path.stat().st_size // np.dtype(kind).itemsize
    for at in range(0, size, PIECE):
        yield np.fromfile(path, kind, min(PIECE, size - at), offset=at * np.dtype(kind).itemsize)


def damaged(path: Path, reason: str) -> DataError:
    """The error for an array or manifest that cannot be used."""
    return DataError(f"the graph store is damaged: {reason}", where=str(path), fix=_AGAIN)


def write_array(path: Path, array: npt.NDArray[Any]) -> None:
    """The file of an array."""
    with path.open("wb") as file:
        put(file, array)


@contextmanager
def whole_folder(final: Path) -> Iterator[Path]:
    """A folder to write to that takes the place of ``final`` when all went well.

    What a killed process left behind is removed.
    """
    partial, old = (final.with_name(f".{final.name}.{ending}") for ending in ("partial", "old"))
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        for path in partial.iterdir():
            with path.open("rb+") as file:
                os.fsync(file.fileno())
        shutil.rmtree(old, ignore_errors=True)
        if final.exists():
            os.replace(final, old)
        os.replace(partial, final)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


# ---------------------------------------------------------------- the graph


BLOCK_ENTRIES = 1 << 24  # of the adjacency that are in memory at a time: about 200 MB with what follows
BLOCK_ROWS = 1 << 16
BLOCK_CELLS = 1 << 28  # of dense features: 1 GB
_LEAST_ROWS = 128  # a dense product of fewer rows may have other bits


@final
class StoredGraph:
    """The graph in a folder that ``nodejepa prepare`` wrote: a :class:`nodejepa.graph.RowGraph`.

    Sizes and pointers are checked when it is opened and positions whenever rows are read; :meth:`verify`
    reads all of it and compares checksums, which training and embedding do first.

    >>> graph = StoredGraph("graph.store")  # doctest: +SKIP
    >>> graph.rows(0, 1000)  # doctest: +SKIP
    """

    def __init__(self, folder: str | Path, manifest: Manifest | None = None) -> None:
        self.folder = Path(folder)
        self.manifest = facts = manifest or Manifest.read(self.folder)
        self.num_nodes, self.num_features = facts.nodes, facts.columns
        self.num_edges = facts.entries  # an undirected edge counts twice
        self.directed, self.is_weighted = facts.directed, facts.weighted
        self.structural = int(facts.schema.get("structural", 0))  # of the columns, the last ones
        self.structure_hash, self.content_hash = facts.structure_hash, facts.content_hash
        self._maps: dict[str, Any] = {}
        self._trusted = False
        sides = {"": self.num_edges} | ({"in_": self.num_edges} if self.directed else {})
        if self.manifest.feature_entries is not None:
            sides["feature_"] = self.manifest.feature_entries
        self._pointers = {side: self._opened(side, entries) for side, entries in sides.items()}

    @cached_property
    def degrees(self) -> FloatArray:
        """Weighted out-degree of every node."""
        sums = [self.rows(*span).sum(axis=1, dtype=np.float64) for span in self.spans()]
        return np.concatenate([np.asarray(part, dtype=np.float32).ravel() for part in sums])

    def rows(self, low: int, high: int) -> SparseMatrix:
        """Rows ``low`` to ``high - 1`` of the adjacency."""
        return self._rows("", low, high)

    def in_rows(self, low: int, high: int) -> SparseMatrix:
        """The same rows of its transpose."""
        return self._rows("in_" if self.directed else "", low, high)

    @property
    def sparse_features(self) -> bool:
        """Whether a network reads X as a sparse matrix."""
        entries = self.manifest.feature_entries
        return entries is not None and multiplied_sparse(entries, self.num_nodes * self.num_features)

    def feature_rows(self, low: int, high: int) -> Features:
        """The same rows of the features: mapped from the file, or CSR where they are kept so."""
        if self.manifest.feature_entries is not None:
            return self._rows("feature_", low, high, self.num_features)
        x: FloatArray = self._array(DENSE).reshape(self.num_nodes, self.num_features)
        return x[low:high]

    @property
    def row_lengths(self) -> npt.NDArray[np.int64]:
        """Out-neighbours of every node."""
        return np.diff(self._pointers[""])

    @property
    def feature_lengths(self) -> npt.NDArray[np.int64]:
        """Entries of every row of X where it is kept as CSR."""
        return np.diff(self._pointers["feature_"])

    def ids(self, low: int, high: int) -> pa.Array:
        """The users' own ids of nodes ``low`` to ``high - 1``; their positions where there are none."""
        if self.manifest.id_kind == "position":
            return pa.array(np.arange(low, high))
        if self.manifest.id_kind == "integer":
            return pa.array(self._array("ids.i64")[low:high])
        ends, letters = self._array("id_ends.i64"), self._array("id_letters.u8")
        bounds = np.concatenate([ends[low - 1 : low] if low else [0], ends[low:high]])
        if bounds[0] < 0 or bounds[-1] > len(letters) or (np.diff(bounds) < 0).any():
            raise damaged(self.folder / "id_ends.i64", "ids do not end where the next begins")
        text = pa.py_buffer(letters[bounds[0] : bounds[-1]].tobytes())
        offsets = pa.py_buffer((bounds - bounds[0]).astype(np.int64).tobytes())
        made = pa.Array.from_buffers(pa.large_string(), high - low, [None, offsets, text])
        try:
            made.validate(full=True)
        except pa.ArrowInvalid as error:
            raise damaged(self.folder / "id_letters.u8", str(error)) from None
        return made

    def spans(self, rows: int = BLOCK_ROWS, entries: int = BLOCK_ENTRIES) -> Iterator[tuple[int, int]]:
        """``(low, high)`` of blocks that cover all rows: even, and halved where hubs have many entries."""
        if not self.sparse_features:  # rows of X are dense once they are read
            rows = min(rows, max(BLOCK_CELLS // max(self.num_features, 1), _LEAST_ROWS))
        blocks = -(-self.num_nodes // rows)
        bounds = [self.num_nodes * i // blocks for i in range(blocks + 1)]
        todo = [*pairwise(bounds)][::-1]
        while todo:
            low, high = todo.pop()
            held = max(int(pointers[high] - pointers[low]) for pointers in self._pointers.values())
            if held > entries and high - low >= 2 * _LEAST_ROWS:
                middle = (low + high) // 2
                todo += [(middle, high), (low, middle)]
            else:
                yield low, high

    def scratch(self, size: int, kind: Any) -> npt.NDArray[Any]:
        """In a file beside the arrays that has no name and is gone with the array, or with the process."""
        taken = max(size, 1) * np.dtype(kind).itemsize  # an empty file cannot be mapped
        with nameless(taken, self.folder) as file:
            return np.frombuffer(mmap.mmap(file, taken), dtype=kind)[:size]

    def verify(self) -> None:
        """Read everything and compare checksums; what has changed is an error."""
        self.manifest.verify(self.folder)

    def trust(self) -> None:
        """:meth:`verify`, once: what is made of bytes that have changed looks like any other result."""
        if not self._trusted:
            self.verify()
            self._trusted = True

    def __repr__(self) -> str:
        kind = ", directed" if self.directed else ""
        sizes = f"nodes={self.num_nodes}, edges={self.num_edges}, features={self.num_features}"
        return f"StoredGraph({sizes}{kind})"

    def _opened(self, side: str, entries: int) -> npt.NDArray[np.int64]:
        pointers: npt.NDArray[np.int64] = self._array(f"{side}indptr.i64")
        if pointers[0] != 0 or pointers[-1] != entries or (np.diff(pointers) < 0).any():
            raise damaged(self.folder / f"{side}indptr.i64", "rows do not end where the next begins")
        return pointers

    def _rows(self, side: str, low: int, high: int, width: int | None = None) -> SparseMatrix:
        width = self.num_nodes if width is None else width
        pointers = self._pointers[side]
        first, last = int(pointers[low]), int(pointers[high])
        indices = self._array(f"{side}indices.i32")[first:last]
        # compiled products trust positions: a flipped bit would be read as an address
        if len(indices) and (indices.min() < 0 or indices.max() >= width):
            what = "a feature is of no column" if side == "feature_" else "an edge leads to no node"
            raise damaged(self.folder / f"{side}indices.i32", what)
        weights = (
            self._array(f"{side}weights.f32")[first:last]
            if self.is_weighted or side == "feature_"
            else np.ones(last - first, dtype=np.float32)
        )
        local = pointers[low : high + 1] - first
        return compact_csr(weights, indices, local, high - low, width)

    def _array(self, name: str) -> Any:
        if name in self._maps:
            return self._maps[name]
        kinds = {"i32": np.int32, "i64": np.int64, "f32": np.float32, "u8": np.uint8}
        path = self.folder / name
        kind = kinds[name.rsplit(".", 1)[1]]
        if not self.manifest.files[name]["bytes"]:
            return np.zeros(0, dtype=kind)  # an empty file cannot be mapped
        try:
            self._maps[name] = np.asarray(np.memmap(path, dtype=kind, mode="r"))
        except (OSError, ValueError) as error:
            raise DataError(f"the graph store cannot be read: {error}", where=str(path)) from None
        return self._maps[name]


# ---------------------------------------------------------------- labels


class StoredLabels(NamedTuple):
    """The class of every node (-1: unknown), 4 bytes each, and the names of the classes."""

    codes: npt.NDArray[np.int32]
    names: tuple[str, ...]


def stored_labels(graph: StoredGraph) -> StoredLabels | None:
    """The labels that were kept when the store was made; none if there are none."""
    names = graph.manifest.classes
    if names is None:
        return None
    codes = np.fromfile(graph.folder / LABELS, dtype=np.int32)
    if codes.min(initial=-1) < -1 or codes.max(initial=-1) >= len(names):
        raise damaged(graph.folder / LABELS, "a label is of no class")
    return StoredLabels(codes, tuple(names))
