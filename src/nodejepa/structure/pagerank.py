"""PageRank by power iteration."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from nodejepa.errors import ConfigError
from nodejepa.graph import RowGraph
from nodejepa.graph_checks import SparseMatrix
from nodejepa.progress import progress_bar


def pagerank(graph: RowGraph, damping: float = 0.85, tol: float = 1e-8) -> npt.NDArray[np.float64]:
    r"""PageRank (Page et al. 1999) of every node, ``[N]``, adding up to 1.

    .. math:: r = \alpha \Big( A^\top D^{-1} r + \frac{1}{N} \sum_{i\ \text{dangling}} r_i \Big)
              + \frac{1 - \alpha}{N}

    with D the weighted out-degrees and dangling nodes (no outgoing edge) spreading evenly over all nodes.

    Args:
        graph: weighted or not, directed or not; one on disk is read once a step.
        damping: α, in [0, 1).
        tol: stops when one step changes r by less than this in the 1-norm. A step shrinks that change by
            at least α, which bounds the number of steps in advance.
    """
    if not 0 <= damping < 1:
        raise ConfigError(f"damping is {damping}", where="pagerank", fix="Use a number in [0, 1), like 0.85.")
    if not tol > 0:
        raise ConfigError(f"tol is {tol}", where="pagerank", fix="Use a positive number, like 1e-8.")
    size = graph.num_nodes
    spans = [*graph.spans()]

    @lru_cache(maxsize=1)  # a graph in memory is one block
    def incoming(low: int, high: int) -> SparseMatrix:
        return graph.in_rows(low, high).astype(np.float64)

    sums = [graph.rows(*span).astype(np.float64).sum(axis=1) for span in spans]
    degrees = np.concatenate([np.asarray(part).ravel() for part in sums])
    dangling = degrees == 0
    inverse = np.divide(1.0, degrees, out=np.zeros(size), where=~dangling)

    rank = np.full(size, 1.0 / size)
    with progress_bar("PageRank"):
        for _ in range(_steps_enough(damping, tol)):
            spread = rank[dangling].sum() / size
            given = rank * inverse
            received = np.concatenate([incoming(*span) @ given for span in spans])
            following = damping * (received + spread) + (1 - damping) / size
            change = np.abs(following - rank).sum()
            rank = following
            if change < tol:
                break
    result: npt.NDArray[np.float64] = rank / rank.sum()
    return result


def _steps_enough(damping: float, tol: float) -> int:
    """The first step changes r by at most 2, each later one by at most ``damping`` times the one before."""
    return 1 if damping == 0 else 2 + max(0, math.ceil(math.log(tol / 2) / math.log(damping)))
