"""A graph on disk as a network reads it: all of it by blocks of rows, or parts of it in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from nodejepa.graph import degree_scale, propagation_rows
from nodejepa.graph_checks import Features, SparseMatrix, compact_csr
from nodejepa.nn.inputs import GraphInputs, NodeList, RowInputs
from nodejepa.nn.sparse import (
    FeatureMatrix,
    OperatorKind,
    Rows,
    SparseOperator,
    csr_product,
    csr_tensor,
    cut,
    make_operator,
    mean_rows,
    row_normalise,
    to_dense,
    transform,
)
from nodejepa.nn.workspace import Workspace, mapped
from nodejepa.tables.ordered import OrderedStore
from nodejepa.tables.store import DENSE, StoredGraph

Span = tuple[int, int]


@final
class StoredInputs(RowInputs):
    """Rows of a stored graph on the CPU.

    Args:
        graph: must have features; its checksums are compared if nobody did.
        scratch: folder for arrays that are larger than ``memory``.
        memory: bytes that arrays may take in all, about.
        features: X ``[N, F]`` that is read instead of the graph's.
        row_normalised: rows of sparse features are divided by their sums when they are read.
    """

    graph: StoredGraph

    def __init__(
        self,
        graph: StoredGraph,
        scratch: Path | None = None,
        memory: int | None = None,
        features: Tensor | None = None,
        row_normalised: bool = False,
    ) -> None:
        space = Workspace(graph.num_nodes, lambda: graph.spans(), scratch, memory)
        super().__init__(graph, torch.device("cpu"), space, row_normalised)
        graph.trust()
        self._scratch, self._features = scratch, features

    @property
    def adjacency(self) -> SparseMatrix:
        """Nobody may ask for all of it."""
        raise TypeError("a stored graph is read by rows")

    @property
    def sparse_features(self) -> bool:
        """As the graph says."""
        return self.graph.sparse_features

    @cached_property
    def features(self) -> FeatureMatrix:
        """X, mapped from a file; what is read as a sparse matrix is so by :meth:`feature_rows` only."""
        if self.sparse_features:
            raise TypeError("sparse features of a stored graph are read by rows")
        if self._features is not None:
            return self._features
        if self.graph.manifest.feature_entries is not None:  # too full for products with sparse rows
            dense: Tensor = self.workspace.fill(self.num_features, self.graph.feature_rows)
            return dense
        with (self.graph.folder / DENSE).open("rb") as file:
            return mapped(file, torch.float32).view(-1, self.num_features)

    def feature_rows(self, low: int, high: int) -> FeatureMatrix:
        """Rows ``low`` to ``high - 1`` of X."""
        if not self.sparse_features:
            return self.features[low:high]  # type: ignore[index]
        rows = SparseOperator(self.graph.feature_rows(low, high))
        return row_normalise(rows) if self.is_row_normalised else rows

    def given_features(self) -> StoredFeatures:
        """X, read by rows."""
        return StoredFeatures(self.graph)

    def transform_features(self, weight: Tensor, rows: Rows = None) -> Tensor:
        """``X @ weight``; of all rows it is made once for each weight of a layer, which works by blocks."""
        if rows is not None and not self.sparse_features:
            return transform(self.features, weight, rows)
        if rows is not None:
            return self.transform_features(weight)[torch.from_numpy(rows)]
        kept: dict[Tensor, Tensor] = self.workspace.kept
        if weight in kept:
            return kept[weight]
        product: Tensor = self.workspace.fill(
            weight.shape[1], lambda low, high: transform(self.feature_rows(low, high), weight, None)
        )
        if isinstance(weight, torch.nn.Parameter):
            kept[weight] = product
        return product

    @cached_property
    def row_normalised(self) -> GraphInputs:
        """The same with every row of X divided by its sum of absolute values."""
        given = self._scratch, self.workspace.memory
        if self.sparse_features:
            return StoredInputs(self.graph, *given, row_normalised=True)
        x = self.workspace.fill(
            self.num_features, lambda low, high: row_normalise(self.feature_rows(low, high))
        )
        return StoredInputs(self.graph, *given, x)

    @cached_property
    def _scale(self) -> npt.NDArray[np.float64]:
        parts = [degree_scale(self.graph.in_rows(*span), span[0]) for span in self.graph.spans()]
        return np.concatenate(parts)

    @cached_property
    def _in_weights(self) -> npt.NDArray[np.float32]:
        sums = [np.asarray(self.graph.in_rows(*span).sum(axis=1)).ravel() for span in self.graph.spans()]
        return np.concatenate(sums).astype(np.float32)

    def hop_rows(self, low: int, high: int) -> SparseMatrix:
        """Rows of S, made once for all hops: see :class:`StoredOperator`."""
        block = StoredOperator(self, "propagation").blocks[low, high]
        values, columns, pointers = block.values(), block.col_indices(), block.crow_indices()
        return compact_csr(values.numpy(), columns.numpy(), pointers.numpy(), *block.shape)

    def operator_rows(self, kind: OperatorKind, low: int, high: int) -> SparseOperator:
        """Rows ``low`` to ``high - 1`` of an operator, with the bits of the whole one."""
        rows = self.graph.in_rows(low, high)
        if kind == "propagation":
            rows = propagation_rows(rows, self._scale, low)
        elif kind == "neighbour_mean":
            rows = mean_rows(rows, self._in_weights[low:high])
        return SparseOperator(rows)

    def transposed_mean_rows(self, low: int, high: int) -> Tensor:
        """Rows of the transposed neighbour mean."""
        rows = self.graph.rows(low, high)
        total = self._in_weights[rows.indices]
        rows.data = rows.data / np.where(total > 0, total, np.float32(1))
        return SparseOperator(rows).tensor

    def _operator(self, kind: OperatorKind) -> SparseOperator:
        return StoredOperator(self, kind)


class StoredOperator(SparseOperator):
    """An operator whose rows are made when they are needed; only what an encoder asks of one.

    Every hop of propagation, and of every group of columns, is a product with all of it. To make the rows
    again each time takes as long as the product; so they lie in a file that is mapped and gone with this.
    """

    def __init__(self, inputs: StoredInputs, kind: OperatorKind) -> None:
        self.inputs, self.kind, self.device = inputs, kind, inputs.device

    def __call__(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """``M @ x``, in memory (in ``out`` if given) or on disk."""
        blocks = self.blocks
        return self.inputs.workspace.fill_in_place(
            x.shape[1], lambda low, high, rows: csr_product(blocks[low, high], x, rows), out
        )

    def cut(self, rows: Rows) -> SparseOperator:
        """The operator that computes only these rows, which follow one another."""
        if rows is None:
            return self
        low = int(np.argmax(rows))
        return self.inputs.operator_rows(self.kind, low, low + int(np.count_nonzero(rows)))

    @property
    def blocks(self) -> dict[Span, Tensor]:
        """CSR tensors of the spans that this process makes, which are written once."""
        kept: dict[OperatorKind, dict[Span, Tensor]] = self.inputs.workspace.kept
        if self.kind not in kept:
            kept[self.kind] = self._write()
        return kept[self.kind]

    def _write(self) -> dict[Span, Tensor]:
        """CSR tensors of the spans that this process makes; columns and values are mapped from a file."""
        inputs = self.inputs
        pointers: dict[Span, Tensor] = {}

        def arrays() -> Iterator[npt.NDArray[Any]]:
            for low, high in inputs.workspace.own_spans():
                rows = inputs.operator_rows(self.kind, low, high).tensor
                pointers[low, high] = rows.crow_indices()
                yield rows.col_indices().numpy()
                yield rows.values().numpy()

        words = inputs.workspace.write(arrays(), torch.int32)
        blocks: dict[Span, Tensor] = {}
        at = 0
        for (low, high), ends in pointers.items():
            entries = int(ends[-1])
            columns, values = words[at : at + entries], words[at + entries : at + 2 * entries]
            at += 2 * entries
            shape = (high - low, inputs.num_nodes)
            blocks[low, high] = csr_tensor(ends, columns, values.view(torch.float32), shape)
        return blocks


@final
@dataclass(frozen=True, eq=False)
class StoredFeatures:
    """X of a graph on disk, read by rows as a NumPy array is; sparse rows stay sparse."""

    graph: StoredGraph

    @property
    def shape(self) -> tuple[int, int]:
        """Nodes and columns."""
        return self.graph.num_nodes, self.graph.num_features

    def __getitem__(self, rows: slice | npt.NDArray[np.int64]) -> Features:
        if isinstance(rows, slice):
            low, high, _ = rows.indices(self.graph.num_nodes)
            return to_dense(self.graph.feature_rows(low, high))
        bounds = ((span[0], *np.searchsorted(rows, span).tolist(), span[1]) for span in self.graph.spans())
        parts = [self.graph.feature_rows(low, high)[rows[a:b] - low] for low, a, b, high in bounds]
        return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else sp.csr_array(sp.vstack(parts))


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
