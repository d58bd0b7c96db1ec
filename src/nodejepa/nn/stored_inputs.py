"""A graph on disk as a network reads it: operators by blocks of rows, tall arrays where there is room."""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Any, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nodejepa.errors import GraphError
from nodejepa.graph import loop_scale
from nodejepa.graph_checks import SparseMatrix, compact_csr
from nodejepa.memory import Room
from nodejepa.nn.inputs import GraphInputs
from nodejepa.nn.operators import FeatureMatrix, OperatorKind, row_normalise, scaled_rows, transform
from nodejepa.nn.sparse import Rows, SparseOperator, csr_tensor, multiply, to_dense
from nodejepa.tables.store import DENSE, StoredGraph

# A private map that may be written to counts as memory in full, and one larger than the machine is refused,
# although nobody writes; unless the system is told not to set memory aside (Python names it from 3.13 on).
_NOT_SET_ASIDE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


def mapped(file: IO[bytes], dtype: torch.dtype) -> Tensor:
    """All of a file that is not empty. Torch wants memory it could write to; the file stays as it is."""
    held = mmap.mmap(
        file.fileno(), 0, flags=mmap.MAP_PRIVATE | _NOT_SET_ASIDE, prot=mmap.PROT_READ | mmap.PROT_WRITE
    )
    return torch.frombuffer(held, dtype=dtype)


def put_on_disk(arrays: Iterable[npt.NDArray[Any]], dtype: torch.dtype, folder: Path | None) -> Tensor:
    """Arrays one after the other, in a file without a name that is gone with the tensor or the process."""
    # written, not mapped: a full disk is an error then, and not the end of the process
    with tempfile.TemporaryFile(dir=folder) as file:
        for array in arrays:
            file.write(array.data)
        file.flush()
        size = os.fstat(file.fileno()).st_size
        return mapped(file, dtype) if size else torch.empty(0, dtype=dtype)


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


_MEMORY = 4_000_000_000  # bytes of arrays, unless told otherwise or less is free
_ARRAYS = 5  # that are as long as the graph and in memory at a time, unless told otherwise
_REGISTER = 16  # columns: a row of so many is one line of the processor's cache


