"""Patches of PatchJEPA: the parts of a partition, each expanded by one hop (or more)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nodejepa.errors import GraphError
from nodejepa.graph import RowGraph
from nodejepa.graph_checks import FloatArray, SparseMatrix
from nodejepa.structure.base import Neighbours, neighbours
from nodejepa.structure.descriptors import node_clustering, node_pagerank, standardize

IntArray = npt.NDArray[np.integer]
Int32Array = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Patches:
    """The parts of a graph, and what they are with their neighbours in either direction."""

    part: IntArray  # of every node, [N] with values 0 .. P-1
    pooling: SparseMatrix  # CSR [P, N]; times node embeddings: their mean over every expanded part

    @classmethod
    def from_partition(cls, graph: RowGraph, part: IntArray, *, hops: int = 1) -> Patches:
        """Patches from the part of every node, each present; the paper expands by 1 of ``hops``."""
        order = np.argsort(part, kind="stable").astype(np.int32)
        edges, cores = neighbours(graph), np.split(order, np.cumsum(np.bincount(part))[:-1])
        lists = [_expanded(edges, core, hops) for core in cores]
        sizes = np.array([len(nodes) for nodes in lists])
        starts = np.concatenate([[0], np.cumsum(sizes)])
        starts = starts.astype(np.int32 if starts[-1] < 2**31 else np.int64)
        weight = np.repeat(1.0 / sizes, sizes).astype(np.float32)
        shape = len(lists), graph.num_nodes
        return cls(part, sp.csr_array((weight, np.concatenate(lists), starts), shape=shape))

    def __len__(self) -> int:
        return int(self.pooling.shape[0])

    def expanded(self, patch: int) -> Int32Array:
        """The patch's nodes and their neighbours, ascending."""
        nodes: Int32Array = self.pooling.indices[slice(*self.pooling.indptr[patch : patch + 2])]
        return nodes

    def with_core_in(self, nodes: IntArray) -> npt.NDArray[np.int64]:
        """The patches that have some of ``nodes`` for their own, ascending."""
        return np.unique(self.part[nodes]).astype(np.int64)

    def pooling_over(self, patches: npt.NDArray[np.int64], nodes: IntArray) -> SparseMatrix:
        """CSR ``[patches, nodes]``: means over those nodes of some expanded patches that are in ``nodes``."""
        pooling = self.pooling[patches]
        if len(nodes) == len(self.part):
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
    sizes = np.diff(patches.pooling.indptr)
    return standardize(np.column_stack([means, sizes / graph.num_nodes])).astype(np.float32)


def _expanded(edges: Neighbours, core: Int32Array, hops: int) -> Int32Array:
    """Some nodes and those at most ``hops`` edges from them, ascending."""
    nodes = frontier = core
    for _ in range(hops):
        frontier = np.setdiff1d(edges.of(frontier)[1], nodes)
        nodes = np.union1d(nodes, frontier)
    return nodes.astype(np.int32)
