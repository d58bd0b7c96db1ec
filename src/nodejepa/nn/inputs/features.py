"""Node features as a network reads them: dense, or sparse where a sparse product is the faster one."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from nodejepa.graph_checks import Features
from nodejepa.graph_features import multiplied_sparse
from nodejepa.nn.restrict import Rows, restrict
from nodejepa.nn.sparse import SparseOperator, to_dense

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
