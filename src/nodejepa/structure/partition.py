"""METIS partitions without empty parts; graphs too large for METIS are cut into small clusters."""

from __future__ import annotations

import heapq
import math
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pymetis

from nodejepa.compiled import compiled
from nodejepa.errors import ConfigError
from nodejepa.graph import RowGraph
from nodejepa.structure.base import Neighbours, cached, neighbours

Int32Array = npt.NDArray[np.int32]

METIS_ENTRIES = 50_000_000  # stored edges that METIS may see: about 5 GB of memory
_ROUNDS = 8
_CLUSTERS_PER_PART = 2  # at least: so that parts of about equal size can be made of them
_SEED = 0


def recommended_parts(num_nodes: int) -> int:
    """A number of patches for a graph the paper does not name: the power of two nearest sqrt(0.4 N).

    It gives the paper's own table for its five graphs, is at least 8 (so that 1 context and 4 targets can be
    drawn in many ways) and never more than :func:`partition` would make.

    >>> [recommended_parts(n) for n in (13_752, 7_650, 18_333, 34_493, 169_343)]
    [64, 64, 64, 128, 256]
    """
    nearest = 2 ** round(math.log2(math.sqrt(0.4 * max(num_nodes, 1))))
    return _at_most(max(8, nearest), num_nodes)


def partition(graph: RowGraph, parts: int, *, cache: bool = True) -> Int32Array:
    """Split the nodes into parts of about equal size with few edges between them (Karypis & Kumar 1998).

    Every part from 0 to ``max`` holds at least one node, and ``parts`` of them are made unless the graph is
    too small: the number is lowered to N // 2, so that the average part has two nodes or more (a graph of 2
    or 3 nodes still gets 2 parts). METIS sees the nodes that have an edge, directions and weights ignored
    (very large graphs are cut by :func:`_clustered` instead); isolated nodes then go one
    by one to whichever part is smallest.

    Args:
        graph: connected or not; one on disk is never in memory.
        parts: how many parts are wanted, at least 1.
        cache: keep the result on disk.

    Returns:
        The part of every node, ``[N]``; the same on every call.
    """
    if parts < 1:
        raise ConfigError(f"parts is {parts}", where="partition", fix="Ask for at least one part.")
    parts = _at_most(parts, graph.num_nodes)
    return cached(graph, f"metis-{parts}", partial(_partition, graph, parts), dtype=np.int32, keep=cache)


def random_parts(graph: RowGraph, parts: int) -> Int32Array:
    """Parts of equal size, give or take one, that know nothing of edges: what METIS is compared with."""
    order = np.random.default_rng(_SEED).permutation(graph.num_nodes)
    return (order % _at_most(parts, graph.num_nodes)).astype(np.int32)


def _at_most(parts: int, num_nodes: int) -> int:
    return min(parts, max(min(num_nodes, 2), num_nodes // 2))


def _partition(graph: RowGraph, parts: int) -> Int32Array:
    edges = neighbours(graph)
    has_edge = np.diff(edges.indptr) > 0
    joined, isolated = np.flatnonzero(has_edge), np.flatnonzero(~has_edge)
    part = np.zeros(graph.num_nodes, dtype=np.int32)
    if joined.size:
        cut = _metis if edges.indices.size <= METIS_ENTRIES else _clustered
        part[joined] = cut(edges, joined, _at_most(parts, joined.size))
    sizes = np.bincount(part[joined], minlength=parts)
    part[isolated] = _onto_smallest(sizes, np.ones(isolated.size, dtype=np.int64))
    sizes = np.bincount(part, minlength=parts)
    for empty in np.flatnonzero(sizes == 0):  # METIS leaves some where parts are small
        largest = int(np.argmax(sizes))
        moved = np.flatnonzero(part == largest)[: sizes[largest] // 2]
        part[moved] = empty
        sizes = np.bincount(part, minlength=parts)
    return part


def _metis(edges: Neighbours, joined: npt.NDArray[np.intp], parts: int) -> Int32Array:
    """The part of every node that has an edge; ``joined`` are these nodes, ascending."""
    if parts == 1:
        return np.zeros(joined.size, dtype=np.int32)
    integer = pymetis.zero_copy_dtype()
    place = np.zeros(edges.indptr.size - 1, dtype=integer)  # without the others, to which no edge leads
    place[joined] = np.arange(joined.size)
    pointers = np.append(edges.indptr[joined], edges.indptr[-1]).astype(integer)
    rows = pymetis.CSRAdjacency(pointers, place[edges.indices])
    options = pymetis.Options(seed=_SEED, numbering=0)
    return np.asarray(pymetis.part_graph(parts, rows, options=options).vertex_part, dtype=np.int32)


def _clustered(edges: Neighbours, joined: npt.NDArray[np.intp], parts: int) -> Int32Array:
    """As :func:`_metis`, in some twenty bytes a node beside the graph itself, which may lie in a file.

    Labels spread along edges (Raghavan, Albert & Kumara 2007), but none to more than a share of a part, as in
    size-constrained label propagation (Meyerhenke, Sanders & Schulz 2014). The clusters, largest first, go to
    whichever part is smallest.
    """
    limit = max(joined.size // (_CLUSTERS_PER_PART * parts), 1)
    labels = _spread(edges.indptr, edges.indices, limit, _ROUNDS)
    _, cluster, sizes = np.unique(labels[joined], return_inverse=True, return_counts=True)
    largest_first = np.argsort(-sizes, kind="stable")
    of_cluster = np.empty(sizes.size, dtype=np.int32)
    of_cluster[largest_first] = _onto_smallest(np.zeros(parts, dtype=np.int64), sizes[largest_first])
    return of_cluster[cluster]


def _onto_smallest(sizes: npt.NDArray[np.int64], groups: npt.NDArray[np.int64]) -> Int32Array:
    """Parts for groups of so many nodes, each joining the part that is smallest at its turn."""
    queue = [(size, part) for part, size in enumerate(sizes.tolist())]
    heapq.heapify(queue)
    chosen = np.empty(groups.size, dtype=np.int32)
    for place, count in enumerate(groups.tolist()):
        size, part = queue[0]
        heapq.heapreplace(queue, (size + count, part))
        chosen[place] = part
    return chosen


@compiled()
def _spread(indptr: Any, indices: Any, limit: int, rounds: int) -> Any:
    """A label for every node, none on more than ``limit`` of them.

    In each round every node takes the label that most of its neighbours have and that has room; of equal
    ones its own, else the smallest.
    """
    size = len(indptr) - 1
    labels = np.arange(size).astype(np.int32)
    sizes = np.ones(size, dtype=np.int32)
    counts = np.zeros(size, dtype=np.int32)
    for _ in range(rounds):
        moved = 0
        for i in range(size):
            own = labels[i]
            for e in range(indptr[i], indptr[i + 1]):
                counts[labels[indices[e]]] += 1
            best, most = own, counts[own]
            for e in range(indptr[i], indptr[i + 1]):
                label = labels[indices[e]]
                better = counts[label] > most or (counts[label] == most and best != own and label < best)
                if better and sizes[label] < limit:
                    best, most = label, counts[label]
            for e in range(indptr[i], indptr[i + 1]):
                counts[labels[indices[e]]] = 0
            if best != own:
                sizes[own] -= 1
                sizes[best] += 1
                labels[i] = best
                moved += 1
        if moved * 100 < size:
            break
    return labels
