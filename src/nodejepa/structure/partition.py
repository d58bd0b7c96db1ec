"""METIS partitions without empty parts; of graphs too large for METIS, of small clusters that METIS joins."""

from __future__ import annotations

import heapq
import math
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pymetis
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components

from nodejepa.compiled import compiled
from nodejepa.errors import ConfigError
from nodejepa.graph import RowGraph
from nodejepa.graph_checks import SparseMatrix
from nodejepa.structure.cache import cache_file, cached
from nodejepa.structure.undirected import Neighbours, neighbours

Int32Array = npt.NDArray[np.int32]

METIS_ENTRIES = 50_000_000  # stored edges that METIS may see: about 5 GB of memory
QUOTIENT_ENTRIES = 12_500_000  # that METIS may see: about 1.3 GB of memory
_ROUNDS = 8
_CLUSTERS_PER_PART = 16  # at least: so that METIS can make parts of about equal size of them
_BLOCK_ENTRIES = 1 << 23  # of the adjacency that are looked at together
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
    (of very large graphs it sees clusters, see :func:`coarse_partition`); isolated nodes then go one
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
    return cached(graph, _key(parts), partial(_partition, graph, parts), dtype=np.int32, keep=cache)


def partition_is_kept(graph: RowGraph, parts: int) -> bool:
    """Whether :func:`partition` will find its result on disk."""
    return cache_file(graph, _key(_at_most(parts, graph.num_nodes))).exists()


def _key(parts: int) -> str:
    return f"metis-{parts}"


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
        part[joined] = _metis(edges, joined, _at_most(parts, joined.size))
    sizes = np.bincount(part[joined], minlength=parts)
    part[isolated] = _smallest_first(sizes, isolated.size)
    return _fill_empty(edges, part, parts)


def _metis(edges: Neighbours, joined: npt.NDArray[np.intp], parts: int) -> Int32Array:
    if parts == 1:
        return np.zeros(joined.size, dtype=np.int32)
    options = pymetis.Options(seed=_SEED, numbering=0)
    if edges.indices.size > METIS_ENTRIES:
        return coarse_partition(edges, joined, parts, options)
    integer = pymetis.zero_copy_dtype()
    place = np.zeros(edges.indptr.size - 1, dtype=integer)  # without the others, to which no edge leads
    place[joined] = np.arange(joined.size)
    pointers = np.append(edges.indptr[joined], edges.indptr[-1]).astype(integer)
    rows = pymetis.CSRAdjacency(pointers, place[edges.indices])
    return np.asarray(pymetis.part_graph(parts, rows, options=options).vertex_part, dtype=np.int32)


def _smallest_first(sizes: npt.NDArray[np.int64], count: int) -> Int32Array:
    """Parts for ``count`` single nodes, each joining the part that is smallest at its turn."""
    queue = [(size, part) for part, size in enumerate(sizes.tolist())]
    heapq.heapify(queue)
    chosen = np.empty(count, dtype=np.int32)
    for place in range(count):
        size, part = queue[0]
        heapq.heapreplace(queue, (size + 1, part))
        chosen[place] = part
    return chosen


def _fill_empty(edges: Neighbours, part: Int32Array, parts: int) -> Int32Array:
    """Give every part METIS left empty a coherent half of the part that is largest at that moment."""
    sizes = np.bincount(part, minlength=parts)
    for empty in np.flatnonzero(sizes == 0):
        largest = int(np.argmax(sizes))
        nodes = np.flatnonzero(part == largest)
        moved = nodes[_breadth_first(_among(edges, nodes))[: nodes.size // 2]]
        part[moved] = empty
        sizes[largest] -= moved.size
        sizes[empty] = moved.size
    return part


def _among(edges: Neighbours, nodes: npt.NDArray[np.intp]) -> SparseMatrix:
    """The adjacency of some nodes, ascending."""
    counts, ends = edges.of(nodes)
    place = np.full(edges.indptr.size - 1, -1)
    place[nodes] = np.arange(nodes.size)
    rows, columns = np.repeat(np.arange(nodes.size), counts), place[ends]
    inside = columns >= 0
    ones = np.ones(np.count_nonzero(inside), dtype=np.float32)
    return sp.coo_array((ones, (rows[inside], columns[inside])), shape=(nodes.size,) * 2).tocsr()


def _breadth_first(adjacency: SparseMatrix) -> npt.NDArray[np.intp]:
    """All positions, component after component, each in breadth-first order."""
    _, label = connected_components(adjacency, directed=False)
    firsts = np.unique(label, return_index=True)[1]
    orders = [breadth_first_order(adjacency, i, directed=False, return_predecessors=False) for i in firsts]
    return np.concatenate(orders).astype(np.intp)


def coarse_partition(edges: Neighbours, joined: npt.NDArray[np.intp], parts: int, options: Any) -> Int32Array:
    """The part of every node of an undirected graph that has an edge.

    Labels spread along edges (Raghavan, Albert & Kumara 2007), but none to more than a small share of a part,
    as in size-constrained label propagation (Meyerhenke, Sanders & Schulz 2014). Beside the graph itself,
    which may lie in a file, this takes some twenty bytes a node and twelve for two clusters that are joined;
    METIS takes about a hundred a stored edge. Where too many clusters are joined, it sees the strongest ties.
    ``joined`` are the nodes that have an edge, ascending; ``options`` are METIS's own.
    """
    limit = max(joined.size // (_CLUSTERS_PER_PART * parts), 1)
    labels = _spread(edges.indptr, edges.indices, limit, _ROUNDS)
    found, cluster = np.unique(labels[joined], return_inverse=True)
    of_node = np.zeros(labels.size, dtype=np.int32)
    of_node[joined] = cluster
    ties = _strongest(_quotient(edges, of_node, len(found)))
    integer = pymetis.zero_copy_dtype()
    rows = pymetis.CSRAdjacency(ties.indptr.astype(integer), ties.indices.astype(integer))
    made = pymetis.part_graph(
        parts,
        rows,
        vweights=np.bincount(cluster).astype(integer),
        eweights=ties.data.astype(integer),
        options=options,
    )
    return np.asarray(made.vertex_part, dtype=np.int32)[cluster]


def _strongest(ties: SparseMatrix) -> SparseMatrix:
    """Without the weakest ties, as far as METIS has no memory for them."""
    counts = np.cumsum(np.bincount(ties.data)[::-1])[::-1]  # [w]: ties of weight w or more
    least = min(int(np.searchsorted(-counts, -QUOTIENT_ENTRIES)), counts.size - 1)
    if least > 1:
        ties.data[ties.data < least] = 0
        ties.eliminate_zeros()
    return ties


def _quotient(edges: Neighbours, cluster: Int32Array, clusters: int) -> SparseMatrix:
    """How many edges join each two clusters, CSR; read a block of rows at a time."""
    total = sp.csr_array((clusters, clusters), dtype=np.int64)
    pointers = edges.indptr
    cuts = np.searchsorted(pointers, np.arange(0, edges.indices.size, _BLOCK_ENTRIES))
    for low, high in pairwise(np.unique(np.append(cuts, cluster.size)).tolist()):
        ends = cluster[edges.indices[pointers[low] : pointers[high]]]
        starts = np.repeat(cluster[low:high], np.diff(pointers[low : high + 1]))
        outside = starts != ends
        ones = np.ones(np.count_nonzero(outside), dtype=np.int64)
        total = total + sp.coo_array((ones, (starts[outside], ends[outside])), shape=total.shape).tocsr()
    total.sort_indices()
    return total


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
