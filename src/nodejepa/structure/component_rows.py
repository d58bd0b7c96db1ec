"""The edges among the nodes of one component, by blocks of rows: no product asks for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nodejepa.graph_checks import SparseMatrix
from nodejepa.graph_rows import RowGraph
from nodejepa.structure.undirected import undirected_rows

Float64Array = npt.NDArray[np.float64]


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

    def __matmul__(self, x: Float64Array) -> Float64Array:
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
