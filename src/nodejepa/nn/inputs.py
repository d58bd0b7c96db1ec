"""What a network reads of a graph in memory: the whole of it, parts of it, views of either; one type."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nodejepa.errors import ConfigError, GraphError
from nodejepa.graph import Graph, RowGraph
from nodejepa.graph_checks import Features, SparseMatrix
from nodejepa.nn.sparse import (
    FeatureMatrix,
    OperatorKind,
    Rows,
    SparseOperator,
    block_diagonal,
    drop_entries,
    feature_matrix,
    make_operator,
    row_normalise,
    take_rows,
    transform,
)
from nodejepa.nn.workspace import Workspace

NodeList = npt.NDArray[np.int32]


def pick_device(name: str) -> torch.device:
    """``auto``, ``cpu`` or ``cuda`` as a device."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name not in ("cpu", "cuda"):
        raise ConfigError(f"device {name!r} is unknown", fix="Use auto, cpu or cuda.")
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("there is no CUDA device on this machine", fix="Use device cpu or auto.")
    return torch.device(name)


class GraphInputs(ABC):
    """N nodes, which may be some of a larger graph's, with everything a step reads of them.

    Args:
        device: where the tensors live.
        num_nodes: N.
        num_features: F.
        directed: whether the adjacency may differ from its transpose.
        is_row_normalised: whether the rows of X were divided by their sums.
        of: what is viewed, with which S X is shared where it is the same.
        workspace: where arrays with one row per node are made; in memory if not given.
    """

    def __init__(
        self,
        device: torch.device,
        num_nodes: int,
        num_features: int,
        directed: bool,
        is_row_normalised: bool = False,
        of: GraphInputs | None = None,
        workspace: Workspace | None = None,
    ) -> None:
        self.device, self.num_nodes, self.num_features = device, num_nodes, num_features
        self.directed, self.is_row_normalised, self._of = directed, is_row_normalised, of
        self.workspace = Workspace(num_nodes) if workspace is None else workspace
        # nodes (bool ``[N]``) that show a token (``[F]``) instead of their features, and that token
        self.mask: tuple[Tensor, Tensor] | None = None if of is None else of.mask

    @property
    @abstractmethod
    def nodes(self) -> NodeList:
        """Positions ``[N]`` of the nodes in the whole graph."""

    @abstractmethod
    def take(self, per_node: Tensor) -> Tensor:
        """The rows for these nodes of a constant that has one row for each node of the whole graph."""

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

    @property
    def sparse_features(self) -> bool:
        """Whether X is read as a sparse matrix."""
        return isinstance(self.features, SparseOperator)

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

    def propagates_first(self, width: int) -> bool:
        """Whether ``(S X) W`` is cheaper than ``S (X W)``: dense features no wider than the layer."""
        return self.num_features <= width and not self.sparse_features

    def induced(self, node_lists: list[NodeList]) -> Part:
        """The subgraphs induced by ascending lists of rows, side by side: see :class:`Part`."""
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

        columns = None
        if keep_columns is not None:
            columns = torch.from_numpy(keep_columns).to(self.device, torch.float32)
        return View(self, adjacency=adjacency, columns=columns)

    def masked(self, hidden: Tensor, token: Tensor) -> View:
        """The same where nodes in ``hidden`` (bool ``[N]``) show ``token`` (``[F]``), not their features."""
        view = View(self)
        view.mask = hidden, token
        return view

    def shuffled(self, order: Tensor) -> tuple[View, View]:
        """These nodes, and the same where node i carries the features of node ``order[i]``.

        The two share each product ``X W``, since ``X[order] W = (X W)[order]``. They are for one step: the
        products are kept for as long as the two live.
        """

        products: dict[Tensor, Tensor] = {}
        return View(self, products=products), View(self, order=order.to(self.device), products=products)

    def with_dropout(self, share: float) -> View:
        """The same with single entries of X dropped (and the others scaled up) by torch's generator."""

        dropped = drop_entries(self.features, share)
        return View(self, features=lambda: dropped)

    @cached_property
    def row_normalised(self) -> GraphInputs:
        """The same with every row of X divided by its sum of absolute values; once is enough."""

        if self.is_row_normalised:
            return self
        return View(self, features=lambda: row_normalise(self.features), is_row_normalised=True)


