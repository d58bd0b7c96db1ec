"""The graph without its directions: what clustering, spectral coordinates and METIS look at."""

from __future__ import annotations

from nodejepa.graph import Graph
from nodejepa.graph_checks import SparseMatrix, compact_csr


def undirected_adjacency(graph: Graph) -> SparseMatrix:
    """The adjacency itself, or max(A, A^T) for a directed graph; CSR ``[N, N]`` with sorted rows."""
    if not graph.directed:
        return graph.adjacency
    both = graph.adjacency.maximum(graph.adjacency.T).tocsr()
    both.sort_indices()
    return compact_csr(both.data, both.indices, both.indptr, graph.num_nodes)
