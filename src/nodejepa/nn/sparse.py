"""Products with a constant sparse matrix, the inner loop of everything here, and blocks of one.

PyG's ``GCNConv`` on an ``edge_index`` gathers one message per edge (``[E, D]`` in memory) and scatters them
back. A CSR product needs neither. A symmetric matrix is its own transpose, so its backward pass is the same
product again, without a transposed copy. Blocks are cut out, which lets a step skip rows that nobody reads.
What a layer multiplies with is made here, too: operators of an adjacency, and node features, dense or sparse.
"""

from __future__ import annotations

import threading
import warnings
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from nodejepa.compiled import compiled, prefetch
from nodejepa.graph import propagation_rows
from nodejepa.graph_checks import Features, SparseMatrix, multiplied_sparse

Rows = npt.NDArray[np.bool_] | None  # bool [N]: which ones are asked for; none: all of them
Places = npt.NDArray[np.integer[Any]]
_AHEAD, _LINE = 1024, 16  # numbers that are asked for ahead; in a line of the processor's cache
_WORK_OF_A_THREAD = 1_000_000  # multiplications; below that, starting a thread costs more than it saves


class SparseOperator:
    """A constant CSR matrix M on a device; ``operator(x)`` is ``M @ x``, differentiable in ``x``.

    Args:
        matrix: SciPy CSR ``[rows, columns]``.
        symmetric: promise that M equals its transpose, which saves the transposed copy.
        device: where the products run.
    """

    def __init__(
        self,
        matrix: SparseMatrix,
        *,
        symmetric: bool = False,
        device: torch.device | str = "cpu",
    ) -> None:
        self.matrix, self.symmetric, self.device = matrix, symmetric, torch.device(device)

    @cached_property
    def tensor(self) -> Tensor:
        """The CSR tensor."""
        return _csr_tensor(self.matrix, self.device)

    @cached_property
    def transposed(self) -> Tensor:
        """The CSR tensor of the transpose: the same one if M is symmetric."""
        return self.tensor if self.symmetric else _csr_tensor(self.matrix.T.tocsr(), self.device)

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
    ahead = min(max(8, _AHEAD // max(width, 1)), 64)  # entries
    for row in range(first, last):
        out = product[row]
        out[:] = 0
        at, end = pointers[row], pointers[row + 1]
        while at + 4 <= end:
            a, b, c, d = values[at], values[at + 1], values[at + 2], values[at + 3]
            if at + ahead + 4 <= total:
                for entry in range(at + ahead, at + ahead + 4):
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
    """``M[rows][:, columns]`` with rows and columns renumbered; ``None`` keeps all of them."""
    places = (None if kept is None else np.flatnonzero(kept).astype(np.int32) for kept in (rows, columns))
    symmetric = rows is columns and operator.symmetric
    return SparseOperator(cut(operator.matrix, *places), symmetric=symmetric, device=operator.device)


def block_diagonal(matrix: SparseMatrix, node_lists: list[npt.NDArray[np.int32]]) -> SparseMatrix:
    """The blocks ``M[nodes][:, nodes]`` of several ascending node lists along the diagonal of one matrix."""
    blocks = [cut(matrix, nodes, nodes) for nodes in node_lists]
    return blocks[0] if len(blocks) == 1 else sp.csr_array(sp.block_diag(blocks, format="csr"))


def cut(matrix: SparseMatrix, rows: Places | None, columns: Places | None) -> SparseMatrix:
    """``M[rows][:, columns]`` of positions, renumbered; ``None`` keeps all. Entries stay in their order."""
    matrix = matrix if rows is None else matrix[rows]
    return matrix if columns is None else matrix[:, columns]


# ------------------------------------------------------------------ of an adjacency, and of features

OperatorKind = Literal["propagation", "neighbour_sum", "neighbour_mean"]
FeatureMatrix = Tensor | SparseOperator


def make_operator(
    kind: OperatorKind,
    adjacency: SparseMatrix,
    *,
    directed: bool,
    device: torch.device | str = "cpu",
    in_weights: npt.NDArray[np.float64] | None = None,
) -> SparseOperator:
    """The operator of an adjacency without self-loops: S, or the sum or mean over in-neighbours, weighted.

    Of a part of a graph, ``in_weights`` ``[N]`` are the in-degrees in the whole of it.
    """
    incoming = adjacency.T.tocsr() if directed else adjacency
    if kind == "propagation":
        scale = None if in_weights is None else 1 / np.sqrt(1 + in_weights)
        return SparseOperator(propagation_rows(incoming, scale), symmetric=not directed, device=device)
    if kind == "neighbour_sum":
        return SparseOperator(incoming, symmetric=not directed, device=device)
    total = incoming.sum(axis=1) if in_weights is None else in_weights
    return SparseOperator(mean_rows(incoming, total), device=device)


def mean_rows(in_rows: SparseMatrix, total: npt.NDArray[Any]) -> SparseMatrix:
    """Rows of in-edges, each divided by its sum; nodes without neighbours have none, and their mean is 0."""
    total = np.asarray(total, dtype=np.float32).ravel()
    data = in_rows.data / np.repeat(np.where(total > 0, total, np.float32(1)), np.diff(in_rows.indptr))
    return sp.csr_array((data, in_rows.indices, in_rows.indptr), shape=in_rows.shape)


def feature_matrix(x: Features, device: torch.device) -> FeatureMatrix:
    """A graph's features on a device."""
    if not isinstance(x, np.ndarray) and multiplied_sparse(x.nnz, x.shape[0] * x.shape[1]):
        return SparseOperator(x, device=device)  # whose product is the faster one
    return torch.from_numpy(to_dense(x)).to(device)


def take_rows(features: FeatureMatrix, rows: npt.NDArray[Any]) -> FeatureMatrix:
    """The rows at some positions, in their order."""
    if isinstance(features, SparseOperator):
        return SparseOperator(features.matrix[rows], device=features.device)
    return features[torch.from_numpy(rows).to(features.device)]


def transform(features: FeatureMatrix, weight: Tensor, rows: Rows) -> Tensor:
    """``X @ weight``, of some ``rows`` (bool ``[N]``) only, if given."""
    if isinstance(features, SparseOperator):
        return features.cut(rows)(weight)
    return (features if rows is None else features[torch.from_numpy(rows)]) @ weight


def drop_entries(features: FeatureMatrix, share: float) -> FeatureMatrix:
    """Dropout of single entries by torch's global generator; sparse ones stay sparse."""
    if isinstance(features, Tensor):
        return torch.nn.functional.dropout(features, share)
    matrix = features.matrix
    data = torch.nn.functional.dropout(torch.tensor(matrix.data), share).numpy()  # a graph's is read-only
    # a copy: removing zeros moves the indices in place
    dropped = sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape, copy=True)
    dropped.eliminate_zeros()
    return SparseOperator(dropped, device=features.device)


def row_normalise(features: FeatureMatrix) -> FeatureMatrix:
    """Rows divided by the sum of their absolute values; rows of zeros stay, sparse ones stay sparse."""
    if isinstance(features, Tensor):
        return torch.nn.functional.normalize(features, p=1, dim=1)
    matrix = features.matrix
    total = np.asarray(abs(matrix).sum(axis=1)).ravel()
    scale = 1 / np.where(total > 0, total, 1)
    data = (matrix.data * np.repeat(scale, np.diff(matrix.indptr))).astype(np.float32)
    scaled = sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
    return SparseOperator(scaled, device=features.device)
