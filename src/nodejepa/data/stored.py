"""``StoredDataset``: a graph on disk with labels that judge its embeddings, as ``Dataset`` is in memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import numpy.typing as npt

from nodejepa.data.splits import Split, make_split
from nodejepa.tables.store import StoredGraph, require_labels

SCORED_NODES = 1 << 18  # whose embeddings are in memory when they are scored: 270 MB at 256 columns
_SEED = 0


@final
@dataclass(frozen=True, eq=False)
class StoredDataset:
    """The nodes that are scored: all of a graph, or, of a large one, labelled nodes drawn at random.

    Only evaluation reads ``labels``, which are those of ``nodes``; splits count their positions.
    """

    name: str
    graph: StoredGraph
    nodes: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    class_names: tuple[str, ...]

    @classmethod
    def of(cls, graph: StoredGraph, most: int = SCORED_NODES) -> StoredDataset:
        """A store that was made with labels; at most so many of its nodes are scored."""
        found = require_labels(graph)
        nodes = np.arange(graph.num_nodes)
        if len(nodes) > most:
            known = np.flatnonzero(found.codes >= 0)
            chosen = np.random.default_rng(_SEED).choice(known, min(most, len(known)), replace=False)
            nodes = np.sort(chosen)
        labels = found.codes[nodes].astype(np.int64)
        return cls(Path(graph.folder).name, graph, nodes, labels, found.names)

    @property
    def sampled(self) -> str:
        """Which nodes are scored, in words; empty where all are."""
        if len(self.nodes) == self.graph.num_nodes:
            return ""
        return f"scored on {len(self.nodes):,} labelled nodes, drawn at random"

    def split(self, name: str | None = None, *, seed: int = 42) -> Split:
        """As :meth:`nodejepa.data.dataset.Dataset.split`; no store has an official one."""
        return make_split(name or "20-30", self.labels, seed)
