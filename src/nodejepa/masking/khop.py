"""Structure-aware k-hop masking: contiguous neighbourhoods until the budget is spent."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from nodejepa.compiled import compiled
from nodejepa.graph_checks import SparseMatrix
from nodejepa.masking.augment import mix

IntArray = npt.NDArray[np.integer]
BoolArray = npt.NDArray[np.bool_]

WHOLE_ORDER_UP_TO = 50_000  # nodes; up to here a random order of all of them costs next to nothing
_FIRST_SEEDS = 1024


class Edges(Protocol):
    """What a mask is drawn on: a graph, or the part of it that a step is handed."""

    @property
    def num_nodes(self) -> int:
        """N."""

    @property
    def adjacency(self) -> SparseMatrix:
        """CSR ``[N, N]``."""


def khop_mask(
    graph: Edges,
    ratio: float,
    hops: int,
    generator: np.random.Generator,
    *,
    max_neighbours: int | None = None,
) -> BoolArray:
    """Which nodes to hide, ``[N]``: exactly round(ratio N) of them.

    All nodes are put in random order and serve as seeds one after the other. A seed adds every node at most
    ``hops`` edges away (along outgoing edges in a directed graph), nearest first, until the budget is
    spent. The last ball is therefore cut in breadth-first order and still hangs together around its seed.

    Args:
        graph: where to look for neighbours.
        ratio: share of the nodes to hide, in [0, 1].
        hops: radius of a ball; 0 hides single nodes.
        generator: the only source of randomness.
        max_neighbours: the search follows at most so many edges of a node, as GraphSAGE samples them: of
            more, so many at equal distances in the list of neighbours, from a random one on. They are drawn
            anew for every mask and are the same for all balls of one. ``None`` follows all.
    """
    edges, size, budget = graph.adjacency, graph.num_nodes, round(ratio * graph.num_nodes)
    cap = size if max_neighbours is None else max_neighbours
    key = np.uint64(0) if max_neighbours is None else generator.integers(2**64, dtype=np.uint64)

    def grow(seeds: IntArray) -> BoolArray:
        mask: BoolArray = _grow(edges.indptr, edges.indices, seeds, budget, min(hops, size), cap, key)
        return mask

    seeds = np.zeros(0, dtype=np.int32)
    if size > WHOLE_ORDER_UP_TO:
        # A few balls fill the budget of a large graph: to put all of its nodes in order would take longer
        # than the search. A node drawn twice adds nothing the second time, so the law is the same.
        seeds = generator.integers(size, size=_FIRST_SEEDS, dtype=np.int32)
        mask = grow(seeds)
        if np.count_nonzero(mask) == budget:
            return mask
    return grow(np.concatenate([seeds, generator.permutation(np.arange(size, dtype=np.int32))]))


@compiled()
def _grow(
    indptr: IntArray,
    indices: IntArray,
    seeds: IntArray,
    budget: int,
    hops: int,
    cap: int,
    key: np.uint64,
) -> BoolArray:
    """Union of the seeds' balls, cut at ``budget`` nodes.

    ``reach[i]`` is the largest number of hops i has been expanded by, -1 if it is not masked. Arriving at i
    with no more hops left than that can mask nothing new, so the search does not enter i again: each node is
    expanded at most ``hops`` times in all, however many balls overlap, and the order in which
    new nodes are met is that of a full breadth-first search of every ball.
    """
    size = indptr.size - 1
    queue = np.empty(size, dtype=np.int32)
    reach = np.full(size, -1, dtype=np.int32)
    masked = 0
    for seed in seeds:
        if masked == budget:
            break
        if reach[seed] >= hops:
            continue
        masked += reach[seed] < 0
        reach[seed] = hops
        queue[0] = seed
        first, last = 0, 1
        while first < last and masked < budget:
            i = queue[first]
            first += 1
            left = reach[i] - 1
            if left < 0:
                break
            degree = indptr[i + 1] - indptr[i]
            count, start = min(degree, cap), np.int64(0)
            if degree > cap:  # where in its list the followed edges of the node begin
                start = np.int64(mix(np.uint64(i) ^ key) % np.uint64(degree))
            for place in range(count):
                if degree > cap:
                    place = (start + place * degree // cap) % degree
                j = indices[indptr[i] + place]
                if reach[j] >= left:
                    continue
                masked += reach[j] < 0
                reach[j] = left
                queue[last] = j
                last += 1
                if masked == budget:
                    break
    return reach >= 0
