"""Some nodes of a graph, with the edges among them."""

from functools import cached_property
from typing import final

import numpy as np
import torch
from torch import Tensor

from nodejepa.graph_checks import SparseMatrix
from nodejepa.nn.inputs.base import GraphInputs, NodeList
from nodejepa.nn.inputs.features import FeatureMatrix, take_rows, transform
from nodejepa.nn.inputs.operators import OperatorKind
from nodejepa.nn.restrict import Rows, block_diagonal, diagonal_blocks
from nodejepa.nn.sparse import SparseOperator


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

    def transform_features(self, weight: Tensor, rows: Rows = None) -> Tensor:
        """``X @ weight``."""
        return transform(self.features, weight, rows)
