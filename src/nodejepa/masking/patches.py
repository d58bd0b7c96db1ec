"""Patches of PatchJEPA: the parts of a partition, each expanded by one hop (or more)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nodejepa.errors import GraphError
from nodejepa.graph import RowGraph
from nodejepa.graph_checks import FloatArray, SparseMatrix
from nodejepa.structure.descriptors import node_clustering, node_pagerank, standardize
from nodejepa.structure.undirected import Neighbours, neighbours

IntArray = npt.NDArray[np.integer]
Int32Array = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Patches:
    """P node lists and their expansions, as flat arrays.

    Patch p consists of ``core_nodes[core_starts[p]:core_starts[p + 1]]`` (disjoint, together all nodes);
    with its neighbours in either direction it is ``nodes[starts[p]:starts[p + 1]]``. All lists ascend.
    """

    num_nodes: int
    core_starts: npt.NDArray[np.int64]
    core_nodes: Int32Array
    starts: npt.NDArray[np.int64]
    nodes: Int32Array

    @classmethod
    def from_partition(cls, graph: RowGraph, part: IntArray, *, hops: int = 1) -> Patches:
        """Patches from the part of every node, ``[N]`` with values 0 .. P-1, each present.

        ``hops`` is how far each patch is expanded; the paper takes 1.
        """
        core_starts = np.concatenate([[0], np.cumsum(np.bincount(part))]).astype(np.int64)
        core_nodes = np.argsort(part, kind="stable").astype(np.int32)
        lists = [core_nodes[first:last] for first, last in pairwise(core_starts)]
        if hops > 0:
            edges = neighbours(graph)
            lists = [_expanded(edges, core, hops) for core in lists]
        starts = np.concatenate([[0], np.cumsum([len(nodes) for nodes in lists])]).astype(np.int64)
        return cls(graph.num_nodes, core_starts, core_nodes, starts, np.concatenate(lists))

    def __len__(self) -> int:
        return self.starts.size - 1

    def core(self, patch: int) -> Int32Array:
        """The patch's own nodes."""
        return self.core_nodes[self.core_starts[patch] : self.core_starts[patch + 1]]

    def expanded(self, patch: int) -> Int32Array:
        """The patch's nodes and their neighbours."""
        return self.nodes[self.starts[patch] : self.starts[patch + 1]]

    def with_core_in(self, nodes: IntArray) -> npt.NDArray[np.int64]:
        """The patches that have some of ``nodes`` for their own, ascending."""
        return np.flatnonzero(np.bincount(self._patch_of[nodes], minlength=len(self)))

    @cached_property
    def _patch_of(self) -> Int32Array:
        patch = np.empty(self.num_nodes, dtype=np.int32)
        patch[self.core_nodes] = np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.core_starts))
        return patch

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Nodes of every expanded patch, ``[P]``."""
        return np.diff(self.starts)

    @cached_property
    def pooling(self) -> SparseMatrix:
        """CSR ``[P, N]`` whose product with node embeddings is their mean over every expanded patch."""
        weight = np.repeat(1.0 / self.sizes, self.sizes).astype(np.float32)
        starts = self.starts.astype(np.int32 if self.nodes.size < 2**31 else np.int64)
        return sp.csr_array((weight, self.nodes, starts), shape=(len(self), self.num_nodes))

    def pooling_over(self, patches: npt.NDArray[np.int64], nodes: IntArray) -> SparseMatrix:
        """CSR ``[patches, nodes]``: means over those nodes of some expanded patches that are in ``nodes``."""
        pooling = self.pooling[patches]
        if len(nodes) == self.num_nodes:
            return pooling
        inside = pooling[:, nodes]
        counts = np.diff(inside.indptr)
        inside.data[:] = np.repeat(1.0 / np.maximum(counts, 1), counts)
        return inside

    def sample(
        self,
        generator: np.random.Generator,
        contexts: int = 1,
        targets: int = 4,
        *,
        among: npt.NDArray[np.int64] | None = None,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Distinct random patches: the ids of the contexts and those of the targets.

        Where there are too few patches, targets are given up first and contexts after them; at least
        one of each is left. ``among`` names the patches to choose from, if not all.
        """
        among = np.arange(len(self)) if among is None else among
        if len(among) < 2:
            raise GraphError(
                "the graph has a single patch, so nothing is left to predict",
                where="patches",
                fix="Ask for more patches, let a step see more parts, or use NodeJEPA on graphs this small.",
            )
        contexts = min(contexts, len(among) - 1)
        drawn = generator.permutation(among)[: contexts + targets]
        return drawn[:contexts], drawn[contexts:]


def patch_descriptors(graph: RowGraph, patches: Patches, *, cache: bool = True) -> FloatArray:
    """Mean degree, mean PageRank, mean clustering coefficient and share of all nodes, ``[P, 4]``.

    All of the expanded patch, as its embedding is; every column standardised over the patches.
    """
    quantities = (graph.degrees, node_pagerank(graph, cache=cache), node_clustering(graph, cache=cache))
    means = patches.pooling.astype(np.float64) @ np.column_stack(quantities)
    return standardize(np.column_stack([means, patches.sizes / graph.num_nodes])).astype(np.float32)


def _expanded(edges: Neighbours, core: Int32Array, hops: int) -> Int32Array:
    """Some nodes and those at most ``hops`` edges from them, ascending."""
    nodes = frontier = core
    for _ in range(hops):
        frontier = np.setdiff1d(edges.of(frontier)[1], nodes)
        nodes = np.union1d(nodes, frontier)
    return nodes.astype(np.int32)
