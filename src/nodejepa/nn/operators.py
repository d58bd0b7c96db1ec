"""What a layer multiplies with: operators of an adjacency, and node features, dense or sparse."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from nodejepa.graph_checks import Features, SparseMatrix, multiplied_sparse
from nodejepa.nn.sparse import Rows, SparseOperator, to_dense
from nodejepa.propagation import propagation_rows

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
    incoming = adjacency
    if directed:
        incoming = adjacency.T.tocsr()
        incoming.sort_indices()
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
