"""The graph without its directions, which METIS and most descriptors look at, and its components."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from nodejepa.graph import Graph, RowGraph
from nodejepa.graph_checks import SparseMatrix

Float64Array = npt.NDArray[np.float64]


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


def undirected_rows(graph: RowGraph, low: int, high: int) -> SparseMatrix:
    """Rows ``low`` to ``high - 1`` of the adjacency, or of max(A, A^T) for a directed graph, sorted."""
    rows = graph.rows(low, high)
    if graph.directed:
        rows = rows.maximum(graph.in_rows(low, high)).tocsr()
        rows.sort_indices()
    return rows


def neighbours(graph: RowGraph) -> Neighbours:
    """Positions of all :func:`undirected_rows`, of a graph on disk in a file of their own."""
    if isinstance(graph, Graph) and not graph.directed:
        return Neighbours(graph.adjacency.indptr, graph.adjacency.indices)
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
    size = edges.indptr.size - 1
    pairs = (np.ones(edges.indices.size, dtype=np.int8), edges.indices, edges.indptr)
    label = connected_components(sp.csr_array(pairs, shape=(size, size)), directed=False)[1]
    nodes = np.bincount(label)
    joined = np.bincount(label, weights=np.diff(edges.indptr))
    largest = np.lexsort((joined, nodes))[-1]
    return np.flatnonzero(label == largest)


@final
class ComponentRows:
    r"""The matrix :math:`D^{-1/2} A D^{-1/2}` of a component, directions left out.

    It is made once, of a graph on disk in a file without a name, because a solver multiplies by it hundreds
    of times. ``@`` reads a block of rows after the other, with the bits of all at once.

    Args:
        graph: in memory or on disk.
        nodes: of the component (or of all), ascending; they have no edge to others.
        regularised: add the mean degree to every degree in D.
    """

    def __init__(self, graph: RowGraph, nodes: npt.NDArray[np.intp], *, regularised: bool = False) -> None:
        self.nodes, self.shape, self._graph = nodes, (nodes.size, nodes.size), graph
        self._place: npt.NDArray[np.int32] | None = None
        if nodes.size < graph.num_nodes:
            self._place = np.full(graph.num_nodes, -1, dtype=np.int32)
            self._place[nodes] = np.arange(nodes.size, dtype=np.int32)
        self.nnz, sums = 0, []
        for rows in self._rows():
            self.nnz += int(rows.nnz)
            sums.append(np.asarray(rows.sum(axis=1)).ravel())
        self.degrees: Float64Array = np.concatenate(sums)
        self._blocks = [*self._scaled(self.degrees.mean() if regularised else 0.0)]

    def __matmul__(self, x: npt.NDArray[np.floating]) -> Float64Array:
        """The product with ``[n]`` or ``[n, k]``."""
        parts = [block @ x for block in self._blocks]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def neighbour_sums(self, x: Float64Array) -> Float64Array:
        """``A @ x``."""
        return np.concatenate([rows @ x for rows in self._rows()])

    def toarray(self) -> Float64Array:
        """All of it; for small ones."""
        return np.concatenate([block.toarray() for block in self._blocks])

    def _rows(self) -> Iterator[SparseMatrix]:
        """A of the component, a block for each span of the graph."""
        for low, high in self._graph.spans():
            rows = undirected_rows(self._graph, low, high).astype(np.float64)
            if self._place is not None:
                first, last = np.searchsorted(self.nodes, (low, high))
                kept = rows[self.nodes[first:last] - low]
                inside = (kept.data, self._place[kept.indices], kept.indptr)
                rows = sp.csr_array(inside, shape=(last - first, self.nodes.size))
            yield rows

    def _scaled(self, added: float) -> Iterator[SparseMatrix]:
        indices, data = (self._graph.scratch(self.nnz, kind) for kind in (np.int32, np.float64))
        scale = 1 / np.sqrt(self.degrees + added)
        row = entry = 0
        for rows in self._rows():
            size, end = rows.shape[0], entry + int(rows.nnz)
            of_row = np.repeat(scale[row : row + size], np.diff(rows.indptr))
            indices[entry:end] = rows.indices
            data[entry:end] = of_row * rows.data * scale[rows.indices]
            # not by the constructor, which copies a small stretch of a large array
            rows.indices, rows.data = indices[entry:end], data[entry:end]
            yield rows
            row, entry = row + size, end