@final
class StoredInputs(GraphInputs):
    """Rows of a stored graph on the CPU. What has a row for every node is in memory if it is small against
    ``memory``, else in a file that is mapped and gone with this object.

    Args:
        graph: must have features; its checksums are compared if nobody did.
        scratch: folder for such files; the system's own if not given.
        memory: bytes that arrays may take in all, about; 4 GB, or half of what is free, if not given.
        features: X ``[N, F]`` that is read instead of the graph's.
        row_normalised: rows of sparse features are divided by their sums when they are read.
    """

    on_disk = True

    def __init__(
        self,
        graph: StoredGraph,
        scratch: Path | None = None,
        memory: int | None = None,
        features: Tensor | None = None,
        row_normalised: bool = False,
    ) -> None:
        if graph.num_features == 0:
            raise GraphError("the graph has no node features", where="features", fix="Prepare it with some.")
        graph.trust()
        super().__init__(
            torch.device("cpu"), graph.num_nodes, graph.num_features, graph.directed, row_normalised
        )
        self.graph, self.scratch, self._features = graph, scratch, features
        self.memory = array_bytes(Room.of()) if memory is None else memory
        self._products: dict[Tensor, Tensor] = {}
        self._held = _ARRAYS

    @property
    def adjacency(self) -> SparseMatrix:
        """Nobody may ask for all of it."""
        raise TypeError("a stored graph is read by rows")

    @cached_property
    def features(self) -> FeatureMatrix:
        """X, mapped from a file; what is read as a sparse matrix is so by :meth:`feature_rows` only."""
        if self.graph.sparse_features:
            return _ByRows()
        if self._features is not None:
            return self._features
        if self.graph.manifest.feature_entries is not None:  # too full for products with sparse rows
            return self.tall(self.num_features, self._dense_rows)
        with (self.graph.folder / DENSE).open("rb") as file:
            return mapped(file, torch.float32).view(-1, self.num_features)

    def _dense_rows(self, low: int, high: int) -> Tensor:
        return torch.from_numpy(to_dense(self.graph.feature_rows(low, high)))

    def feature_rows(self, low: int, high: int) -> FeatureMatrix:
        """Rows ``low`` to ``high - 1`` of X."""
        if isinstance(self.features, Tensor):
            return self.features[low:high]
        rows = SparseOperator(self.graph.feature_rows(low, high))
        return row_normalise(rows) if self.is_row_normalised else rows

    def feature_blocks(self) -> Iterator[FeatureMatrix]:
        """One for each span of the graph."""
        return (self.feature_rows(low, high) for low, high in self.graph.spans())

    def transform_features(self, weight: Tensor, rows: Rows = None) -> Tensor:
        """``X @ weight``; of all rows it is made once for each weight of a layer, which works by blocks."""
        if rows is not None and isinstance(self.features, Tensor):
            return self.features[torch.from_numpy(rows)] @ weight
        if rows is not None:
            return self.transform_features(weight)[torch.from_numpy(rows)]
        if weight in self._products:
            return self._products[weight]
        product = self.tall(
            weight.shape[1], lambda low, high: transform(self.feature_rows(low, high), weight, None)
        )
        if isinstance(weight, torch.nn.Parameter):
            self._products[weight] = product
        return product

    @cached_property
    def row_normalised(self) -> GraphInputs:
        """The same with every row of X divided by its sum of absolute values."""
        if not isinstance(self.features, Tensor):
            return StoredInputs(self.graph, self.scratch, self.memory, row_normalised=True)

        def block(low: int, high: int) -> Tensor:
            part = row_normalise(self.feature_rows(low, high))
            assert isinstance(part, Tensor)
            return part

        return StoredInputs(self.graph, self.scratch, self.memory, self.tall(self.num_features, block))

    def forget(self) -> None:
        """Let go of products that were kept for blocks to come."""
        self._products.clear()

    # ---------------------------------------------------------------- rows of operators

    @cached_property
    def scale(self) -> npt.NDArray[np.float64]:
        """``1 / sqrt(1 + in-degree)`` of every node."""
        parts = [loop_scale(self.graph.in_rows(*span), span[0]) for span in self.graph.spans()]
        return np.concatenate(parts)

    @cached_property
    def in_degrees(self) -> npt.NDArray[np.float32]:
        """Weighted in-degree; 1 for a node without in-neighbours, of whom there is no mean."""
        sums = [np.asarray(self.graph.in_rows(*span).sum(axis=1)).ravel() for span in self.graph.spans()]
        total = np.concatenate(sums).astype(np.float32)
        return np.where(total > 0, total, np.float32(1))

    def operator_rows(self, kind: OperatorKind, low: int, high: int) -> SparseOperator:
        """Rows ``low`` to ``high - 1`` of an operator, with the bits of the whole one."""
        rows = self.graph.in_rows(low, high)
        if kind == "propagation":
            data, indices, indptr = scaled_rows(rows.indptr, rows.indices, rows.data, self.scale, low)
            rows = compact_csr(data, indices, indptr, high - low, self.num_nodes)
        elif kind == "neighbour_mean":
            rows.data = rows.data / np.repeat(self.in_degrees[low:high], np.diff(rows.indptr))
        return SparseOperator(rows)

    def turned_mean_rows(self, low: int, high: int) -> SparseOperator:
        """Rows of the transposed neighbour mean."""
        rows = self.graph.rows(low, high)
        rows.data = rows.data / self.in_degrees[rows.indices]
        return SparseOperator(rows)

    def _operator(self, kind: OperatorKind) -> SparseOperator:
        return StoredOperator(self, kind)

    # ---------------------------------------------------------------- tall arrays

    @contextmanager
    def holding(self, arrays: int) -> Iterator[None]:
        """Meanwhile no more than so many arrays are in memory at a time: the fewer, the wider each may be."""
        before, self._held = self._held, arrays
        try:
            yield
        finally:
            self._held = before

    def column_groups(self, width: int) -> Iterator[slice]:
        """Columns that are worked on together, so that a few arrays of them and all rows are in memory."""
        most = max(1, self.memory // (self._held * 4 * self.num_nodes))
        most = most - most % _REGISTER if most > _REGISTER else most
        size = -(-width // -(-width // most))  # as even as can be: no last group of a few columns
        size = min(size + -size % _REGISTER, most)
        return (slice(at, min(at + size, width)) for at in range(0, width, size))

    def tall(self, width: int, block: Callable[[int, int], Tensor]) -> Tensor:
        """The array ``[N, width]`` whose rows ``low`` to ``high - 1`` are ``block(low, high)``."""
        if 4 * self.num_nodes * width <= self.memory // self._held:
            # NumPy asks for large pages, PyTorch does not: products read rows from all over the array
            array = torch.from_numpy(np.empty((self.num_nodes, width), dtype=np.float32))
            for low, high in self.graph.spans():
                array[low:high] = block(low, high)
            return array
        return self._on_disk(width, block)

    def put_away(self, array: Tensor, of: int) -> Tensor:
        """Columns of an array that will have ``of``: they stay in memory only if all of them can."""
        if 4 * self.num_nodes * of <= self.memory // _ARRAYS:
            return array
        return self._on_disk(array.shape[1], lambda low, high: array[low:high])

    def _on_disk(self, width: int, block: Callable[[int, int], Tensor]) -> Tensor:
        blocks = (block(low, high).numpy() for low, high in self.graph.spans())
        arrays = (np.ascontiguousarray(rows, dtype=np.float32) for rows in blocks)
        return put_on_disk(arrays, torch.float32, self.scratch).view(-1, width)


def array_bytes(room: Room) -> int:
    """What arrays may take in all: half of what a person allowed, or of what is free, then 4 GB at most."""
    return room.free // 2 if room.given else min(_MEMORY, room.free // 2)


class _ByRows(SparseOperator):
    """Stands for a sparse X, of which nobody may ask for all."""

    def __init__(self) -> None:
        self.device = torch.device("cpu")
