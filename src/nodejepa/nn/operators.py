"""What a layer multiplies with: operators of an adjacency, and node features, dense or sparse."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from nodejepa.compiled import compiled
from nodejepa.graph_checks import Features, SparseMatrix, compact_csr, multiplied_sparse
from nodejepa.nn.sparse import Rows, SparseOperator, restrict, to_dense

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


FeatureMatrix = Tensor | SparseOperator


def feature_matrix(x: Features, device: torch.device) -> FeatureMatrix:
    """A graph's features on a device."""
    if keeps_sparse(x):
        return SparseOperator(x, device=device)
    return torch.from_numpy(to_dense(x)).to(device)


def keeps_sparse(x: Features) -> bool:
    """Whether a sparse product with a graph's features is the faster one."""
    return not isinstance(x, np.ndarray) and multiplied_sparse(x.nnz, x.shape[0] * x.shape[1])


def take_rows(features: FeatureMatrix, rows: npt.NDArray[Any]) -> FeatureMatrix:
    """The rows at some positions, in their order."""
    if isinstance(features, SparseOperator):
        return SparseOperator(features.matrix[rows], device=features.device)
    return features[torch.from_numpy(rows).to(features.device)]


def transform(features: FeatureMatrix, weight: Tensor, rows: Rows) -> Tensor:
    """``X @ weight``, of some ``rows`` (bool ``[N]``) only, if given."""
    if isinstance(features, SparseOperator):
        return (features if rows is None else restrict(features, rows, None))(weight)
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
