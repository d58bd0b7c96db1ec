"""Small graphs that have what a fast path may trip over."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from nodejepa.graph import Graph

COLUMNS = {"narrow": 6, "wide": 30, "sparse": 60}  # fewer and more than an encoder's width; sparse


def graph_with(layout="wide", *, directed=False, weighted=True):
    """40 nodes, the last five without any edge, one without features."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, COLUMNS[layout])).astype(np.float32)
    x[7] = 0
    return Graph.from_edges(
        *rng.integers(0, 35, (2, 90)),
        features=sp.csr_array(x * (rng.random(x.shape) < 0.1)) if layout == "sparse" else x,
        num_nodes=40,
        weights=rng.random(90) + 0.1 if weighted else None,
        direction="keep" if directed else "symmetrize",
    )
