"""The graph without its directions, which METIS and most descriptors look at; its largest component."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nodejepa.compiled import compiled
from nodejepa.graph import Graph
from nodejepa.graph_checks import SparseMatrix, compact_csr
from nodejepa.graph_rows import RowGraph


class Neighbours(NamedTuple):
    """Who is joined with whom: row pointers and positions as in a CSR matrix, which may lie in a file."""

    indptr: npt.NDArray[Any]
    indices: npt.NDArray[Any]

    def of(self, nodes: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """How many neighbours each of some nodes has, and all of these, node after node."""
        first = self.indptr[nodes]
        counts = self.indptr[nodes + 1] - first
        entries = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        return counts, self.indices[entries]


def undirected_adjacency(graph: Graph) -> SparseMatrix:
    """The adjacency itself, or max(A, A^T) for a directed graph; CSR ``[N, N]`` with sorted rows."""
    if not graph.directed:
        return graph.adjacency
    both = graph.adjacency.maximum(graph.adjacency.T).tocsr()
    both.sort_indices()
    return compact_csr(both.data, both.indices, both.indptr, graph.num_nodes)


def undirected_rows(graph: RowGraph, low: int, high: int) -> SparseMatrix:
    """Rows ``low`` to ``high - 1`` of :func:`undirected_adjacency`."""
    rows = graph.rows(low, high)
    if graph.directed:
        rows = rows.maximum(graph.in_rows(low, high)).tocsr()
        rows.sort_indices()
    return rows


def neighbours(graph: RowGraph) -> Neighbours:
    """The positions of :func:`undirected_adjacency`, of a graph on disk in a file of their own."""
    if isinstance(graph, Graph):
        adjacency = undirected_adjacency(graph)
        return Neighbours(adjacency.indptr, adjacency.indices)
    indptr = np.zeros(graph.num_nodes + 1, dtype=np.int64)
    indices = graph.scratch(graph.num_edges * (2 if graph.directed else 1), np.int32)
    filled = 0
    for low, high in graph.spans():
        rows = undirected_rows(graph, low, high)
        indptr[low + 1 : high + 1] = filled + rows.indptr[1:].astype(np.int64)
        indices[filled : filled + rows.nnz] = rows.indices
        filled += rows.nnz
    return Neighbours(indptr, indices[:filled])


def largest_component(edges: Neighbours) -> npt.NDArray[np.intp]:
    """Positions of the nodes of the largest connected component; of equals, the one with more edges."""
    label = _labels(edges.indptr, edges.indices)
    nodes = np.bincount(label)
    joined = np.bincount(label, weights=np.diff(edges.indptr))
    largest = np.lexsort((joined, nodes))[-1]
    return np.flatnonzero(label == largest)


@compiled()
def _labels(indptr: Any, indices: Any) -> Any:
    """The component of every node, numbered by their first nodes; edges are read once, in order."""
    size = len(indptr) - 1
    above = np.arange(size).astype(np.int32)  # a forest whose roots are the first nodes of components
    for i in range(size):
        for e in range(indptr[i], indptr[i + 1]):
            a, b = i, indices[e]
            while above[a] != a:
                above[a] = above[above[a]]
                a = above[a]
            while above[b] != b:
                above[b] = above[above[b]]
                b = above[b]
            if a < b:
                above[b] = a
            else:
                above[a] = b
    found = 0
    labels = np.empty(size, dtype=np.int32)
    for i in range(size):
        if above[i] == i:
            labels[i] = found
            found += 1
        else:
            labels[i] = labels[above[i]]  # which comes before, and has its number
    return labels
