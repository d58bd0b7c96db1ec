"""The whole graph on a device."""

from __future__ import annotations

from functools import cached_property
from typing import final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nodejepa.errors import GraphError
from nodejepa.graph import Graph
from nodejepa.graph_checks import SparseMatrix
from nodejepa.nn.inputs.base import GraphInputs, NodeList
from nodejepa.nn.inputs.features import FeatureMatrix, feature_matrix, propagate, transform
from nodejepa.nn.inputs.operators import mean_operator, sum_operator
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

    def find(self, nodes: NodeList) -> NodeList:
        """They are where they are."""
        return nodes

    @property
    def adjacency(self) -> SparseMatrix:
        """That of the graph."""
        return self.graph.adjacency

    @cached_property
    def propagation(self) -> SparseOperator:
        """S of the graph."""
        matrix = self.graph.normalized_adjacency
        return SparseOperator(matrix, symmetric=not self.directed, device=self.device)

    @cached_property
    def neighbour_sum(self) -> SparseOperator:
        """The in-neighbour sum."""
        return sum_operator(self.adjacency, directed=self.directed, device=self.device)

    @cached_property
    def neighbour_mean(self) -> SparseOperator:
        """The in-neighbour mean."""
        return mean_operator(self.adjacency, device=self.device)

    @cached_property
    def features(self) -> FeatureMatrix:
        """X of the graph."""
        return feature_matrix(self.graph.features, self.device)

    @cached_property
    def propagated_features(self) -> Tensor:
        """``S X``."""
        return propagate(self.propagation, self.features)

    def shown(self, weight: Tensor) -> Tensor:
        """W itself."""
        return weight

    def transform_features(self, weight: Tensor, rows: npt.NDArray[np.bool_] | None = None) -> Tensor:
        """``X @ weight``."""
        return transform(self.features, weight, rows)