class RowInputs(GraphInputs, ABC):
    """All nodes of a graph, which are read by blocks of rows; a graph in memory is one block."""

    def __init__(
        self,
        graph: RowGraph,
        device: torch.device,
        workspace: Workspace | None = None,
        is_row_normalised: bool = False,
    ) -> None:
        if graph.num_features == 0:
            raise GraphError(
                "the graph has no node features",
                where="features",
                fix="Add some; structural ones: graph.with_features(nodejepa.descriptors(graph)).",
            )
        sizes = graph.num_nodes, graph.num_features, graph.directed
        super().__init__(device, *sizes, is_row_normalised, workspace=workspace)
        self.graph = graph

    @cached_property
    def nodes(self) -> NodeList:
        """All of them."""
        return np.arange(self.num_nodes, dtype=np.int32)

    def take(self, per_node: Tensor) -> Tensor:
        """All rows."""
        return per_node

    @abstractmethod
    def feature_rows(self, low: int, high: int) -> FeatureMatrix:
        """Rows ``low`` to ``high - 1`` of X."""

    @abstractmethod
    def given_features(self) -> Any:
        """X as the graph has it: an array, a SciPy matrix, or what is read by rows as these are."""

    @abstractmethod
    def operator_rows(self, kind: OperatorKind, low: int, high: int) -> SparseOperator:
        """Rows ``low`` to ``high - 1`` of an operator."""

    @abstractmethod
    def hop_rows(self, low: int, high: int) -> SparseMatrix:
        """The same of S as SciPy has them, for who reads all of them many times."""

    @abstractmethod
    def transposed_mean_rows(self, low: int, high: int) -> Tensor:
        """Rows of the transposed neighbour mean, as a CSR tensor."""


@final
class WholeGraph(RowInputs):
    """A graph in memory on one device; whatever does not change during training is made once."""

    graph: Graph

    def __init__(self, graph: Graph, device: torch.device | str = "cpu") -> None:
        super().__init__(graph, torch.device(device))

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

    # one block, which is all rows

    def feature_rows(self, low: int, high: int) -> FeatureMatrix:  # noqa: ARG002
        """X."""
        return self.features

    def given_features(self) -> Features:
        """X."""
        return self.graph.features

    def operator_rows(self, kind: OperatorKind, low: int, high: int) -> SparseOperator:  # noqa: ARG002
        """The operator."""
        operator: SparseOperator = getattr(self, kind)
        return operator

    def hop_rows(self, low: int, high: int) -> SparseMatrix:  # noqa: ARG002
        """S."""
        return self.propagation.matrix

    def transposed_mean_rows(self, low: int, high: int) -> Tensor:  # noqa: ARG002
        """All of them."""
        return self.neighbour_mean.transposed


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
        assert of.mask is None, "what is hidden is hidden of a part, not cut with it"
        self._cut_from, self._lists, self._rows = of, node_lists, np.concatenate(node_lists)
        super().__init__(of.device, len(self._rows), of.num_features, of.directed, of.is_row_normalised)

    @cached_property
    def nodes(self) -> NodeList:
        """The lists, as positions in the whole graph."""
        return self._cut_from.nodes[self._rows]

    def take(self, per_node: Tensor) -> Tensor:
        """A copy of the rows."""
        return per_node.index_select(0, torch.from_numpy(self.nodes).to(per_node.device))

    @cached_property
    def adjacency(self) -> SparseMatrix:
        """The edges inside of the lists."""
        return block_diagonal(self._cut_from.adjacency, self._lists)

    def _operator(self, kind: OperatorKind) -> SparseOperator:
        whole: SparseOperator = getattr(self._cut_from, kind)
        blocks = block_diagonal(whole.matrix, self._lists)
        return SparseOperator(blocks, symmetric=whole.symmetric, device=self.device)

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
