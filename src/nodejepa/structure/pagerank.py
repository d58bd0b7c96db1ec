"""PageRank by power iteration."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from nodejepa.errors import ConfigError
from nodejepa.graph import Graph


def pagerank(graph: Graph, damping: float = 0.85, tol: float = 1e-8) -> npt.NDArray[np.float64]:
    r"""PageRank (Page et al. 1999) of every node, ``[N]``, adding up to 1.

    .. math:: r = \alpha \Big( A^\top D^{-1} r + \frac{1}{N} \sum_{i\ \text{dangling}} r_i \Big)
              + \frac{1 - \alpha}{N}

    with D the weighted out-degrees and dangling nodes (no outgoing edge) spreading evenly over all nodes.

    Args:
        graph: weighted or not, directed or not.
        damping: α, in [0, 1).
        tol: stops when one step changes r by less than this in the 1-norm. A step shrinks that change by
            at least α, which bounds the number of steps in advance.
    """
    if not 0 <= damping < 1:
        raise ConfigError(f"damping is {damping}", where="pagerank", fix="Use a number in [0, 1), like 0.85.")
    if not tol > 0:
        raise ConfigError(f"tol is {tol}", where="pagerank", fix="Use a positive number, like 1e-8.")
    size = graph.num_nodes
    outgoing = graph.adjacency.astype(np.float64)
    incoming = outgoing.T.tocsr() if graph.directed else outgoing
    degrees = np.asarray(outgoing.sum(axis=1)).ravel()
    dangling = degrees == 0
    inverse = np.divide(1.0, degrees, out=np.zeros(size), where=~dangling)

    rank = np.full(size, 1.0 / size)
    for _ in range(_steps_enough(damping, tol)):
        spread = rank[dangling].sum() / size
        following = damping * (incoming @ (rank * inverse) + spread) + (1 - damping) / size
        change = np.abs(following - rank).sum()
        rank = following
        if change < tol:
            break
    result: npt.NDArray[np.float64] = rank / rank.sum()
    return result


def _steps_enough(damping: float, tol: float) -> int:
    """The first step changes r by at most 2, each later one by at most ``damping`` times the one before."""
    return 1 if damping == 0 else 2 + max(0, math.ceil(math.log(tol / 2) / math.log(damping)))
