"""The whole graph on a device."""

from functools import cached_property
from typing import final

import numpy as np
import torch
from torch import Tensor

from nodejepa.errors import GraphError
from nodejepa.graph import Graph
from nodejepa.graph_checks import SparseMatrix
from nodejepa.nn.inputs.base import GraphInputs, NodeList
from nodejepa.nn.inputs.features import FeatureMatrix, feature_matrix, transform
from nodejepa.nn.inputs.operators import OperatorKind, make_operator
from nodejepa.nn.restrict import Rows
from nodejepa.nn.sparse import SparseOperator


@final
class WholeGraph(GraphInputs):
    """A graph's tensors on one device; whatever does not change during training is made once.

    Args:
        graph: must have at least one feature column.
        device: where they live.
    """

    def __init__(self, graph: Graph, device: torch.device | str = "cpu") -> None:
        if graph.num_features == 0:
            raise GraphError(
                "the graph has no node features",
                where="features",
                fix="Add some; structural ones: graph.with_features(nodejepa.descriptors(graph)).",
            )
        super().__init__(torch.device(device), graph.num_nodes, graph.num_features, graph.directed)
        self.graph = graph

    @cached_property
    def nodes(self) -> NodeList:
        """All of them."""
        return np.arange(self.num_nodes, dtype=np.int32)

    def take(self, per_node: Tensor) -> Tensor:
        """The very tensor."""
        return per_node

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

    def shown(self, weight: Tensor) -> Tensor:
        """W itself."""
        return weight

    def transform_features(self, weight: Tensor, rows: Rows = None) -> Tensor:
        """``X @ weight``."""
        return transform(self.features, weight, rows)
