"""A graph seen differently: other edges, hidden feature columns, features of other nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from nodejepa.compiled import compiled
from nodejepa.graph_checks import SparseMatrix, compact_csr
from nodejepa.nn.sparse import SparseOperator


@dataclass(frozen=True, eq=False)
class View:
    """What differs from the inputs that are viewed; see :meth:`nodejepa.nn.inputs.GraphInputs.view`."""

    adjacency: SparseMatrix | None = None
    columns: Tensor | None = None  # [F], 1 for shown and 0 for hidden
    order: Tensor | None = None  # [N], row i shows the features of node order[i]
    row_normalised: bool = False
    features: Tensor | SparseOperator | None = None  # [N, F], shown instead
    products: dict[Tensor, Tensor] | None = None  # X W by W, of views that share it

    @property
    def has_own_features(self) -> bool:
        """Whether X is another one than that of what is viewed."""
        return self.row_normalised or self.features is not None


def normalised_operator(
    adjacency: SparseMatrix, *, directed: bool, device: torch.device | str = "cpu"
) -> SparseOperator:
    r"""S of an adjacency without self-loops, as :attr:`nodejepa.graph.Graph.normalized_adjacency`.

    .. math:: S = D^{-1/2} (A + I)^\top D^{-1/2}, \quad D = \mathrm{diag}(1 + \text{weighted in-degree})

    in one compiled pass, since a step that drops edges needs a new one for every view.
    """
    incoming = adjacency
    if directed:
        incoming = adjacency.T.tocsr()
        incoming.sort_indices()
    data, indices, indptr = _normalise(incoming.indptr, incoming.indices, incoming.data)
    matrix = compact_csr(data, indices, indptr, incoming.shape[0])
    return SparseOperator(matrix, symmetric=not directed, device=device)


def drop_entries(features: Tensor | SparseOperator, share: float) -> Tensor | SparseOperator:
    """Dropout of single entries by torch's global generator; sparse ones stay sparse."""
    if isinstance(features, Tensor):
        return torch.nn.functional.dropout(features, share)
    matrix = features.matrix
    data = torch.nn.functional.dropout(torch.tensor(matrix.data), share).numpy()  # a graph's is read-only
    # a copy: removing zeros moves the indices in place
    dropped = sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape, copy=True)
    dropped.eliminate_zeros()
    return SparseOperator(dropped, device=features.device)


def row_normalise(features: Tensor | SparseOperator) -> Tensor | SparseOperator:
    """Rows divided by the sum of their absolute values; rows of zeros stay, sparse ones stay sparse."""
    if isinstance(features, Tensor):
        return torch.nn.functional.normalize(features, p=1, dim=1)
    matrix = features.matrix
    total = np.asarray(abs(matrix).sum(axis=1)).ravel()
    scale = 1 / np.where(total > 0, total, 1)
    data = (matrix.data * np.repeat(scale, np.diff(matrix.indptr))).astype(np.float32)
    scaled = sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
    return SparseOperator(scaled, device=features.device)


@compiled()
def _normalise(indptr: Any, indices: Any, weights: Any) -> Any:
    """CSR arrays of S from those of the in-edges, columns ascending; self-loops go to their place."""
    size = len(indptr) - 1
    scale = np.empty(size, dtype=np.float64)
    for i in range(size):
        total = 1.0
        for e in range(indptr[i], indptr[i + 1]):
            total += weights[e]
        scale[i] = 1 / np.sqrt(total)
    pointers = np.zeros(size + 1, dtype=indptr.dtype)
    columns = np.empty(len(indices) + size, dtype=indices.dtype)
    data = np.empty(len(indices) + size, dtype=np.float32)
    at = 0
    for i in range(size):
        e, end = indptr[i], indptr[i + 1]
        while e < end and indices[e] < i:
            columns[at], data[at] = indices[e], weights[e] * scale[i] * scale[indices[e]]
            at, e = at + 1, e + 1
        columns[at], data[at] = i, scale[i] * scale[i]
        at += 1
        while e < end:
            columns[at], data[at] = indices[e], weights[e] * scale[i] * scale[indices[e]]
            at, e = at + 1, e + 1
        pointers[i + 1] = at
    return data, columns, pointers
