"""Masks and views one node and one edge at a time."""

from __future__ import annotations

import itertools
from collections import deque

import numpy as np

BITS = 2**64 - 1


def neighbours(adjacency, cap: int | None, key: int | None) -> list[list[int]]:
    """The edges that a search follows; of more than ``cap``, so many at equal distances from a random one."""
    lists = []
    for i in range(adjacency.shape[0]):
        found = adjacency.indices[adjacency.indptr[i] : adjacency.indptr[i + 1]].tolist()
        if cap is not None and len(found) > cap:
            start = splitmix(i ^ key) % len(found)
            found = [found[(start + k * len(found) // cap) % len(found)] for k in range(cap)]
        lists.append(found)
    return lists


def ball(lists: list[list[int]], seed: int, hops: int) -> list[int]:
    """Breadth first from one seed."""
    distance, queue = {seed: 0}, deque([seed])
    while queue:
        i = queue.popleft()
        for j in lists[i] if distance[i] < hops else []:
            if j not in distance:
                distance[j] = distance[i] + 1
                queue.append(j)
    return list(distance)


def khop_mask(
    graph, ratio: float, hops: int, generator: np.random.Generator, first: int = 0, cap: int | None = None
) -> np.ndarray:
    """One full breadth-first search a seed, nothing remembered between them.

    ``first`` seeds are drawn before the rest is put in order, as is done for large graphs.
    """
    size = graph.num_nodes
    key = None if cap is None else int(generator.integers(2**64, dtype=np.uint64))
    lists = neighbours(graph.adjacency, cap, key)
    drawn = generator.integers(size, size=first, dtype=np.int32).tolist()
    seeds = itertools.chain(drawn, generator.permutation(np.arange(size, dtype=np.int32)).tolist())
    return union((ball(lists, seed, hops) for seed in seeds), round(ratio * size), size)


def union(balls, budget: int, size: int) -> np.ndarray:
    """Nodes of the balls, in their order, until the budget is spent."""
    masked: set[int] = set()
    for i in itertools.chain.from_iterable(balls):
        if len(masked) == budget:
            break
        masked.add(i)
    return np.isin(np.arange(size), list(masked))


def splitmix(state: int) -> int:
    """One output of SplitMix64."""
    state = (state + 0x9E3779B97F4A7C15) & BITS
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & BITS
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & BITS
    return state ^ (state >> 31)


def drop_edges(adjacency, p: float, generator: np.random.Generator) -> np.ndarray:
    """One coin an edge, the same for both of its directions."""
    key = int(generator.integers(2**64, dtype=np.uint64))
    kept = adjacency.toarray()
    for i, j in np.argwhere(kept):
        pair = (int(min(i, j)) << 32) | int(max(i, j))
        if (splitmix(splitmix(pair) ^ key) >> 11) * 2.0**-53 < p:
            kept[i, j] = 0
    return kept
