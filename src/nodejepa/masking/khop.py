"""Structure-aware k-hop masking: contiguous neighbourhoods until the budget is spent."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from nodejepa.compiled import compiled
from nodejepa.errors import ConfigError
from nodejepa.graph_checks import SparseMatrix

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


def khop_mask(graph: Edges, ratio: float, hops: int, generator: np.random.Generator) -> BoolArray:
    """Which nodes to hide, ``[N]``: exactly round(ratio N) of them.

    All nodes are put in random order and serve as seeds one after the other. A seed adds every node at most
    ``hops`` edges away (along outgoing edges in a directed graph), nearest first, until the budget is
    spent. The last ball is therefore cut in breadth-first order and still hangs together around its seed.

    Args:
        graph: where to look for neighbours.
        ratio: share of the nodes to hide, in [0, 1].
        hops: radius of a ball; 0 hides single nodes.
        generator: the only source of randomness.
    """
    if not 0 <= ratio <= 1:
        raise ConfigError(f"the mask ratio is {ratio}", where="masking", fix="Use a number in [0, 1].")
    if hops < 0:
        raise ConfigError(f"hops is {hops}", where="masking", fix="Use 0 or more hops.")
    size, budget = graph.num_nodes, round(ratio * graph.num_nodes)
    adjacency = graph.adjacency
    mask: BoolArray
    seeds = np.zeros(0, dtype=np.int32)
    if size > WHOLE_ORDER_UP_TO:
        # A few balls fill the budget of a large graph: to put all of its nodes in order would take longer
        # than the search. A node drawn twice adds nothing the second time, so the law is the same.
        seeds = generator.integers(size, size=_FIRST_SEEDS, dtype=np.int32)
        mask = _grow(adjacency.indptr, adjacency.indices, seeds, budget, min(hops, size))
        if np.count_nonzero(mask) == budget:
            return mask
    seeds = np.concatenate([seeds, generator.permutation(np.arange(size, dtype=np.int32))])
    mask = _grow(adjacency.indptr, adjacency.indices, seeds, budget, min(hops, size))
    return mask


@compiled()
def _grow(indptr: IntArray, indices: IntArray, seeds: IntArray, budget: int, hops: int) -> BoolArray:
    """Union of the seeds' balls, cut at ``budget`` nodes.

    ``reach[i]`` is the largest number of hops i has been expanded by, -1 if it is not masked. Arriving at i
    with no more hops left than that can mask nothing new, so the search does not enter i again: each node is
    expanded at most ``hops`` times in all, however many balls overlap, and the order in which
    new nodes are met is that of a full breadth-first search of every ball.
    """
    size = indptr.size - 1
    reach = np.full(size, -1, dtype=np.int32)
    queue = np.empty(size, dtype=np.int32)
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
            for edge in range(indptr[i], indptr[i + 1]):
                j = indices[edge]
                if reach[j] >= left:
                    continue
                masked += reach[j] < 0
                reach[j] = left
                queue[last] = j
                last += 1
                if masked == budget:
                    break
    return reach >= 0
