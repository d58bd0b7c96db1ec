"""Labels beside a stored graph, which has none: only who scores embeddings or writes them out opens them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nodejepa.errors import EvaluationError
from nodejepa.io.labels import LabelColumn
from nodejepa.store.graph import StoredGraph
from nodejepa.store.layout import LABELS, damaged, write_array
from nodejepa.store.positions import Tables


@final
@dataclass(frozen=True, eq=False)
class StoredLabels:
    """The class of every node (-1: unknown), 4 bytes each, and the names of the classes."""

    codes: npt.NDArray[np.int32]
    names: tuple[str, ...]

    def words(self, low: int, high: int) -> pa.Array:
        """Names of the classes of nodes ``low`` to ``high - 1``; none where unknown."""
        codes = self.codes[low:high]
        return pa.array(self.names, pa.string()).take(pa.array(codes, mask=codes < 0))


def stored_labels(graph: StoredGraph) -> StoredLabels | None:
    """The labels that were kept when the store was made; none if there are none."""
    names = graph.manifest.classes
    if names is None:
        return None
    codes = np.fromfile(graph.folder / LABELS, dtype=np.int32)
    if codes.min(initial=-1) < -1 or codes.max(initial=-1) >= len(names):
        raise damaged(graph.folder / LABELS, "a label is of no class")
    return StoredLabels(codes, tuple(names))


def require_labels(graph: StoredGraph) -> StoredLabels:
    """The labels, or what to do to have some."""
    found = stored_labels(graph)
    if found is None:
        raise EvaluationError(
            "the graph store has no labels, and a score needs some",
            where=str(graph.folder),
            fix="Prepare it again, naming the column of the labels.",
        )
    return found


def write_labels(tables: Tables, added: int, folder: Path) -> tuple[str, ...]:
    """Write the classes of nodes in order, ``added`` ones without a row last; their names come back."""
    name, table = tables.labels, tables.nodes
    assert name is not None
    assert table is not None
    column = LabelColumn(table.typed, f"{table.where}, column {name!r}")
    looks = [column.look(batch[name]) for batch in table.batches([name], "Reading labels")]
    codes = np.concatenate([*looks, np.full(added, -1, dtype=np.int32)])
    classes, names = column.classes()
    write_array(folder / LABELS, np.append(classes, -1).astype(np.int32)[codes])
    return names
