"""What a network reads of a graph, on a device: the propagation operators and the features.

Everything that does not change during training is computed here once: the CSR tensors, and the first
propagation ``S X`` of the unmasked features where that is the cheaper order of products.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from nodejepa.errors import GraphError
from nodejepa.graph import Graph
from nodejepa.nn.restrict import diagonal_blocks, restrict
from nodejepa.nn.sparse import SparseOperator, density, to_dense

# Above this share of non-zeros a dense product is faster than a sparse one (measured: 0.35-dense Photo
# features 22 ms against 49 ms, 0.04-dense ones the other way round).
_DENSE_ABOVE = 0.15


class GraphInputs:
    """A graph's tensors on one device.

    Args:
        graph: must have at least one feature column.
        device: where they live.
        part_of: for :meth:`induced`: the whole, and the node lists that were cut out of it.
    """

    def __init__(
        self,
        graph: Graph,
        device: torch.device | str = "cpu",
        *,
        part_of: tuple[GraphInputs, list[npt.NDArray[np.int32]]] | None = None,
    ) -> None:
        if graph.num_features == 0:
            raise GraphError(
                "the graph has no node features",
                where="features",
                fix="Add some; structural ones: graph.with_features(nodejepa.structure.descriptors(graph)).",
            )
        self.graph, self.device, self._part_of = graph, torch.device(device), part_of

    def induced(self, node_lists: list[npt.NDArray[np.int32]]) -> GraphInputs:
        """The subgraphs induced by ascending node lists, side by side: rows are the lists, one after another.

        Entries of the operators are those of the whole graph, so S keeps its global normalisation.
        """
        return GraphInputs(self.graph, self.device, part_of=(self, node_lists))

    @cached_property
    def propagation(self) -> SparseOperator:
        """S, the symmetrically normalised adjacency with self-loops."""
        if self._part_of is not None:
            return diagonal_blocks(self._part_of[0].propagation, self._part_of[1])
        matrix = self.graph.normalized_adjacency
        return SparseOperator(matrix, symmetric=not self.graph.directed, device=self.device)

    @cached_property
    def neighbour_sum(self) -> SparseOperator:
        """The in-neighbour sum, edge weights included, no self-loops (GIN)."""
        if self._part_of is not None:
            return diagonal_blocks(self._part_of[0].neighbour_sum, self._part_of[1])
        matrix = self.graph.adjacency if not self.graph.directed else self.graph.adjacency.T.tocsr()
        return SparseOperator(matrix, symmetric=not self.graph.directed, device=self.device)

    @cached_property
    def neighbour_mean(self) -> SparseOperator:
        """The in-neighbour mean, edge weights included; zero for nodes without neighbours (GraphSAGE)."""
        if self._part_of is not None:
            return diagonal_blocks(self._part_of[0].neighbour_mean, self._part_of[1])
        matrix = self.graph.adjacency.T.tocsr().astype(np.float32)
        matrix.sort_indices()
        total = np.asarray(matrix.sum(axis=1)).ravel()
        matrix.data /= np.repeat(np.where(total > 0, total, 1), np.diff(matrix.indptr))
        return SparseOperator(matrix, device=self.device)

    @cached_property
    def features(self) -> Tensor | SparseOperator:
        """X ``[N, F]``: sparse where a sparse product is the faster one."""
        if self._part_of is not None:
            whole, nodes = self._part_of[0].features, np.concatenate(self._part_of[1])
            if isinstance(whole, SparseOperator):
                return SparseOperator(whole.matrix[nodes], device=self.device)
            return whole[torch.from_numpy(nodes).to(self.device)]
        x = self.graph.features
        if sp.issparse(x) and density(x) <= _DENSE_ABOVE:
            return SparseOperator(x, device=self.device)
        return torch.from_numpy(to_dense(x)).to(self.device)

    def transform_features(self, weight: Tensor, rows: npt.NDArray[np.bool_] | None = None) -> Tensor:
        """``X @ weight`` for weight ``[F, D]``; of some ``rows`` (bool ``[N]``) only, if given."""
        if isinstance(self.features, SparseOperator):
            return (self.features if rows is None else restrict(self.features, rows, None))(weight)
        return (self.features if rows is None else self.features[torch.from_numpy(rows)]) @ weight

    @cached_property
    def propagated_features(self) -> Tensor:
        """``S X`` ``[N, F]`` of dense features: constant, so no step pays for it again."""
        if isinstance(self.features, SparseOperator):
            raise TypeError("S X of sparse features would fill up; transform first")
        with torch.no_grad():
            return self.propagation(self.features)

    def propagates_first(self, width: int) -> bool:
        """Whether ``(S X) W`` is cheaper than ``S (X W)``: dense features no wider than the layer."""
        return not isinstance(self.features, SparseOperator) and self.graph.num_features <= width
