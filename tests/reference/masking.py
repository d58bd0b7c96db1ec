"""Masks and views one node and one edge at a time."""

from __future__ import annotations

import itertools
from collections import deque

import numpy as np

BITS = 2**64 - 1


def khop_mask(graph, ratio: float, hops: int, generator: np.random.Generator, first: int = 0) -> np.ndarray:
    """One full breadth-first search a seed, nothing remembered between them.

    ``first`` seeds are drawn before the rest is put in order, as is done for large graphs.
    """
    adjacency, size = graph.adjacency, graph.num_nodes
    budget = round(ratio * size)
    masked: set[int] = set()
    drawn = generator.integers(size, size=first, dtype=np.int32).tolist()
    for seed in itertools.chain(drawn, generator.permutation(np.arange(size, dtype=np.int32)).tolist()):
        distance, queue = {seed: 0}, deque([seed])
        while queue:
            i = queue.popleft()
            if len(masked) == budget:
                return np.isin(np.arange(size), list(masked))
            masked.add(i)
            if distance[i] == hops:
                continue
            for j in adjacency.indices[adjacency.indptr[i] : adjacency.indptr[i + 1]].tolist():
                if j not in distance:
                    distance[j] = distance[i] + 1
                    queue.append(j)
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
