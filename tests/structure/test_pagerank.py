import numpy as np
import pytest

import reference.structure as reference
from nodejepa.errors import ConfigError
from nodejepa.graph import Graph
from nodejepa.structure import pagerank


@pytest.mark.parametrize("direction", ["symmetrize", "keep"])
@pytest.mark.parametrize("damping", [0.5, 0.85, 0.95])
def test_equals_networkx_with_weights_and_dangling_nodes(direction: str, damping: float) -> None:
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(
        rng.integers(0, 80, 150),
        rng.integers(0, 80, 150),
        weights=rng.uniform(0.1, 5, 150),
        num_nodes=90,
        direction=direction,
    )
    assert np.any(graph.degrees == 0)
    ranks = pagerank(graph, damping=damping, tol=1e-12)
    np.testing.assert_allclose(ranks, reference.pagerank(graph, damping), rtol=1e-6, atol=1e-11)
    assert ranks.sum() == pytest.approx(1)


def test_directed_edges_pass_rank_forward() -> None:
    graph = Graph.from_edges([0, 1, 2], [3, 3, 3], direction="keep")
    assert pagerank(graph).argmax() == 3


def test_without_edges_or_damping_all_nodes_are_equal() -> None:
    assert pagerank(Graph.from_edges([], [], num_nodes=4)).tolist() == [0.25] * 4
    np.testing.assert_allclose(pagerank(Graph.from_edges([0, 1], [1, 2]), damping=0.0), 1 / 3)


@pytest.mark.parametrize("bad", [{"damping": 1.0}, {"damping": -0.1}, {"tol": 0.0}, {"tol": float("nan")}])
def test_refuses_settings_that_cannot_work(bad: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="pagerank"):
        pagerank(Graph.from_edges([0], [1]), **bad)
