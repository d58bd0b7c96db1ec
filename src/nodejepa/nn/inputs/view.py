"""A graph seen differently: other edges, hidden feature columns, features of other nodes."""

from collections.abc import Callable
from functools import cached_property
from typing import final

import torch
from torch import Tensor

from nodejepa.graph_checks import SparseMatrix
from nodejepa.nn.inputs.base import GraphInputs, NodeList
from nodejepa.nn.inputs.features import FeatureMatrix, take_rows, transform
from nodejepa.nn.inputs.operators import OperatorKind, make_operator
from nodejepa.nn.restrict import Rows
from nodejepa.nn.sparse import SparseOperator


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
