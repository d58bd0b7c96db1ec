"""Baselines over several hops equal their equations, in memory and on disk, dense and sparse."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nodejepa.graph import Graph
from nodejepa.methods import make_method


def some_graph(*, sparse: bool) -> Graph:
    rng = np.random.default_rng(0)
    x = rng.random((40, 12)) * (rng.random((40, 12)) < 0.3)
    edges = rng.integers(0, 38, (2, 90))  # two nodes stay alone
    return Graph.from_edges(*edges, features=sp.csr_array(x) if sparse else x, num_nodes=40)


def dense(x):
    return x.toarray() if sp.issparse(x) else np.asarray(x)


def by_hand(graph, name):
    x, s = dense(graph.features).astype(np.float64), graph.normalized_adjacency.toarray().astype(np.float64)
    if name == "walk":
        walked = x
        for _ in range(10):
            walked = 0.15 * x + 0.85 * s @ walked
        return walked
    return sum(hop / np.sqrt(np.mean(np.sum(hop**2, axis=1))) for hop in (x, s @ x, s @ s @ x))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", ["walk", "equal-hops"])
def test_hops_are_added_as_the_equation_says(name, sparse):
    graph = some_graph(sparse=sparse)
    found = dense(make_method(name).fit_transform(graph))
    np.testing.assert_allclose(found, by_hand(graph, name), atol=1e-5)
