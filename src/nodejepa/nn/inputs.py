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
from nodejepa.graph_checks import SparseMatrix
from nodejepa.nn.restrict import diagonal_blocks, restrict
from nodejepa.nn.sparse import SparseOperator, density, to_dense
from nodejepa.nn.views import View, drop_entries, normalised_operator, row_normalise

# Above this share of non-zeros a dense product is faster than a sparse one: Photo's features (0.35) are
# better off dense, those of CS and Physics (below 0.01) sparse.
_DENSE_ABOVE = 0.15


class GraphInputs:
    """A graph's tensors on one device.

    Args:
        graph: must have at least one feature column.
        device: where they live.
        part_of: for :meth:`induced`: the whole, and the node lists that were cut out of it.
        view_of: for :meth:`view`: what is viewed, and how the view differs.
    """

    def __init__(
        self,
        graph: Graph,
        device: torch.device | str = "cpu",
        *,
        part_of: tuple[GraphInputs, list[npt.NDArray[np.int32]]] | None = None,
        view_of: tuple[GraphInputs, View] | None = None,
    ) -> None:
        if graph.num_features == 0:
            raise GraphError(
                "the graph has no node features",
                where="features",
                fix="Add some; structural ones: graph.with_features(nodejepa.descriptors(graph)).",
            )
        self.graph, self.device, self._part_of = graph, torch.device(device), part_of
        self._view_of = view_of

    def induced(self, node_lists: list[npt.NDArray[np.int32]]) -> GraphInputs:
        """The subgraphs induced by ascending node lists, side by side: rows are the lists, one after another.

        Entries of the operators are those of the whole graph, so S keeps its global normalisation.
        """
        return GraphInputs(self.graph, self.device, part_of=(self, node_lists))

    def view(
        self, *, adjacency: SparseMatrix | None = None, keep_columns: npt.NDArray[np.bool_] | None = None
    ) -> GraphInputs:
        """The same nodes with other edges or with some feature columns hidden; features are never copied.

        Args:
            adjacency: CSR like the graph's own, S is normalised anew by its degrees.
            keep_columns: bool ``[F]``: the others are 0, as rows of the first weight,
                ``(X diag(m)) W = X (diag(m) W)``.
        """
        columns = None
        if keep_columns is not None:
            columns = torch.from_numpy(keep_columns).to(self.device, torch.float32)
        return GraphInputs(self.graph, self.device, view_of=(self, View(adjacency, columns)))

    def shuffled(self, order: Tensor) -> tuple[GraphInputs, GraphInputs]:
        """This graph, and the same where node i carries the features of node ``order[i]``.

        The two share each product ``X W``, since ``X[order] W = (X W)[order]``. They are for one step: the
        products are kept for as long as the two live.
        """
        products: dict[Tensor, Tensor] = {}
        plain, other = View(products=products), View(order=order.to(self.device), products=products)
        return (
            GraphInputs(self.graph, self.device, view_of=(self, plain)),
            GraphInputs(self.graph, self.device, view_of=(self, other)),
        )

    def with_dropout(self, share: float) -> GraphInputs:
        """The same with single entries of X dropped (and the others scaled up) by torch's generator."""
        shown = View(features=drop_entries(self.features, share))
        return GraphInputs(self.graph, self.device, view_of=(self, shown))

    @cached_property
    def row_normalised(self) -> GraphInputs:
        """The same with every row of X divided by its sum of absolute values; once is enough."""
        if self._is_row_normalised:
            return self
        return GraphInputs(self.graph, self.device, view_of=(self, View(row_normalised=True)))

    @property
    def _is_row_normalised(self) -> bool:
        if self._view_of is not None and self._view_of[1].row_normalised:
            return True
        before = self._part_of or self._view_of
        return before is not None and before[0]._is_row_normalised

    @property
    def adjacency(self) -> SparseMatrix:
        """A ``[N, N]`` of the graph or of the view (the whole graph's for :meth:`induced` parts)."""
        if self._view_of is not None:
            viewed, view = self._view_of
            return viewed.adjacency if view.adjacency is None else view.adjacency
        return self.graph.adjacency

    @property
    def _same_edges_as(self) -> GraphInputs | None:
        """What is viewed, if the view has no edges of its own."""
        if self._view_of is not None and self._view_of[1].adjacency is None:
            return self._view_of[0]
        return None

    @cached_property
    def propagation(self) -> SparseOperator:
        """S, the symmetrically normalised adjacency with self-loops."""
        if self._same_edges_as is not None:
            return self._same_edges_as.propagation
        if self._view_of is not None:
            return normalised_operator(self.adjacency, directed=self.graph.directed, device=self.device)
        if self._part_of is not None:
            return diagonal_blocks(self._part_of[0].propagation, self._part_of[1])
        matrix = self.graph.normalized_adjacency
        return SparseOperator(matrix, symmetric=not self.graph.directed, device=self.device)

    @cached_property
    def neighbour_sum(self) -> SparseOperator:
        """The in-neighbour sum, edge weights included, no self-loops (GIN)."""
        if self._same_edges_as is not None:
            return self._same_edges_as.neighbour_sum
        if self._part_of is not None:
            return diagonal_blocks(self._part_of[0].neighbour_sum, self._part_of[1])
        matrix = self.adjacency if not self.graph.directed else self.adjacency.T.tocsr()
        return SparseOperator(matrix, symmetric=not self.graph.directed, device=self.device)

    @cached_property
    def neighbour_mean(self) -> SparseOperator:
        """The in-neighbour mean, edge weights included; zero for nodes without neighbours (GraphSAGE)."""
        if self._same_edges_as is not None:
            return self._same_edges_as.neighbour_mean
        if self._part_of is not None:
            return diagonal_blocks(self._part_of[0].neighbour_mean, self._part_of[1])
        matrix = self.adjacency.T.tocsr().astype(np.float32)
        matrix.sort_indices()
        total = np.asarray(matrix.sum(axis=1)).ravel()
        matrix.data /= np.repeat(np.where(total > 0, total, 1), np.diff(matrix.indptr))
        return SparseOperator(matrix, device=self.device)

    @cached_property
    def features(self) -> Tensor | SparseOperator:
        """X ``[N, F]``: sparse where a sparse product is the faster one. Hidden columns are still in it."""
        if self._view_of is not None:
            viewed, view = self._view_of
            if view.features is not None:
                return view.features
            if view.row_normalised:
                return row_normalise(viewed.features)
            if view.order is None:
                return viewed.features
            if isinstance(viewed.features, SparseOperator):
                return SparseOperator(viewed.features.matrix[view.order.cpu().numpy()], device=self.device)
            return viewed.features[view.order]
        if self._part_of is not None:
            whole, nodes = self._part_of[0].features, np.concatenate(self._part_of[1])
            if isinstance(whole, SparseOperator):
                return SparseOperator(whole.matrix[nodes], device=self.device)
            return whole[torch.from_numpy(nodes).to(self.device)]
        x = self.graph.features
        if sp.issparse(x) and density(x) <= _DENSE_ABOVE:
            return SparseOperator(x, device=self.device)
        return torch.from_numpy(to_dense(x)).to(self.device)

    def shown(self, weight: Tensor) -> Tensor:
        """``diag(m) W`` for a first weight W ``[F, D]``: W itself where no columns are hidden."""
        if self._part_of is not None:
            return self._part_of[0].shown(weight)
        if self._view_of is None:
            return weight
        viewed, view = self._view_of
        return viewed.shown(weight if view.columns is None else weight * view.columns[:, None])

    def transform_features(self, weight: Tensor, rows: npt.NDArray[np.bool_] | None = None) -> Tensor:
        """``X @ weight`` for weight ``[F, D]``; of some ``rows`` (bool ``[N]``) only, if given."""
        if self._view_of is not None and not self._view_of[1].has_own_features:
            return self._transform_viewed(*self._view_of, weight, rows)
        if isinstance(self.features, SparseOperator):
            return (self.features if rows is None else restrict(self.features, rows, None))(weight)
        return (self.features if rows is None else self.features[torch.from_numpy(rows)]) @ weight

    @staticmethod
    def _transform_viewed(
        viewed: GraphInputs, view: View, weight: Tensor, rows: npt.NDArray[np.bool_] | None
    ) -> Tensor:
        if view.products is None:
            return viewed.transform_features(weight, rows)
        if weight not in view.products:
            view.products[weight] = viewed.transform_features(weight)
        product = view.products[weight]
        product = product if view.order is None else product.index_select(0, view.order)
        return product if rows is None else product[torch.from_numpy(rows)]

    @cached_property
    def propagated_features(self) -> Tensor:
        """``S X`` ``[N, F]`` of dense features: constant, so no step pays for it again."""
        if self._same_edges_as is not None and self.features is self._same_edges_as.features:
            return self._same_edges_as.propagated_features
        if isinstance(self.features, SparseOperator):
            raise TypeError("S X of sparse features would fill up; transform first")
        with torch.no_grad():
            return self.propagation(self.features)

    def propagates_first(self, width: int) -> bool:
        """Whether ``(S X) W`` is cheaper than ``S (X W)``: dense features no wider than the layer."""
        return self.graph.num_features <= width and not isinstance(self.features, SparseOperator)
