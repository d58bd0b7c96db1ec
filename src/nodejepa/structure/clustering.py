"""Local clustering coefficients by compiled triangle counting."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nodejepa.compiled import compiled
from nodejepa.graph import RowGraph
from nodejepa.progress import progress_bar
from nodejepa.structure.undirected import neighbours

IntArray = npt.NDArray[np.integer]


def local_clustering(graph: RowGraph) -> npt.NDArray[np.float64]:
    r"""The share of a node's pairs of neighbours that are themselves joined, ``[N]`` in [0, 1].

    .. math:: c_i = \frac{2 t_i}{d_i (d_i - 1)}, \quad t_i = \text{triangles through } i

    (Watts & Strogatz 1998), weights and directions ignored; 0 for nodes with fewer than two neighbours.
    """
    edges = neighbours(graph)
    forward = graph.scratch(edges.indices.size // 2, np.int32)
    with progress_bar("Clustering coefficients"):
        triangles = _count_triangles(edges.indptr, edges.indices, forward)
    degrees = np.diff(edges.indptr).astype(np.float64)
    pairs = degrees * (degrees - 1) / 2
    coefficient = np.zeros(graph.num_nodes)
    np.divide(triangles, pairs, out=coefficient, where=pairs > 0)
    return coefficient


@compiled()
def _count_triangles(indptr: IntArray, indices: IntArray, forward: IntArray) -> npt.NDArray[np.int64]:
    """Triangles through each node, every one found once; ``forward`` is room for half of the edges.

    Edges point from the smaller to the larger (degree, position), so a node has at most sqrt(2E) outgoing
    ones, hubs included, and the whole count costs O(E^1.5) at worst.
    """
    size = indptr.size - 1
    start = np.zeros(size + 1, dtype=np.int64)
    filled = 0
    for i in range(size):
        degree = indptr[i + 1] - indptr[i]
        for edge in range(indptr[i], indptr[i + 1]):
            j = indices[edge]
            other = indptr[j + 1] - indptr[j]
            if degree < other or (degree == other and i < j):
                forward[filled] = j
                filled += 1
        start[i + 1] = filled

    triangles = np.zeros(size, dtype=np.int64)
    reached_from = np.full(size, -1, dtype=np.int32)
    for i in range(size):
        for edge in range(start[i], start[i + 1]):
            reached_from[forward[edge]] = i
        for edge in range(start[i], start[i + 1]):
            j = forward[edge]
            for onward in range(start[j], start[j + 1]):
                k = forward[onward]
                if reached_from[k] == i:
                    triangles[i] += 1
                    triangles[j] += 1
                    triangles[k] += 1
    return triangles
