"""Operators of an adjacency: what a layer multiplies with."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from nodejepa.compiled import compiled
from nodejepa.graph_checks import SparseMatrix, compact_csr
from nodejepa.nn.sparse import SparseOperator

OperatorKind = Literal["propagation", "neighbour_sum", "neighbour_mean"]


def make_operator(
    kind: OperatorKind,
    adjacency: SparseMatrix,
    *,
    directed: bool,
    device: torch.device | str = "cpu",
    in_weights: npt.NDArray[np.float64] | None = None,
) -> SparseOperator:
    r"""The operator of an adjacency without self-loops: S, or the sum or mean over in-neighbours, weighted.

    .. math:: S = D^{-1/2} (A + I)^\top D^{-1/2}, \quad D = \mathrm{diag}(1 + \text{weighted in-degree})

    as :attr:`nodejepa.graph.Graph.normalized_adjacency`, but in one compiled pass, since a step that drops
    edges needs a new one for every view. Of a part of a graph, ``in_weights`` ``[N]`` are the in-degrees in
    the whole of it.
    """
    if kind == "propagation":
        incoming = adjacency
        if directed:
            incoming = adjacency.T.tocsr()
            incoming.sort_indices()
        scale = _scale(incoming.indptr, incoming.data) if in_weights is None else 1 / np.sqrt(1 + in_weights)
        data, indices, indptr = scaled_rows(incoming.indptr, incoming.indices, incoming.data, scale, 0)
        matrix = compact_csr(data, indices, indptr, incoming.shape[0])
        return SparseOperator(matrix, symmetric=not directed, device=device)
    if kind == "neighbour_sum":
        matrix = adjacency.T.tocsr() if directed else adjacency
        return SparseOperator(matrix, symmetric=not directed, device=device)
    matrix = adjacency.T.tocsr().astype(np.float32)
    matrix.sort_indices()
    if in_weights is None:
        in_weights = matrix.sum(axis=1)
    total = np.asarray(in_weights, dtype=np.float32).ravel()  # 0 without neighbours, and so is their mean
    matrix.data /= np.repeat(np.where(total > 0, total, 1), np.diff(matrix.indptr))
    return SparseOperator(matrix, device=device)


@compiled()
def _scale(indptr: Any, weights: Any) -> Any:
    """One over the square root of every row's sum and 1, which is the self-loop's weight."""
    size = len(indptr) - 1
    scale = np.empty(size, dtype=np.float64)
    for i in range(size):
        total = 1.0
        for e in range(indptr[i], indptr[i + 1]):
            total += weights[e]
        scale[i] = 1 / np.sqrt(total)
    return scale


@compiled()
def scaled_rows(indptr: Any, indices: Any, weights: Any, scale: Any, low: int) -> Any:
    """CSR arrays of rows of S, the first of which is node ``low``'s, from those of the in-edges."""
    size = len(indptr) - 1
    pointers = np.zeros(size + 1, dtype=indptr.dtype)
    columns = np.empty(len(indices) + size, dtype=indices.dtype)
    data = np.empty(len(indices) + size, dtype=np.float32)
    at = 0
    for row in range(size):
        e, end, i = indptr[row], indptr[row + 1], low + row
        while e < end and indices[e] < i:
            columns[at], data[at] = indices[e], weights[e] * scale[i] * scale[indices[e]]
            at, e = at + 1, e + 1
        columns[at], data[at] = i, scale[i] * scale[i]
        at += 1
        while e < end:
            columns[at], data[at] = indices[e], weights[e] * scale[i] * scale[indices[e]]
            at, e = at + 1, e + 1
        pointers[row + 1] = at
    return data, columns, pointers
