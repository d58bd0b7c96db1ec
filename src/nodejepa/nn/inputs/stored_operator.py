"""Operators of a graph on disk: their rows are made once, kept in a file, and multiplied with many times."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nodejepa.nn.inputs.mapped import put_on_disk
from nodejepa.nn.inputs.operators import OperatorKind
from nodejepa.nn.sparse import SparseOperator, csr_tensor, multiply

if TYPE_CHECKING:
    from nodejepa.nn.inputs.stored import StoredInputs

Span = tuple[int, int]


class StoredOperator(SparseOperator):
    """An operator whose rows are made when they are needed; only what an encoder asks of one.

    Every hop of a walk, and of every group of columns, is a product with all of it. To make the rows again
    each time takes as long as the product; so they lie in a file that is mapped and gone with this object.
    """

    def __init__(self, inputs: StoredInputs, kind: OperatorKind) -> None:
        self.inputs, self.kind, self.device = inputs, kind, inputs.device

    def __call__(self, x: Tensor) -> Tensor:
        """``M @ x``, in memory or on disk."""
        blocks = self._blocks
        return self.inputs.tall(x.shape[1], lambda low, high: multiply(blocks[low, high], x))

    def cut(self, rows: npt.NDArray[np.bool_]) -> SparseOperator:
        """The operator that computes only these rows, which follow one another."""
        low = int(np.argmax(rows))
        return self.inputs.operator_rows(self.kind, low, low + int(np.count_nonzero(rows)))

    @cached_property
    def _blocks(self) -> dict[Span, Tensor]:
        """CSR tensors of the graph's spans; their columns and values are mapped from a file."""
        inputs = self.inputs
        pointers: dict[Span, Tensor] = {}

        def arrays() -> Iterator[npt.NDArray[Any]]:
            for low, high in inputs.graph.spans():
                rows = inputs.operator_rows(self.kind, low, high).tensor
                pointers[low, high] = rows.crow_indices()
                yield rows.col_indices().numpy()
                yield rows.values().numpy()

        words = put_on_disk(arrays(), torch.int32, inputs.scratch)
        blocks: dict[Span, Tensor] = {}
        at = 0
        for (low, high), ends in pointers.items():
            entries = int(ends[-1])
            columns, values = words[at : at + entries], words[at + entries : at + 2 * entries]
            at += 2 * entries
            shape = (high - low, inputs.num_nodes)
            blocks[low, high] = csr_tensor(ends, columns, values.view(torch.float32), shape)
        return blocks
