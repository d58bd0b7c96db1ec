"""The edges among the nodes of one component, by blocks of rows: no product asks for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Any, final

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

    ``@`` reads a block of rows after the other, with the bits of all at once.

    Args:
        graph: in memory or on disk.
        nodes: of the component, ascending; they have no edge to others.
    """

    def __init__(self, graph: RowGraph, nodes: npt.NDArray[np.intp]) -> None:
        self.nodes, self.shape, self.nnz = nodes, (nodes.size, nodes.size), 0
        self._graph, self._whole = graph, nodes.size == graph.num_nodes
        self._place = np.full(0 if self._whole else graph.num_nodes, -1, dtype=np.int32)
        if not self._whole:
            self._place[nodes] = np.arange(nodes.size, dtype=np.int32)
        self._scaled = lru_cache(maxsize=1)(self._make_scaled)  # a graph in memory is one block
        sums = []
        for rows in self._blocks():
            self.nnz += int(rows.nnz)
            sums.append(np.asarray(rows.sum(axis=1)).ravel())
        self.degrees: Float64Array = np.concatenate(sums)

    @cached_property
    def _scale(self) -> Float64Array:
        return np.asarray(1 / np.sqrt(self.degrees))

    def __matmul__(self, x: Float64Array) -> Float64Array:
        """The product with ``[n]`` or ``[n, k]``."""
        parts = [self._scaled(low, high) @ x for low, high in self._graph.spans()]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def neighbour_sums(self, x: Float64Array) -> Float64Array:
        """``A @ x``."""
        return np.concatenate([rows @ x for rows in self._blocks()])

    def toarray(self) -> Float64Array:
        """All of it; for small ones."""
        return np.concatenate([self._scaled(low, high).toarray() for low, high in self._graph.spans()])

    def _blocks(self) -> Iterator[SparseMatrix]:
        return (self._rows(low, high) for low, high in self._graph.spans())

    def _rows(self, low: int, high: int) -> SparseMatrix:
        rows = undirected_rows(self._graph, low, high).astype(np.float64)
        if self._whole:
            return rows
        first, last = np.searchsorted(self.nodes, (low, high))
        kept = rows[self.nodes[first:last] - low]
        inside = (kept.data, self._place[kept.indices], kept.indptr)
        return sp.csr_array(inside, shape=(kept.shape[0], self.nodes.size))

    def _make_scaled(self, low: int, high: int) -> Any:
        rows = self._rows(low, high)
        first = int(np.searchsorted(self.nodes, low))
        of_row = np.repeat(self._scale[first : first + rows.shape[0]], np.diff(rows.indptr))
        rows.data = of_row * rows.data * self._scale[rows.indices]
        return rows
