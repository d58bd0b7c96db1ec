"""Cached k-hop masking: some neighbourhoods are searched once, and every mask is made of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nodejepa.compiled import compiled
from nodejepa.masking.khop import BoolArray, Edges, IntArray, Search, check_mask


@dataclass(frozen=True, eq=False)
class BallPool:
    """The balls around some seeds (the paper, Section 6: "caching neighborhood search").

    The graph is searched once; a mask only puts the balls in another order. What no ball reaches is never
    hidden unless all of them are not enough, so masks vary less than those of :func:`khop_mask`.
    """

    search: Search
    starts: npt.NDArray[np.int64]
    nodes: IntArray

    @classmethod
    def find(
        cls,
        graph: Edges,
        hops: int,
        count: int,
        generator: np.random.Generator,
        *,
        max_neighbours: int | None = None,
    ) -> BallPool:
        """The balls around ``count`` random seeds; a capped search follows the same edges for ever."""
        search = Search.draw(graph, hops, max_neighbours, generator)
        seeds = generator.permutation(np.arange(graph.num_nodes, dtype=np.int32))[:count]
        return cls(search, *search.balls(seeds))

    def is_of(self, graph: Edges, hops: int) -> bool:
        """Whether the balls are those of this graph with so many hops."""
        return self.search.indices is graph.adjacency.indices and self.search.hops == min(
            hops, graph.num_nodes
        )

    def mask(self, ratio: float, generator: np.random.Generator) -> BoolArray:
        """Which nodes to hide, ``[N]``: exactly round(ratio N) of them.

        The balls are taken in random order, each nearest first, until the budget is spent; if all of them do
        not spend it, the search goes on from other seeds.
        """
        check_mask(ratio, self.search.hops)
        size = self.search.indptr.size - 1
        budget = round(ratio * size)
        mask: BoolArray = _unite(
            self.starts, self.nodes, generator.permutation(self.starts.size - 1), budget, size
        )
        if np.count_nonzero(mask) == budget:
            return mask
        return self.search.grow(generator.permutation(np.arange(size, dtype=np.int32)), budget, mask)


@compiled()
def _unite(
    starts: npt.NDArray[np.int64], nodes: IntArray, order: npt.NDArray[np.int64], budget: int, size: int
) -> BoolArray:
    mask = np.zeros(size, dtype=np.bool_)
    masked = 0
    for ball in order:
        for place in range(starts[ball], starts[ball + 1]):
            if masked == budget:
                return mask
            masked += not mask[nodes[place]]
            mask[nodes[place]] = True
    return mask
