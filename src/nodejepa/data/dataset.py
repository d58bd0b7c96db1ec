"""``Dataset``: a graph together with the task that judges its embeddings."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self, cast

import numpy as np
import numpy.typing as npt

from nodejepa.data.splits import Split, describe_scored, make_split, scored_nodes
from nodejepa.errors import DataError, EvaluationError
from nodejepa.graph import Graph
from nodejepa.tables.store import StoredGraph, stored_labels


@dataclass(frozen=True, eq=False)
class Dataset:
    """A named graph, one label per node (-1: unknown) and, where its authors drew one, their split.

    Only evaluation reads ``labels``; methods are given ``graph``, which has none. The graph may also be a
    :class:`nodejepa.tables.StoredGraph`: labels and splits are then those of ``nodes``.
    """

    name: str
    graph: Graph
    labels: npt.NDArray[np.int64]
    class_names: tuple[str, ...] | None = None
    official_split: Split | None = None
    default_split: str = "20-30"
    nodes: npt.NDArray[np.int64] | None = None  # that are scored, where the graph is on disk

    def __post_init__(self) -> None:
        count = self.graph.num_nodes if self.nodes is None else len(self.nodes)
        if self.labels.shape != (count,) or self.labels.dtype.kind not in "iu":
            raise DataError(
                f"{self.labels.dtype} labels of shape {self.labels.shape} for {count} nodes",
                where=self.name,
                fix="One whole number per node is expected.",
            )
        labels = self.labels.astype(np.int64)
        labels.flags.writeable = False
        object.__setattr__(self, "labels", labels)

    @classmethod
    def of_store(cls, store: str | Path) -> Self:
        """A graph store that was prepared with labels."""
        graph = StoredGraph(store)
        found = stored_labels(graph)
        if found is None:
            raise EvaluationError(
                "the graph store has no labels, and a score needs some",
                where=str(graph.folder),
                fix="Prepare it again, naming the column of the labels.",
            )
        nodes = scored_nodes(found.codes)
        labels = found.codes[nodes].astype(np.int64)
        # methods take either graph; whatever needs all of it in memory refuses a store by itself
        return cls(graph.folder.name, cast(Graph, graph), labels, found.names, nodes=nodes)

    @property
    def sampled(self) -> str:
        """Which nodes are scored, in words; empty where all are."""
        return "" if self.nodes is None else describe_scored(self.nodes, self.graph.num_nodes)

    @property
    def num_classes(self) -> int:
        """Classes are numbered from 0; this is one more than the largest label."""
        return int(self.labels.max(initial=-1)) + 1

    def split(self, name: str | None = None, *, seed: int = 42) -> Split:
        """The split called ``name`` (the dataset's default if not given); see :func:`make_split`."""
        return make_split(name or self.default_split, self.labels, seed, self.official_split)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {self.graph}, classes={self.num_classes})"
