import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference.masking as reference
from nodejepa.errors import GraphError
from nodejepa.graph import Graph
from nodejepa.masking.augment import drop_edges, drop_feature_columns
from nodejepa.masking.patches import Patches, patch_descriptors
from nodejepa.structure import local_clustering, pagerank, partition
from reference.masking import splitmix


def random_case(size: int, parts: int, degree: float, seed: int, direction: str) -> tuple[Graph, np.ndarray]:
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, size, (2, int(degree * size)))
    graph = Graph.from_edges(ends[0], ends[1], num_nodes=size, direction=direction)
    part = rng.permutation(np.concatenate([np.arange(parts), rng.integers(0, parts, size - parts)]))
    return graph, part


@pytest.mark.slow
@given(
    size=st.integers(5, 50),
    parts=st.integers(1, 5),
    degree=st.sampled_from([0.0, 1.0, 3.0]),
    seed=st.integers(0, 500),
    direction=st.sampled_from(["symmetrize", "keep"]),
    hops=st.integers(0, 3),
)
def test_equals_sets_made_one_by_one(
    size: int, parts: int, degree: float, seed: int, direction: str, hops: int
) -> None:
    graph, part = random_case(size, parts, degree, seed, direction)
    twin = nx.from_scipy_sparse_array(graph.adjacency)  # undirected: either direction makes a neighbour
    patches = Patches.from_partition(graph, part, hops=hops)
    assert len(patches) == parts
    assert (patches.pooling.dtype, patches.pooling.indices.dtype) == (np.float32, np.int32)
    embeddings = np.random.default_rng(seed).normal(size=(size, 3))
    pooled = patches.pooling @ embeddings
    for patch in range(parts):
        core = np.flatnonzero(part == patch).tolist()
        around = sorted({near for node in core for near in nx.ego_graph(twin, node, radius=hops)})
        assert patches.expanded(patch).tolist() == around
        np.testing.assert_allclose(pooled[patch], embeddings[around].mean(axis=0), rtol=1e-5, atol=1e-6)


def test_samples_are_distinct_reproducible_and_reach_every_patch() -> None:
    patches = Patches.from_partition(*random_case(50, 10, 2.0, 0, "symmetrize"))
    generator, seen = np.random.default_rng(0), np.zeros((2, 10), dtype=int)
    for _ in range(400):
        context, targets = patches.sample(generator)
        assert context.shape == (1,)
        assert targets.shape == (4,)
        assert np.unique([*context, *targets]).size == 5
        seen[0, context] += 1
        seen[1, targets] += 1
    assert np.all(np.abs(seen[0] - 40) < 30)
    assert np.all(np.abs(seen[1] - 160) < 60)
    first, again = (patches.sample(np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(np.concatenate(first), np.concatenate(again))


@pytest.mark.parametrize(
    ("parts", "contexts", "targets", "expected"),
    [(5, 1, 4, (1, 4)), (3, 1, 4, (1, 2)), (2, 1, 4, (1, 1)), (3, 5, 4, (2, 1)), (8, 3, 2, (3, 2))],
)
def test_few_patches_mean_fewer_targets(
    parts: int, contexts: int, targets: int, expected: tuple[int, int]
) -> None:
    patches = Patches.from_partition(*random_case(30, parts, 2.0, 0, "symmetrize"))
    drawn = patches.sample(np.random.default_rng(0), contexts, targets)
    assert (drawn[0].size, drawn[1].size) == expected
    assert np.unique(np.concatenate(drawn)).size == sum(expected)


def test_a_single_patch_cannot_be_sampled() -> None:
    patches = Patches.from_partition(Graph.from_edges([0], [1]), np.zeros(2, dtype=int))
    with pytest.raises(GraphError, match="single patch"):
        patches.sample(np.random.default_rng(0))


def test_descriptors_are_standardised_means_of_expanded_patches(toy_graph: Graph) -> None:
    patches = Patches.from_partition(toy_graph, partition(toy_graph, 6, cache=False))
    node_values = [toy_graph.degrees, pagerank(toy_graph), local_clustering(toy_graph)]
    raw = np.array(
        [
            [values[patches.expanded(patch)].mean() for values in node_values]
            + [patches.expanded(patch).size / 60]
            for patch in range(6)
        ]
    )
    got = patch_descriptors(toy_graph, patches, cache=False)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, (raw - raw.mean(axis=0)) / raw.std(axis=0), atol=1e-4)
    ring = Graph.from_edges(range(12), np.roll(range(12), 1))
    alike = Patches.from_partition(ring, np.arange(12) // 3)
    np.testing.assert_array_equal(patch_descriptors(ring, alike, cache=False), 0)


# ---------------------------------------------------------------- augmented views


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
    nothing = Graph.from_edges([], [], num_nodes=3).adjacency
    assert drop_edges(nothing, p, np.random.default_rng(0)).nnz == 0


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


def test_feature_columns_are_dropped_at_the_asked_rate() -> None:
    keep = drop_feature_columns(10_000, 0.3, np.random.default_rng(0))
    assert keep.dtype == np.bool_
    assert keep.mean() == pytest.approx(0.7, abs=0.02)
    np.testing.assert_array_equal(keep, drop_feature_columns(10_000, 0.3, np.random.default_rng(0)))
    assert drop_feature_columns(5, 0.0, np.random.default_rng(0)).all()
    assert not drop_feature_columns(5, 1.0, np.random.default_rng(0)).any()
