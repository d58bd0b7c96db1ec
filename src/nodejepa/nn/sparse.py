"""Products with a constant sparse matrix, the inner loop of everything here, and blocks of one.

PyG's ``GCNConv`` on an ``edge_index`` gathers one message per edge (``[E, D]`` in memory) and scatters them
back. A CSR product needs neither. A symmetric matrix is its own transpose, so its backward pass is the same
product again, without a transposed copy. Blocks are cut out in one compiled pass: what lets a step skip rows
that nobody reads.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from nodejepa.compiled import compiled, prefetch
from nodejepa.graph_checks import SparseMatrix, compact_csr

Rows = npt.NDArray[np.bool_] | None  # bool [N]: which ones are asked for; none: all of them
Places = npt.NDArray[np.integer[Any]]
_AHEAD, _LINE = 8, 16  # entries whose rows are asked for ahead; numbers in a line of the processor's cache
_WORK_OF_A_THREAD = 1_000_000  # multiplications; below that, starting a thread costs more than it saves


class SparseOperator:
    """A constant CSR matrix M on a device; ``operator(x)`` is ``M @ x``, differentiable in ``x``.

    Args:
        matrix: SciPy CSR ``[rows, columns]``.
        symmetric: promise that M equals its transpose, which saves the transposed copy.
        transposed: makes the transpose in a cheaper way than transposing, when it is first needed.
        device: where the products run.
    """

    def __init__(
        self,
        matrix: SparseMatrix,
        *,
        symmetric: bool = False,
        transposed: Callable[[], SparseMatrix] | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.matrix, self.symmetric, self.device = matrix, symmetric, torch.device(device)
        self._make_transposed = transposed

    @cached_property
    def tensor(self) -> Tensor:
        """The CSR tensor."""
        return _csr_tensor(self.matrix, self.device)

    @cached_property
    def transposed_matrix(self) -> SparseMatrix:
        """The transpose as SciPy CSR: M itself if it is symmetric."""
        if self.symmetric:
            return self.matrix
        if self._make_transposed is not None:
            return self._make_transposed()
        transposed = self.matrix.T.tocsr()
        transposed.sort_indices()
        return transposed

    @cached_property
    def transposed(self) -> Tensor:
        """The CSR tensor of the transpose: the same one if M is symmetric."""
        return self.tensor if self.symmetric else _csr_tensor(self.transposed_matrix, self.device)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return (int(self.matrix.shape[0]), int(self.matrix.shape[1]))

    def __call__(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """``M @ x`` for dense ``x`` of shape ``[columns, D]``; in ``out``, without gradients, if given."""
        if out is not None and x.device.type == "cpu":
            return csr_product(self.tensor, x, out)
        product: Tensor = _Product.apply(x, self)  # type: ignore[no-untyped-call]
        return product

    def cut(self, rows: Rows) -> SparseOperator:
        """The operator that computes only ``rows`` (bool ``[N]``), in order."""
        return self if rows is None else restrict(self, rows, None)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, operator: SparseOperator) -> Tensor:
        ctx.operator = operator
        return multiply(operator.tensor, x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return multiply(ctx.operator.transposed, grads[0]), None


def multiply(matrix: Tensor, x: Tensor) -> Tensor:
    """``matrix @ x`` for a CSR tensor and a dense ``x``, outside of autograd."""
    return csr_product(matrix, x) if x.device.type == "cpu" else matrix @ x


def csr_product(matrix: Tensor, x: Tensor, out: Tensor | None = None) -> Tensor:
    """``matrix @ x`` for a CSR tensor and a dense ``x`` on the CPU, outside of autograd; in ``out`` if given.

    The product is bound by reading rows of x. Adding four of them to a row of the result in one pass touches
    that row a quarter as often and lets four reads wait for memory together; the rows after them are asked
    for ahead, which takes a fifth off. Faster than ``torch.sparse.mm(..., "sum")`` with the same bits (row
    ``csr_product`` of ``make bench``). Each row is
    summed entry by entry in its own order, so that threads change no bit either.
    """
    product = torch.empty((matrix.shape[0], x.shape[1]), dtype=x.dtype) if out is None else out
    pointers = matrix.crow_indices().numpy()
    parts = (
        pointers,
        matrix.col_indices().numpy(),
        matrix.values().detach().numpy(),
        x.detach().contiguous().numpy(),
        product.numpy(),
    )
    work = int(pointers[-1]) * x.shape[1]
    threads = max(1, min(torch.get_num_threads(), work // _WORK_OF_A_THREAD))
    # rows are shared out so that each thread has as many entries
    ends = np.searchsorted(pointers, np.linspace(0, pointers[-1], threads + 1)[1:-1])
    bounds = [0, *ends.tolist(), matrix.shape[0]]
    others = [
        threading.Thread(target=_multiply_rows, args=(*parts, first, last))
        for first, last in pairwise(bounds[1:])
    ]
    for thread in others:
        thread.start()
    _multiply_rows(*parts, bounds[0], bounds[1])
    for thread in others:
        thread.join()
    return product


@compiled(fastmath={"contract"})
def _multiply_rows(
    pointers: Any, columns: Any, values: Any, x: Any, product: Any, first: int, last: int
) -> None:
    width, flat, total = x.shape[1], x.reshape(-1), pointers[-1]
    for row in range(first, last):
        out = product[row]
        out[:] = 0
        at, end = pointers[row], pointers[row + 1]
        while at + 4 <= end:
            a, b, c, d = values[at], values[at + 1], values[at + 2], values[at + 3]
            if at + _AHEAD + 4 <= total:
                for entry in range(at + _AHEAD, at + _AHEAD + 4):
                    start = np.int64(columns[entry]) * width
                    for i in range(0, width, _LINE):
                        prefetch(flat, start + i)
            xa, xb, xc, xd = x[columns[at]], x[columns[at + 1]], x[columns[at + 2]], x[columns[at + 3]]
            for i in range(width):
                out[i] = (((out[i] + a * xa[i]) + b * xb[i]) + c * xc[i]) + d * xd[i]
            at += 4
        while at < end:
            a, xa = values[at], x[columns[at]]
            for i in range(width):
                out[i] += a * xa[i]
            at += 1


def _csr_tensor(matrix: SparseMatrix, device: torch.device) -> Tensor:
    pointers, columns, values = (
        torch.from_numpy(np.array(a)).to(device) for a in (matrix.indptr, matrix.indices, matrix.data)
    )
    return csr_tensor(pointers, columns, values, matrix.shape)


def csr_tensor(pointers: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A CSR tensor that shares the memory of its parts, which are trusted."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        return torch.sparse_csr_tensor(pointers, columns, values, shape, check_invariants=False)


def density(matrix: SparseMatrix) -> float:
    """Share of stored entries."""
    rows, columns = matrix.shape
    return float(matrix.nnz / max(rows * columns, 1))


def to_dense(matrix: SparseMatrix | np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """A dense float32 copy."""
    dense = np.array(matrix) if isinstance(matrix, np.ndarray) else matrix.toarray()
    return np.ascontiguousarray(dense, dtype=np.float32)


def restrict(operator: SparseOperator, rows: Rows, columns: Rows) -> SparseOperator:
    """``M[rows][:, columns]`` with rows and columns renumbered; ``None`` keeps all of them.

    The transposed block, needed only by a backward pass, is cut from the transpose when first used.
    """

    places = [None if kept is None else np.flatnonzero(kept).astype(np.int32) for kept in (rows, columns)]

    def transposed() -> SparseMatrix:
        return cut(operator.transposed_matrix, *places[::-1])

    same = rows is columns and operator.symmetric
    return SparseOperator(
        cut(operator.matrix, *places),
        symmetric=same,
        transposed=None if same else transposed,
        device=operator.device,
    )


def block_diagonal(matrix: SparseMatrix, node_lists: list[npt.NDArray[np.int32]]) -> SparseMatrix:
    """The blocks ``M[nodes][:, nodes]`` of several ascending node lists along the diagonal of one matrix."""
    blocks = [cut(matrix, nodes, nodes) for nodes in node_lists]
    return blocks[0] if len(blocks) == 1 else sp.csr_array(sp.block_diag(blocks, format="csr"))


def cut(matrix: SparseMatrix, rows: Places | None, columns: Places | None) -> SparseMatrix:
    """``M[rows][:, columns]`` of positions, renumbered; ``None`` keeps all. Entries stay in their order."""
    height, width = matrix.shape
    rows = np.arange(height, dtype=np.int32) if rows is None else rows
    rank = np.full(width, -1, dtype=np.int32)
    columns = np.arange(width, dtype=np.int32) if columns is None else columns
    rank[columns] = np.arange(len(columns), dtype=np.int32)
    data, indices, indptr = _cut(matrix.indptr, matrix.indices, matrix.data, rows, rank)
    return compact_csr(data, indices, indptr, len(rows), len(columns))


@compiled()
def _cut(indptr: Any, indices: Any, values: Any, rows: Any, rank: Any) -> Any:
    """CSR arrays of the kept rows and of the columns whose rank is not negative."""
    pointers = np.zeros(len(rows) + 1, dtype=indptr.dtype)
    for i in range(len(rows)):
        count = 0
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            if rank[indices[e]] >= 0:
                count += 1
        pointers[i + 1] = pointers[i] + count
    columns = np.empty(pointers[-1], dtype=indices.dtype)
    data = np.empty(pointers[-1], dtype=values.dtype)
    at = 0
    for i in range(len(rows)):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            column = rank[indices[e]]
            if column >= 0:
                columns[at] = column
                data[at] = values[e]
                at += 1
    return data, columns, pointers
