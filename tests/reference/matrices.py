"""A graph as dense matrices."""

from __future__ import annotations

import networkx as nx
import numpy as np
import scipy.sparse as sp
import torch

from nodejepa.graph import Graph


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


# ---------------------------------------------------------------- structure


def pagerank(graph, damping: float = 0.85) -> np.ndarray:
    kind = nx.DiGraph if graph.directed else nx.Graph
    twin = nx.from_scipy_sparse_array(graph.adjacency, create_using=kind)
    ranks = nx.pagerank(twin, alpha=damping, tol=1e-13, max_iter=1000)
    return np.array([ranks[i] for i in range(graph.num_nodes)])


def clustering(graph) -> np.ndarray:
    twin = nx.Graph()
    twin.add_nodes_from(range(graph.num_nodes))
    twin.add_edges_from(zip(*(ends.tolist() for ends in graph.edge_arrays()[:2]), strict=True))
    coefficients = nx.clustering(twin)
    return np.array([coefficients[i] for i in range(graph.num_nodes)])


# ---------------------------------------------------------------- samples


COLUMNS = {"narrow": 6, "wide": 30, "sparse": 60}  # fewer and more than an encoder's width; sparse


def graph_with(layout="wide", *, directed=False, weighted=True):
    """40 nodes, the last five without any edge, one without features."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, COLUMNS[layout])).astype(np.float32)
    x[7] = 0
    return Graph.from_edges(
        *rng.integers(0, 35, (2, 90)),
        features=sp.csr_array(x * (rng.random(x.shape) < 0.1)) if layout == "sparse" else x,
        num_nodes=40,
        weights=rng.random(90) + 0.1 if weighted else None,
        direction="keep" if directed else "symmetrize",
    )
