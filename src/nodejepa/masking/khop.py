"""Structure-aware k-hop masking: contiguous neighbourhoods until the budget is spent, easy masks first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from nodejepa.compiled import compiled
from nodejepa.errors import ConfigError
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
    if not 0 <= ratio <= 1:
        raise ConfigError(f"the mask ratio is {ratio}", where="masking", fix="Use a number in [0, 1].")
    if hops < 0:
        raise ConfigError(f"hops is {hops}", where="masking", fix="Use 0 or more hops.")
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
def _first_edge(node: int, degree: int, cap: int, key: np.uint64) -> np.int64:
    """Where in its list a node's followed edges begin."""
    if degree <= cap:
        return np.int64(0)
    return np.int64(mix(np.uint64(node) ^ key) % np.uint64(degree))


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
            count, start = min(degree, cap), _first_edge(i, degree, cap, key)
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


@dataclass(frozen=True)
class Curriculum:
    """Mask ratio and hops as a function of the epoch.

    Both move linearly from their start at epoch 0 to their end at epoch ``epochs`` and stay there. Hops are
    rounded half up, so with the defaults epochs 0-24 mask 1-hop and later ones 2-hop neighbourhoods
    (the paper: cheap epochs "in the first 25", a jump after).

    >>> Curriculum().at(0), Curriculum().at(25), Curriculum().at(300)
    ((0.2, 1), (0.35, 2), (0.5, 2))
    """

    ratio_start: float = 0.2  # paper, Section 3: mask 0.2 -> 0.5 over 50 epochs
    ratio_end: float = 0.5
    hops_start: int = 1  # paper, Section 3: hops 1 -> 2
    hops_end: int = 2
    epochs: int = 50
    enabled: bool = True  # otherwise the end values hold from the start

    def at(self, epoch: int) -> tuple[float, int]:
        """Mask ratio and hops of an epoch, counted from 0."""
        done = 1.0 if not self.enabled or epoch >= self.epochs else epoch / self.epochs
        ratio = (1 - done) * self.ratio_start + done * self.ratio_end
        hops = (1 - done) * self.hops_start + done * self.hops_end
        return ratio, math.floor(hops + 0.5)
