"""A graph as dense matrices."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch


def dense(matrix) -> np.ndarray:
    """A writable dense copy of a sparse or dense matrix."""
    return matrix.toarray() if sp.issparse(matrix) else np.array(matrix)


def features(graph) -> torch.Tensor:
    """X, dense."""
    return torch.from_numpy(dense(graph.features))


def propagation(adjacency) -> np.ndarray:
    """S = D^-1/2 (A + I)^T D^-1/2 in float64, with D from in-degrees."""
    looped = dense(adjacency).astype(np.float64).T + np.eye(adjacency.shape[0])
    scale = np.diag(looped.sum(axis=1) ** -0.5)
    return scale @ looped @ scale


def propagation_tensor(adjacency) -> torch.Tensor:
    """S in float32, to be multiplied with embeddings."""
    return torch.from_numpy(propagation(adjacency)).float()


def normalised_without_loops(adjacency) -> np.ndarray:
    """D^-1/2 A D^-1/2 in float64, of a graph without isolated nodes."""
    matrix = dense(adjacency).astype(np.float64)
    scale = 1 / np.sqrt(matrix.sum(axis=1))
    return scale[:, None] * matrix * scale[None, :]


def edge_index(adjacency) -> torch.Tensor:
    """PyG's form of the edges."""
    coo = adjacency.tocoo()
    return torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64))
