"""The last step of a store: checksums and the identity, which is that of the graph in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nodejepa.graph import digest
from nodejepa.progress import progress_bar
from nodejepa.store.graph import StoredGraph
from nodejepa.store.layout import DENSE, PIECE, SPARSE, Manifest, file_digest, pieces


def seal(facts: Manifest, folder: Path) -> None:
    """Checksums, the identity and the manifest, which says that the store is whole."""
    names = facts.sizes()
    with progress_bar("Sealing the store", total=len(names) + 1) as advance:
        files = {}
        for name in names:
            path = folder / name
            files[name] = {"bytes": path.stat().st_size, "sha256": file_digest(path)}
            advance()
        structure = _structure(facts, folder)
        shape = np.asarray((facts.nodes, facts.columns), dtype=np.int64)
        if facts.feature_entries is None:
            features = [pieces(folder / DENSE, np.float32)]
        else:
            entries = pieces(folder / SPARSE[2], np.float32)
            features = [entries, *_positions(folder, "feature_", facts.feature_entries)]
        content = digest(structure.encode(), shape, *features)
        advance()
    values = asdict(facts) | {"files": files, "structure_hash": structure, "content_hash": content}
    Manifest(**values).write(folder)


def unsealed_graph(facts: Manifest, folder: Path) -> StoredGraph:
    """The graph whose edges are in a folder already, while its features are not; its identity is known."""
    bare = replace(facts, columns=0, id_kind="position", classes=None, feature_entries=None)
    files = {name: {"bytes": (folder / name).stat().st_size} for name in bare.sizes() if name != DENSE}
    return StoredGraph(folder, replace(bare, files=files, structure_hash=_structure(bare, folder)))


def _structure(facts: Manifest, folder: Path) -> str:
    """The ``structure_hash`` of a Graph."""
    weights = (
        pieces(folder / "weights.f32", np.float32)
        if facts.weighted
        else (np.ones(min(PIECE, facts.entries - at), np.float32) for at in range(0, facts.entries, PIECE))
    )
    return digest(
        b"directed" if facts.directed else b"undirected", weights, *_positions(folder, "", facts.entries)
    )


def _positions(folder: Path, side: str, entries: int) -> list[Iterator[npt.NDArray[Any]]]:
    """Columns and row pointers of a matrix as they are in memory, where small ones have small pointers."""
    pointer = np.int32 if entries <= np.iinfo(np.int32).max else np.int64
    files = ((f"{side}indices.i32", np.int32), (f"{side}indptr.i64", np.int64))
    return [(part.astype(pointer) for part in pieces(folder / name, kind)) for name, kind in files]
