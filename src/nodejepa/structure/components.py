"""Which nodes hang together."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nodejepa.compiled import compiled
from nodejepa.structure.undirected import Neighbours


def largest_component(edges: Neighbours) -> npt.NDArray[np.intp]:
    """Positions of the nodes of the largest connected component; of equals, the one with more edges."""
    label = _labels(edges.indptr, edges.indices)
    nodes = np.bincount(label)
    joined = np.bincount(label, weights=np.diff(edges.indptr))
    largest = np.lexsort((joined, nodes))[-1]
    return np.flatnonzero(label == largest)


@compiled()
def _labels(indptr: Any, indices: Any) -> Any:
    """The component of every node, numbered by their first nodes; edges are read once, in order."""
    size = len(indptr) - 1
    above = np.arange(size).astype(np.int32)  # a forest whose roots are the first nodes of components
    for i in range(size):
        for e in range(indptr[i], indptr[i + 1]):
            a, b = i, indices[e]
            while above[a] != a:
                above[a] = above[above[a]]
                a = above[a]
            while above[b] != b:
                above[b] = above[above[b]]
                b = above[b]
            if a < b:
                above[b] = a
            else:
                above[a] = b
    found = 0
    labels = np.empty(size, dtype=np.int32)
    for i in range(size):
        if above[i] == i:
            labels[i] = found
            found += 1
        else:
            labels[i] = labels[above[i]]  # which comes before, and has its number
    return labels
