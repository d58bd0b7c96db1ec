"""Partitions of graphs that METIS has not the memory for: small clusters first, METIS on these."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pymetis
import scipy.sparse as sp

from nodejepa.compiled import compiled
from nodejepa.graph_checks import SparseMatrix
from nodejepa.structure.undirected import Neighbours

Int32Array = npt.NDArray[np.int32]

_ROUNDS = 8
_CLUSTERS_PER_PART = 16  # at least: so that METIS can make parts of about equal size of them
_BLOCK_ENTRIES = 1 << 23  # of the adjacency that are looked at together
QUOTIENT_ENTRIES = 12_500_000  # that METIS may see: about 1.3 GB of memory


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
