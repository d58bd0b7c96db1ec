"""Some nodes of a graph, with the edges among them."""

from __future__ import annotations

from functools import cached_property
from typing import final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nodejepa.graph_checks import SparseMatrix
from nodejepa.nn.inputs.base import GraphInputs, NodeList
from nodejepa.nn.inputs.features import FeatureMatrix, propagate, take_rows, transform
from nodejepa.nn.restrict import block_diagonal, diagonal_blocks
from nodejepa.nn.sparse import SparseOperator


@final
class Part(GraphInputs):
    """The subgraphs induced by node lists, side by side: rows are the lists, one after another.

    Entries of the operators are those of the graph they are cut from, so that S keeps its normalisation
    although neighbours are missing.

    Args:
        of: the whole graph, or a part or a view, which may be cut again.
        node_lists: ascending rows of ``of``; lists may overlap, no edge joins two of them.
    """

    def __init__(self, of: GraphInputs, node_lists: list[NodeList]) -> None:
        self._of, self._lists, self._rows = of, node_lists, np.concatenate(node_lists)
        super().__init__(of.device, len(self._rows), of.num_features, of.directed, of.is_row_normalised)

    @cached_property
    def nodes(self) -> NodeList:
        """The lists, as positions in the whole graph."""
        return self._of.nodes[self._rows]

    @cached_property
    def _positions(self) -> Tensor:
        return torch.from_numpy(self.nodes).to(self.device)

    def take(self, per_node: Tensor) -> Tensor:
        """A copy of the rows."""
        return per_node.index_select(0, self._positions)

    def find(self, nodes: NodeList) -> NodeList:
        """Every row that is one of the nodes."""
        return np.flatnonzero(np.isin(self.nodes, nodes)).astype(np.int32)

    @cached_property
    def adjacency(self) -> SparseMatrix:
        """The edges inside of the lists."""
        return block_diagonal(self._of.adjacency, self._lists)

    @cached_property
    def propagation(self) -> SparseOperator:
        """Blocks of S."""
        return diagonal_blocks(self._of.propagation, self._lists)

    @cached_property
    def neighbour_sum(self) -> SparseOperator:
        """The sum over neighbours that are here."""
        return diagonal_blocks(self._of.neighbour_sum, self._lists)

    @cached_property
    def neighbour_mean(self) -> SparseOperator:
        """The sum over neighbours that are here, divided by what the mean over all of them would be."""
        return diagonal_blocks(self._of.neighbour_mean, self._lists)

    @cached_property
    def features(self) -> FeatureMatrix:
        """Rows of X."""
        return take_rows(self._of.features, self._rows)

    @cached_property
    def propagated_features(self) -> Tensor:
        """``S X`` with the blocks."""
        return propagate(self.propagation, self.features)

    def shown(self, weight: Tensor) -> Tensor:
        """What is hidden there is hidden here."""
        return self._of.shown(weight)

    def transform_features(self, weight: Tensor, rows: npt.NDArray[np.bool_] | None = None) -> Tensor:
        """``X @ weight``."""
        return transform(self.features, weight, rows)
