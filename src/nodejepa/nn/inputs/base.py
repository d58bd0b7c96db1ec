"""The one type that encoders, masks and tasks read: nodes with their edges and features on a device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nodejepa.graph_checks import SparseMatrix
from nodejepa.nn.inputs.features import FeatureMatrix, drop_entries, row_normalise, transform
from nodejepa.nn.inputs.operators import OperatorKind
from nodejepa.nn.restrict import Rows
from nodejepa.nn.sparse import SparseOperator

if TYPE_CHECKING:
    from nodejepa.nn.inputs.in_memory import Part, View

NodeList = npt.NDArray[np.int32]


class GraphInputs(ABC):
    """N nodes, which may be some of a larger graph's, with everything a step reads of them.

    ``on_disk`` says that only some rows of a thing may be asked for at a time.

    Args:
        device: where the tensors live.
        num_nodes: N.
        num_features: F.
        directed: whether the adjacency may differ from its transpose.
        is_row_normalised: whether the rows of X were divided by their sums.
        of: what is viewed, with which S X is shared where it is the same.
    """

    on_disk = False

    def __init__(
        self,
        device: torch.device,
        num_nodes: int,
        num_features: int,
        directed: bool,
        is_row_normalised: bool = False,
        of: GraphInputs | None = None,
    ) -> None:
        self.device, self.num_nodes, self.num_features = device, num_nodes, num_features
        self.directed, self.is_row_normalised, self._of = directed, is_row_normalised, of

    @cached_property
    def nodes(self) -> NodeList:
        """Positions ``[N]`` of the nodes in the whole graph: all of them."""
        return np.arange(self.num_nodes, dtype=np.int32)

    def take(self, per_node: Tensor) -> Tensor:
        """The rows for these nodes of a constant that has one row for each node of the whole graph."""
        return per_node

    @property
    @abstractmethod
    def adjacency(self) -> SparseMatrix:
        """A ``[N, N]`` of these nodes, CSR without self-loops."""

    @cached_property
    def propagation(self) -> SparseOperator:
        """S, the symmetrically normalised adjacency with self-loops."""
        return self._operator("propagation")

    @cached_property
    def neighbour_sum(self) -> SparseOperator:
        """The in-neighbour sum, edge weights included, no self-loops (GIN)."""
        return self._operator("neighbour_sum")

    @cached_property
    def neighbour_mean(self) -> SparseOperator:
        """The in-neighbour mean, edge weights included; zero for nodes without neighbours (GraphSAGE)."""
        return self._operator("neighbour_mean")

    @abstractmethod
    def _operator(self, kind: OperatorKind) -> SparseOperator: ...

    @property
    @abstractmethod
    def features(self) -> FeatureMatrix:
        """X ``[N, F]``: sparse where a sparse product is the faster one. Hidden columns are still in it."""

    def feature_blocks(self) -> Iterator[FeatureMatrix]:
        """X in blocks of rows that may be in memory: all of it at once."""
        yield self.features

    @cached_property
    def propagated_features(self) -> Tensor:
        """``S X`` ``[N, F]`` of dense features: constant, so no step pays for it again."""
        of = self._of
        if of is not None and self.propagation is of.propagation and self.features is of.features:
            return of.propagated_features
        if isinstance(self.features, SparseOperator):
            raise TypeError("S X of sparse features would fill up; transform first")
        with torch.no_grad():
            return self.propagation(self.features)

    def shown(self, weight: Tensor) -> Tensor:
        """``diag(m) W`` for a first weight W ``[F, D]``: W itself where no columns are hidden."""
        return weight

    def transform_features(self, weight: Tensor, rows: Rows = None) -> Tensor:
        """``X @ weight`` for weight ``[F, D]``; of some ``rows`` (bool ``[N]``) only, if given."""
        return transform(self.features, weight, rows)

    def column_groups(self, width: int) -> Iterator[slice]:
        """Columns of an array ``[N, width]`` that are worked on together: all of them."""
        return iter([slice(0, width)])

    def propagates_first(self, width: int) -> bool:
        """Whether ``(S X) W`` is cheaper than ``S (X W)``: dense features no wider than the layer."""
        return self.num_features <= width and not isinstance(self.features, SparseOperator)

    def induced(self, node_lists: list[NodeList]) -> Part:
        """The subgraphs induced by ascending lists of rows, side by side: see :class:`Part`."""
        from nodejepa.nn.inputs.in_memory import Part

        return Part(self, node_lists)

    def view(
        self, *, adjacency: SparseMatrix | None = None, keep_columns: npt.NDArray[np.bool_] | None = None
    ) -> View:
        """The same nodes with other edges or with some feature columns hidden; features are never copied.

        Args:
            adjacency: CSR like the one here; S is normalised anew by its degrees.
            keep_columns: bool ``[F]``: the others are 0, as rows of the first weight,
                ``(X diag(m)) W = X (diag(m) W)``.
        """
        from nodejepa.nn.inputs.in_memory import View

        columns = None
        if keep_columns is not None:
            columns = torch.from_numpy(keep_columns).to(self.device, torch.float32)
        return View(self, adjacency=adjacency, columns=columns)

    def shuffled(self, order: Tensor) -> tuple[View, View]:
        """These nodes, and the same where node i carries the features of node ``order[i]``.

        The two share each product ``X W``, since ``X[order] W = (X W)[order]``. They are for one step: the
        products are kept for as long as the two live.
        """
        from nodejepa.nn.inputs.in_memory import View

        products: dict[Tensor, Tensor] = {}
        return View(self, products=products), View(self, order=order.to(self.device), products=products)

    def with_dropout(self, share: float) -> View:
        """The same with single entries of X dropped (and the others scaled up) by torch's generator."""
        from nodejepa.nn.inputs.in_memory import View

        dropped = drop_entries(self.features, share)
        return View(self, features=lambda: dropped)

    @cached_property
    def row_normalised(self) -> GraphInputs:
        """The same with every row of X divided by its sum of absolute values; once is enough."""
        from nodejepa.nn.inputs.in_memory import View

        if self.is_row_normalised:
            return self
        return View(self, features=lambda: row_normalise(self.features), is_row_normalised=True)
