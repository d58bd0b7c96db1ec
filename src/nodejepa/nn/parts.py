"""Parts of a graph that are stretches of its rows: what training in parts reads, from memory or from disk."""

from functools import cached_property
from typing import Any, Protocol, final

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from nodejepa.compiled import compiled
from nodejepa.graph import Graph
from nodejepa.graph_checks import Features, SparseMatrix, compact_csr
from nodejepa.nn.inputs import GraphInputs, NodeList
from nodejepa.nn.operators import FeatureMatrix, OperatorKind, keeps_sparse, make_operator, transform
from nodejepa.nn.sparse import Rows, SparseOperator, to_dense


class Stretches(Protocol):
    """A graph whose rows are in such an order that part p is the rows ``starts[p]`` .. ``starts[p + 1]``.

    Nothing else is ever asked of it by a step, so that a graph on disk reads a few stretches of its files.
    """

    directed: bool
    num_features: int
    sparse_features: bool  # whether a network reads X as a sparse matrix
    starts: npt.NDArray[np.int64]
    in_weights: npt.NDArray[np.float64]  # of the whole graph: the sum of every row's incoming edge weights

    def rows(self, low: int, high: int) -> SparseMatrix:
        """Rows of the adjacency, ``[high - low, N]``."""

    def features(self, low: int, high: int) -> Features:
        """Rows of X."""

    def nodes(self, low: int, high: int) -> NodeList:
        """The nodes behind the rows, ascending, as positions in what a task keeps a constant row for."""


@final
class Renumbered:
    """A graph in memory, read as if its rows were ordered by part; nothing of it is copied beforehand."""

    def __init__(self, graph: Graph, part: npt.NDArray[np.int32]) -> None:
        self._graph, self.directed, self.num_features = graph, graph.directed, graph.num_features
        self.sparse_features = keeps_sparse(graph.features)
        self.starts = np.concatenate([[0], np.cumsum(np.bincount(part))])
        self._order = np.argsort(part, kind="stable").astype(np.int32)
        self._place = np.empty_like(self._order)
        self._place[self._order] = np.arange(graph.num_nodes, dtype=np.int32)
        adjacency = graph.adjacency
        into = np.bincount(adjacency.indices, adjacency.data, minlength=graph.num_nodes)
        self.in_weights = into[self._order].astype(np.float64)

    def rows(self, low: int, high: int) -> SparseMatrix:
        """Cut out, columns renumbered."""
        found = self._graph.adjacency[self._order[low:high]]
        return sp.csr_array((found.data, self._place[found.indices], found.indptr), shape=found.shape)

    def features(self, low: int, high: int) -> Features:
        """Cut out."""
        found: Features = self._graph.features[self._order[low:high]]
        return found

    def nodes(self, low: int, high: int) -> NodeList:
        """Where they are in the graph."""
        return self._order[low:high]


@final
class RowsPart(GraphInputs):
    """Some parts joined: the subgraph they induce together, in the order of its nodes.

    As :class:`~nodejepa.nn.inputs.Part`, operators keep the normalisation of the whole graph although
    neighbours are missing.
    """

    def __init__(self, of: Stretches, parts: list[int], device: torch.device) -> None:
        self._read, self._bounds = of, [(int(of.starts[p]), int(of.starts[p + 1])) for p in parts]
        rows = np.concatenate([of.nodes(*bounds) for bounds in self._bounds])
        self._by = np.argsort(rows, kind="stable")
        self._nodes = rows[self._by]  # ascending
        super().__init__(device, len(rows), of.num_features, of.directed)

    @property
    def nodes(self) -> NodeList:
        """Those of the parts, ascending."""
        return self._nodes

    def take(self, per_node: Tensor) -> Tensor:
        """A copy of the rows, which may come from a memory that holds more than the device does."""
        return per_node.index_select(0, torch.from_numpy(self.nodes).to(per_node.device)).to(self.device)

    def shown(self, weight: Tensor) -> Tensor:
        """No columns are hidden."""
        return weight

    def transform_features(self, weight: Tensor, rows: Rows = None) -> Tensor:
        """``X @ weight``."""
        return transform(self.features, weight, rows)

    @cached_property
    def adjacency(self) -> SparseMatrix:
        """The edges among the parts."""
        stack = sp.vstack([self._read.rows(*bounds) for bounds in self._bounds], format="csr")
        lows, highs = np.array(self._bounds, dtype=np.int64).T
        size = self.num_nodes
        place = np.empty(size, dtype=np.int64)
        place[self._by] = np.arange(size)
        data, columns, pointers = _among(
            stack.indptr.astype(np.int64), stack.indices, stack.data, self._by, place, lows, highs
        )
        matrix = compact_csr(data, columns, pointers, size)
        matrix.sort_indices()
        return matrix

    def _operator(self, kind: OperatorKind) -> SparseOperator:
        weights = np.concatenate([self._read.in_weights[low:high] for low, high in self._bounds])[self._by]
        return make_operator(
            kind, self.adjacency, directed=self.directed, device=self.device, in_weights=weights
        )

    @cached_property
    def features(self) -> FeatureMatrix:
        """Rows of X."""
        blocks = [self._read.features(*bounds) for bounds in self._bounds]
        if sp.issparse(blocks[0]):
            stack = sp.vstack(blocks, format="csr")[self._by]
            if self._read.sparse_features:
                return SparseOperator(stack, device=self.device)
            return torch.from_numpy(to_dense(stack)).to(self.device)
        return torch.from_numpy(np.concatenate(blocks)[self._by]).to(self.device)


@compiled()
def _among(
    indptr: Any, indices: Any, values: Any, by: Any, place: Any, lows: Any, highs: Any
) -> tuple[Any, Any, Any]:
    """CSR arrays of rows ``by`` with the columns inside of the stretches, renumbered; columns not sorted."""
    starts = np.zeros(len(lows), dtype=np.int64)  # where each stretch begins among the rows read
    for s in range(1, len(lows)):
        starts[s] = starts[s - 1] + highs[s - 1] - lows[s - 1]
    pointers = np.zeros(len(by) + 1, dtype=np.int64)
    columns = np.empty(len(indices), dtype=np.int64)
    data = np.empty(len(indices), dtype=values.dtype)
    at = 0
    for i in range(len(by)):
        for e in range(indptr[by[i]], indptr[by[i] + 1]):
            column = indices[e]
            s = np.searchsorted(lows, column, side="right") - 1
            if s >= 0 and column < highs[s]:
                columns[at] = place[starts[s] + column - lows[s]]
                data[at] = values[e]
                at += 1
        pointers[i + 1] = at
    return data[:at], columns[:at], pointers
