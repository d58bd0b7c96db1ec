"""Parts of a graph on disk, which are contiguous rows of a copy that is ordered by part."""

from functools import cached_property
from typing import final

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from nodejepa.graph_checks import SparseMatrix
from nodejepa.nn.inputs import GraphInputs, NodeList
from nodejepa.nn.sparse import FeatureMatrix, OperatorKind, SparseOperator, cut, make_operator, to_dense
from nodejepa.tables.ordered import OrderedStore


@final
class StoredPart(GraphInputs):
    """Some parts joined: the subgraph they induce together, in the order of its nodes.

    As :class:`~nodejepa.nn.inputs.Part`, operators keep the normalisation of the whole graph although
    neighbours are missing.
    """

    def __init__(self, of: OrderedStore, parts: list[int], device: torch.device) -> None:
        self._read, self._bounds = of, [(int(of.starts[p]), int(of.starts[p + 1])) for p in parts]
        rows = np.concatenate([of.nodes(*bounds) for bounds in self._bounds])
        self._by = np.argsort(rows, kind="stable")
        self._nodes = rows[self._by]  # ascending
        super().__init__(device, len(rows), of.num_features, of.directed)

    @property
    def nodes(self) -> NodeList:
        """Those of the parts, ascending."""
        return self._nodes

    def take(self, per_node: Tensor) -> Tensor:
        """A copy of the rows, which may come from a memory that holds more than the device does."""
        return per_node.index_select(0, torch.from_numpy(self.nodes).to(per_node.device)).to(self.device)

    @cached_property
    def adjacency(self) -> SparseMatrix:
        """The edges among the parts."""
        stack = sp.vstack([self._read.rows(*bounds) for bounds in self._bounds], format="csr")
        places = np.concatenate([np.arange(*bounds) for bounds in self._bounds])[self._by]
        matrix = cut(stack, self._by, places)
        matrix.sort_indices()
        return matrix

    def _operator(self, kind: OperatorKind) -> SparseOperator:
        weights = np.concatenate([self._read.in_weights[low:high] for low, high in self._bounds])[self._by]
        return make_operator(
            kind, self.adjacency, directed=self.directed, device=self.device, in_weights=weights
        )

    @cached_property
    def features(self) -> FeatureMatrix:
        """Rows of X."""
        blocks = [self._read.features(*bounds) for bounds in self._bounds]
        if not sp.issparse(blocks[0]):
            return torch.from_numpy(np.concatenate(blocks)[self._by]).to(self.device)
        stack = sp.vstack(blocks, format="csr")[self._by]
        if self._read.sparse_features:
            return SparseOperator(stack, device=self.device)
        return torch.from_numpy(to_dense(stack)).to(self.device)
