"""A graph in memory as a network reads it: the whole of it, some of its nodes, or seen differently."""

from collections.abc import Callable
from functools import cached_property
from typing import final

import numpy as np
import torch
from torch import Tensor

from nodejepa.errors import GraphError
from nodejepa.graph import Graph
from nodejepa.graph_checks import SparseMatrix
from nodejepa.nn.inputs.base import GraphInputs, NodeList
from nodejepa.nn.inputs.features import FeatureMatrix, feature_matrix, take_rows, transform
from nodejepa.nn.inputs.operators import OperatorKind, make_operator
from nodejepa.nn.restrict import Rows, block_diagonal, diagonal_blocks
from nodejepa.nn.sparse import SparseOperator


@final
class WholeGraph(GraphInputs):
    """A graph's tensors on one device; whatever does not change during training is made once."""

    def __init__(self, graph: Graph, device: torch.device | str = "cpu") -> None:
        if graph.num_features == 0:
            raise GraphError(
                "the graph has no node features",
                where="features",
                fix="Add some; structural ones: graph.with_features(nodejepa.descriptors(graph)).",
            )
        super().__init__(torch.device(device), graph.num_nodes, graph.num_features, graph.directed)
        self.graph = graph

    @property
    def adjacency(self) -> SparseMatrix:
        """That of the graph."""
        return self.graph.adjacency

    def _operator(self, kind: OperatorKind) -> SparseOperator:
        if kind != "propagation":
            return make_operator(kind, self.adjacency, directed=self.directed, device=self.device)
        matrix = self.graph.normalized_adjacency
        return SparseOperator(matrix, symmetric=not self.directed, device=self.device)

    @cached_property
    def features(self) -> FeatureMatrix:
        """X of the graph."""
        return feature_matrix(self.graph.features, self.device)


@final
class Part(GraphInputs):
    """The subgraphs induced by node lists, side by side: rows are the lists, one after another.

    Entries of the operators are those of the graph they are cut from, so that S keeps its normalisation,
    and a mean the weights of its sum, although neighbours are missing.

    Args:
        of: the whole graph, or a part or a view, which may be cut again.
        node_lists: ascending rows of ``of``; lists may overlap, no edge joins two of them.
    """

    def __init__(self, of: GraphInputs, node_lists: list[NodeList]) -> None:
        self._cut_from, self._lists, self._rows = of, node_lists, np.concatenate(node_lists)
        super().__init__(of.device, len(self._rows), of.num_features, of.directed, of.is_row_normalised)

    @cached_property
    def nodes(self) -> NodeList:
        """The lists, as positions in the whole graph."""
        return self._cut_from.nodes[self._rows]

    @cached_property
    def _positions(self) -> Tensor:
        return torch.from_numpy(self.nodes).to(self.device)

    def take(self, per_node: Tensor) -> Tensor:
        """A copy of the rows."""
        return per_node.index_select(0, self._positions)

    @cached_property
    def adjacency(self) -> SparseMatrix:
        """The edges inside of the lists."""
        return block_diagonal(self._cut_from.adjacency, self._lists)

    def _operator(self, kind: OperatorKind) -> SparseOperator:
        return diagonal_blocks(getattr(self._cut_from, kind), self._lists)

    @cached_property
    def features(self) -> FeatureMatrix:
        """Rows of X."""
        return take_rows(self._cut_from.features, self._rows)

    def shown(self, weight: Tensor) -> Tensor:
        """What is hidden there is hidden here."""
        return self._cut_from.shown(weight)


@final
class View(GraphInputs):
    """The same nodes as those of ``of``; what is not given is as it is there.

    Args:
        of: what is viewed.
        adjacency: its edges instead; operators are made anew, S with its own degrees.
        columns: ``[F]``, 1 for shown and 0 for hidden.
        order: ``[N]``, row i shows the features of node ``order[i]``.
        features: makes an X ``[N, F]`` that is shown instead.
        products: X W by W, shared with other views.
        is_row_normalised: of ``features``.
    """

    def __init__(
        self,
        of: GraphInputs,
        *,
        adjacency: SparseMatrix | None = None,
        columns: Tensor | None = None,
        order: Tensor | None = None,
        features: Callable[[], FeatureMatrix] | None = None,
        products: dict[Tensor, Tensor] | None = None,
        is_row_normalised: bool = False,
    ) -> None:
        normalised = is_row_normalised or of.is_row_normalised
        super().__init__(of.device, of.num_nodes, of.num_features, of.directed, normalised, of)
        self._seen, self._adjacency, self._columns = of, adjacency, columns
        self._order, self._make_features, self._products = order, features, products

    @property
    def nodes(self) -> NodeList:
        """The same."""
        return self._seen.nodes

    def take(self, per_node: Tensor) -> Tensor:
        """The same."""
        return self._seen.take(per_node)

    @property
    def adjacency(self) -> SparseMatrix:
        """The edges that are seen."""
        return self._seen.adjacency if self._adjacency is None else self._adjacency

    def _operator(self, kind: OperatorKind) -> SparseOperator:
        if self._adjacency is None:
            operator: SparseOperator = getattr(self._seen, kind)
            return operator
        return make_operator(kind, self._adjacency, directed=self.directed, device=self.device)

    @cached_property
    def features(self) -> FeatureMatrix:
        """X as it is seen, hidden columns included."""
        if self._make_features is not None:
            return self._make_features()
        if self._order is None:
            return self._seen.features
        return take_rows(self._seen.features, self._order.cpu().numpy())

    def shown(self, weight: Tensor) -> Tensor:
        """``diag(m) W``."""
        return self._seen.shown(weight if self._columns is None else weight * self._columns[:, None])

    def transform_features(self, weight: Tensor, rows: Rows = None) -> Tensor:
        """``X @ weight``, once for all views that share their products."""
        if self._make_features is not None:
            return transform(self.features, weight, rows)
        if self._products is None:
            return self._seen.transform_features(weight, rows)
        if weight not in self._products:
            self._products[weight] = self._seen.transform_features(weight)
        product = self._products[weight]
        product = product if self._order is None else product.index_select(0, self._order)
        return product if rows is None else product[torch.from_numpy(rows)]
