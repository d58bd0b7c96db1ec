"""What every graph answers, in memory or on disk, and doors of ``Graph`` to what others hold graphs in."""

import hashlib
import importlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nodejepa.graph_checks import Features, FloatArray, SparseMatrix


class RowGraph(Protocol):
    """A graph by rows: :class:`nodejepa.graph.Graph` and :class:`nodejepa.store.StoredGraph` are such."""

    @property
    def num_nodes(self) -> int:
        """How many nodes there are."""

    @property
    def num_edges(self) -> int:
        """Stored edges: an undirected edge counts twice."""

    @property
    def num_features(self) -> int:
        """Columns of the feature matrix."""

    @property
    def directed(self) -> bool:
        """Whether the adjacency may differ from its transpose."""

    @property
    def degrees(self) -> FloatArray:
        """Weighted out-degree of every node."""

    @property
    def structure_hash(self) -> str:
        """Identifies nodes and edges; the same in memory and on disk."""

    @property
    def content_hash(self) -> str:
        """Identifies nodes, edges and features; the same in memory and on disk."""

    def rows(self, low: int, high: int) -> SparseMatrix:
        """Rows ``low`` to ``high - 1`` of the adjacency, ``[high - low, nodes]``."""

    def in_rows(self, low: int, high: int) -> SparseMatrix:
        """The same rows of its transpose: who points at these nodes."""

    def feature_rows(self, low: int, high: int) -> Features:
        """The same rows of the features."""

    def spans(self) -> Iterator[tuple[int, int]]:
        """``(low, high)`` of blocks that cover all rows, each of which may be in memory."""

    def scratch(self, size: int, kind: Any) -> npt.NDArray[Any]:
        """An array to fill that is as long as the graph has nodes or edges: where there is room for it."""


class Rows:
    """The rows of a graph in memory."""

    adjacency: SparseMatrix
    features: Features
    directed: bool

    def rows(self, low: int, high: int) -> SparseMatrix:
        """Rows ``low`` to ``high - 1`` of the adjacency."""
        return self.adjacency[low:high]

    def in_rows(self, low: int, high: int) -> SparseMatrix:
        """The same rows of its transpose."""
        return self._incoming[low:high]

    @cached_property
    def _incoming(self) -> SparseMatrix:
        return sp.csr_array(self.adjacency.T) if self.directed else self.adjacency

    def feature_rows(self, low: int, high: int) -> Features:
        """The same rows of the features."""
        return self.features[low:high]

    def spans(self) -> Iterator[tuple[int, int]]:
        """All rows are one block."""
        return iter([(0, self.adjacency.shape[0])])

    def scratch(self, size: int, kind: Any) -> npt.NDArray[Any]:
        """In memory."""
        return np.empty(size, dtype=kind)


def buffers(matrix: Features) -> tuple[npt.NDArray[Any], ...]:
    """The arrays that a matrix consists of."""
    return (matrix,) if isinstance(matrix, np.ndarray) else (matrix.data, matrix.indices, matrix.indptr)


def digest(*parts: bytes | npt.NDArray[Any] | Iterable[npt.NDArray[Any]]) -> str:
    """SHA-256 of the parts, each closed by a bar; a part may come in pieces."""
    sha = hashlib.sha256()
    for part in parts:
        for piece in [part] if isinstance(part, bytes | np.ndarray) else part:
            sha.update(piece if isinstance(piece, bytes) else np.ascontiguousarray(piece).data)
        sha.update(b"|")
    return sha.hexdigest()


def looped_rows(rows: SparseMatrix, low: int) -> SparseMatrix:
    """Rows of an adjacency, the first of which is node ``low``'s, with a self-loop of weight 1 for each."""
    loops = sp.eye_array(*rows.shape, k=low, dtype=np.float32, format="csr")
    looped = (rows + loops).tocsr()
    looped.sort_indices()
    return looped


def loop_scale(rows: SparseMatrix, low: int) -> npt.NDArray[np.float64]:
    """``1 / sqrt(1 + weighted degree)`` of the nodes whose in-edges the rows are."""
    return np.asarray(1.0 / np.sqrt(np.asarray(looped_rows(rows, low).sum(axis=1, dtype=np.float64)).ravel()))


class Doors:
    """``Graph.from_networkx``, ``Graph.from_pyg`` and ``Graph.from_pandas``."""

    @classmethod
    def from_networkx(cls, nx_graph: Any, features: Any = None, **options: Any) -> Self:
        """A graph from NetworkX; see :func:`nodejepa.from_networkx`."""
        return cls._through("from_networkx", nx_graph, features, **options)

    @classmethod
    def from_pyg(cls, data: Any, **options: Any) -> Self:
        """A graph from a PyG ``Data``; see :func:`nodejepa.from_pyg`."""
        return cls._through("from_pyg", data, **options)

    @classmethod
    def from_pandas(cls, edges: Any, nodes: Any = None, **options: Any) -> Self:
        """A graph from data frames of edges and nodes; see :func:`nodejepa.load_graph`."""
        return cls._through("load_graph", edges, nodes, **options)

    @classmethod
    def _through(cls, name: str, *given: Any, **options: Any) -> Self:
        graph: Self = getattr(importlib.import_module("nodejepa.io"), name)(*given, **options)
        return graph
