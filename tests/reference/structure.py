"""Descriptors of a graph by NetworkX."""

from __future__ import annotations

import networkx as nx
import numpy as np


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
