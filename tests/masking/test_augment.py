import numpy as np
import pytest

import reference.masking as reference
from nodejepa.graph import Graph
from nodejepa.masking.augment import drop_edges, drop_feature_columns
from reference.masking import splitmix


def random_graph(direction: str = "symmetrize") -> Graph:
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 400, (2, 8000))
    weights = rng.uniform(0.5, 2, 8000)
    return Graph.from_edges(ends[0], ends[1], weights=weights, num_nodes=400, direction=direction)


def test_splitmix_gives_its_published_numbers() -> None:
    """The first outputs of SplitMix64 from state 1234567."""
    state, outputs = 1234567, []
    for _ in range(2):
        outputs.append(splitmix(state))
        state = (state + 0x9E3779B97F4A7C15) % 2**64
    assert outputs == [6457827717110365317, 3203168211198807973]


@pytest.mark.parametrize("direction", ["symmetrize", "keep"])
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_equals_one_coin_an_edge(direction: str, p: float) -> None:
    graph = random_graph(direction)
    dense = reference.drop_edges(graph.adjacency, p, np.random.default_rng(5))
    kept = drop_edges(graph.adjacency, p, np.random.default_rng(5))
    np.testing.assert_array_equal(kept.toarray(), dense)
    assert kept.nnz == np.count_nonzero(dense)
    assert kept.has_sorted_indices


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_drops_the_asked_share_and_stays_symmetric(p: float) -> None:
    graph = random_graph()
    before = graph.adjacency.copy()
    shares = []
    for seed in range(20):
        kept = drop_edges(graph.adjacency, p, np.random.default_rng(seed))
        assert (kept != kept.T).nnz == 0
        shares.append(1 - kept.nnz / graph.num_edges)
    edges = graph.num_edges / 2
    assert np.mean(shares) == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / edges / 20))
    assert np.std(shares) == pytest.approx(np.sqrt(p * (1 - p) / edges), rel=0.6)  # edges fall independently
    assert (graph.adjacency != before).nnz == 0


def test_every_edge_falls_equally_often() -> None:
    graph = random_graph()
    generator = np.random.default_rng(1)
    kept = sum(drop_edges(graph.adjacency, 0.5, generator).sign().toarray() for _ in range(200))
    counts = kept[graph.adjacency.toarray() > 0]
    assert counts.mean() == pytest.approx(100, abs=1)
    assert counts.std() == pytest.approx(np.sqrt(50), rel=0.05)


def test_same_seed_same_view() -> None:
    graph = random_graph()
    first, again, other = (drop_edges(graph.adjacency, 0.4, np.random.default_rng(s)) for s in (1, 1, 2))
    assert (first != again).nnz == 0
    assert (first != other).nnz > 0


def test_an_empty_graph_stays_empty() -> None:
    assert drop_edges(Graph.from_edges([], [], num_nodes=3).adjacency, 0.5, np.random.default_rng(0)).nnz == 0


def test_feature_columns_are_dropped_at_the_asked_rate() -> None:
    keep = drop_feature_columns(10_000, 0.3, np.random.default_rng(0))
    assert keep.dtype == np.bool_
    assert keep.mean() == pytest.approx(0.7, abs=0.02)
    np.testing.assert_array_equal(keep, drop_feature_columns(10_000, 0.3, np.random.default_rng(0)))
    assert drop_feature_columns(5, 0.0, np.random.default_rng(0)).all()
    assert not drop_feature_columns(5, 1.0, np.random.default_rng(0)).any()
