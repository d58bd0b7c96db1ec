"""The folder of a stored graph: which arrays it has, how large each must be, and its manifest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nodejepa.errors import DataError
from nodejepa.io.reading_options import IdKind
from nodejepa.progress import progress_bar
from nodejepa.validation import Exact, NonNegativeInt, read_document, write_document

MANIFEST = "manifest.json"
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

    def write(self, folder: Path) -> None:
        """Write it, with a digest of its own."""
        write_document(folder / MANIFEST, _FORMAT, _VERSION, asdict(self))

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


def file_digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
