"""Where a node sits in the graph, one row per node: PageRank, degree, clustering and spectral coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from nodejepa.compiled import compiled
from nodejepa.errors import ConfigError, did_you_mean
from nodejepa.graph import Graph, RowGraph
from nodejepa.graph_checks import FloatArray, SparseMatrix
from nodejepa.machine import Room, progress_bar
from nodejepa.structure.base import cached, neighbours
from nodejepa.structure.laplacian import (
    EXACT_UP_TO,
    adjacency_coordinates,
    signed_log,
    spectral_coordinates,
)

_SPECTRAL_BYTES, _EDGE_BYTES = 800, 40  # a node: vectors that the eigensolver holds; an edge
ADJACENCY_BYTES = 13_000  # likewise, of 128 coordinates where eigenvalues are repeated; 6,500 elsewhere
_PAGERANK_CHANGE = 1e-8
IntArray = npt.NDArray[np.integer]
DESCRIPTORS = ("pagerank", "degree", "clustering", "spectral")


def descriptors(
    graph: RowGraph,
    names: Sequence[str] = DESCRIPTORS,
    spectral_dim: int = 8,
    *,
    cache: bool = True,
) -> FloatArray:
    """Structural descriptors of every node, ``[N, k]``, ready to be a network's input.

    ==========  ================  ==========================================================
    name        columns           value
    ==========  ================  ==========================================================
    pagerank    1                 log(1 + N PageRank), standardised over the nodes
    degree      1                 log(1 + weighted out-degree), standardised
    clustering  1                 local clustering coefficient, standardised
    spectral    ``spectral_dim``  sign(v) log(1 + abs(v)) of the spectral coordinates v
    ==========  ================  ==========================================================

    Standardised means mean 0 and variance 1; a column that is the same everywhere becomes 0. Columns come in
    the order of the table, whatever the order of ``names``; no names give ``[N, 0]``.

    Args:
        graph: the nodes to describe.
        names: which of the four to include.
        spectral_dim: how many spectral coordinates.
        cache: keep what is slow to compute on disk, by the graph's ``structure_hash``.
    """
    for name in names:
        if name not in DESCRIPTORS:
            raise ConfigError(
                f"descriptor {name!r} is unknown",
                where="descriptors",
                fix=f"{did_you_mean(name, DESCRIPTORS)}Choose from {', '.join(DESCRIPTORS)}.",
            )
    size = graph.num_nodes
    columns: list[npt.NDArray[np.floating]] = [np.zeros((size, 0))]
    if "pagerank" in names:
        columns.append(standardize(np.log1p(size * node_pagerank(graph, cache=cache))))
    if "degree" in names:
        columns.append(standardize(np.log1p(graph.degrees.astype(np.float64))))
    if "clustering" in names:
        columns.append(standardize(node_clustering(graph, cache=cache)))
    if "spectral" in names:
        columns.append(signed_log(_spectral(graph, spectral_dim, cache)))
    return np.column_stack(columns).astype(np.float32)


def _spectral(graph: RowGraph, dim: int, cache: bool) -> npt.NDArray[np.float64]:
    def compute() -> npt.NDArray[np.float64]:
        if not isinstance(graph, Graph):  # early: on disk it would end after hours
            Room.of().require(
                _SPECTRAL_BYTES * graph.num_nodes + _EDGE_BYTES * graph.num_edges,
                f"computing spectral coordinates of {graph.num_nodes:,} nodes",
                "spectral",
                "Leave them out: structural (of the features) and predictor.descriptors (of a training) may "
                "be pagerank,degree,clustering.",
            )
        return spectral_coordinates(graph, dim)

    return cached(graph, f"spectral-{dim}", compute, dim, keep=cache)


def node_pagerank(graph: RowGraph, *, cache: bool = True) -> npt.NDArray[np.float64]:
    """:func:`pagerank` with its default settings, kept on disk."""
    return cached(graph, "pagerank", lambda: pagerank(graph), keep=cache)


def node_clustering(graph: RowGraph, *, cache: bool = True) -> npt.NDArray[np.float64]:
    """:func:`local_clustering`, kept on disk."""
    return cached(graph, "clustering", lambda: local_clustering(graph), keep=cache)


def node_adjacency(graph: Graph, dim: int, room: Room, *, cache: bool = True) -> npt.NDArray[np.float64]:
    """:func:`adjacency_coordinates`, kept on disk; refused where there is no ``room`` to compute them in."""

    def compute() -> npt.NDArray[np.float64]:
        room.require(
            ADJACENCY_BYTES * graph.num_nodes,
            f"computing coordinates of the adjacency of {graph.num_nodes:,} nodes",
            "adjacency",
            'Leave them out: structural="all" where files are read, '
            "graph.with_features(nodejepa.descriptors(graph)) in Python.",
        )
        return adjacency_coordinates(graph, dim)

    how = "-block" if graph.num_nodes > EXACT_UP_TO else ""
    return cached(graph, f"adjacency-{dim}{how}", compute, dim, keep=cache)


def standardize(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Columns with mean 0 and variance 1; what does not vary becomes 0."""
    centred = values - values.mean(axis=0)
    deviation = np.sqrt(np.mean(centred**2, axis=0))
    varies = deviation > 1e-9 * (1 + np.abs(values).max(axis=0, initial=0.0))
    return np.where(varies, centred / np.where(varies, deviation, 1.0), 0.0)


def pagerank(graph: RowGraph, damping: float = 0.85) -> npt.NDArray[np.float64]:
    r"""PageRank (Page et al. 1999) of every node, ``[N]``, adding up to 1.

    .. math:: r = \alpha \Big( A^\top D^{-1} r + \frac{1}{N} \sum_{i\ \text{dangling}} r_i \Big)
              + \frac{1 - \alpha}{N}

    with D the weighted out-degrees and dangling nodes (no outgoing edge) spreading evenly over all nodes. It
    ends when a step changes r by less than 1e-8 in the 1-norm.

    Args:
        graph: weighted or not, directed or not; one on disk is read once a step.
        damping: α, in [0, 1).
    """
    if not 0 <= damping < 1:
        raise ConfigError(f"damping is {damping}", where="pagerank", fix="Use a number in [0, 1), like 0.85.")
    size = graph.num_nodes
    spans = [*graph.spans()]

    @lru_cache(maxsize=1)  # a graph in memory is one block
    def incoming(low: int, high: int) -> SparseMatrix:
        return graph.in_rows(low, high).astype(np.float64)

    sums = [graph.rows(*span).astype(np.float64).sum(axis=1) for span in spans]
    degrees = np.concatenate([np.asarray(part).ravel() for part in sums])
    dangling = degrees == 0
    inverse = np.divide(1.0, degrees, out=np.zeros(size), where=~dangling)

    rank = np.full(size, 1.0 / size)
    with progress_bar("PageRank"):
        while True:  # a step shrinks the change by at least the damping
            spread = rank[dangling].sum() / size
            given = rank * inverse
            received = np.concatenate([incoming(*span) @ given for span in spans])
            following = damping * (received + spread) + (1 - damping) / size
            change = np.abs(following - rank).sum()
            rank = following
            if change < _PAGERANK_CHANGE:
                break
    result: npt.NDArray[np.float64] = rank / rank.sum()
    return result


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
