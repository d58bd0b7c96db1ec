import importlib

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference.masking as reference
from nodejepa.errors import ConfigError
from nodejepa.graph import Graph
from nodejepa.masking.khop import khop_mask
from nodejepa.methods.nodejepa import MaskingConfig


def random_graph(size: int, degree: float, seed: int, direction: str = "symmetrize") -> Graph:
    rng = np.random.default_rng(seed)
    count = int(degree * size)
    ends = rng.integers(0, size, (2, count))
    return Graph.from_edges(ends[0], ends[1], num_nodes=size, direction=direction)


@given(
    size=st.integers(1, 60),
    degree=st.sampled_from([0.0, 0.5, 1.0, 2.0, 8.0]),
    direction=st.sampled_from(["symmetrize", "keep"]),
    ratio=st.floats(0, 1),
    hops=st.integers(0, 5),
    cap=st.none() | st.integers(1, 12),
    seed=st.integers(0, 1000),
)
def test_equals_the_naive_twin(size, degree, direction, ratio, hops, cap, seed) -> None:
    graph = random_graph(size, degree, seed, direction)
    mask = khop_mask(graph, ratio, hops, np.random.default_rng(seed), max_neighbours=cap)
    twin = reference.khop_mask(graph, ratio, hops, np.random.default_rng(seed), cap=cap)
    np.testing.assert_array_equal(mask, twin)
    assert mask.sum() == round(ratio * size)


def test_a_cap_that_no_node_reaches_changes_nothing_but_the_draw() -> None:
    graph = random_graph(200, 3, 0)
    generator = np.random.default_rng(1)
    generator.integers(2**64, dtype=np.uint64)  # the capped search's key
    np.testing.assert_array_equal(
        khop_mask(graph, 0.4, 2, np.random.default_rng(1), max_neighbours=200),
        khop_mask(graph, 0.4, 2, generator),
    )


def test_a_cap_keeps_hubs_from_filling_the_mask() -> None:
    star = Graph.from_edges([0] * 99, range(1, 100))

    def overlap(cap: int | None) -> float:
        one, two = (khop_mask(star, 0.3, 2, np.random.default_rng(s), max_neighbours=cap) for s in (0, 1))
        return (one & two).sum() / 30

    assert overlap(None) > 0.9  # one seed fills the mask with the hub's first neighbours
    assert overlap(5) < 0.6


@pytest.mark.parametrize("ratio", [0.01, 0.5, 1.0])
@pytest.mark.parametrize("hops", [0, 1, 2])
def test_the_way_of_large_graphs_equals_the_naive_twin(
    hops: int, ratio: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("nodejepa.masking.khop")
    monkeypatch.setattr(module, "WHOLE_ORDER_UP_TO", 10)
    monkeypatch.setattr(module, "_FIRST_SEEDS", 8)
    graph = random_graph(80, 2.0, 0)
    for seed in range(5):
        fast = khop_mask(graph, ratio, hops, np.random.default_rng(seed))
        twin = reference.khop_mask(graph, ratio, hops, np.random.default_rng(seed), first=8)
        np.testing.assert_array_equal(fast, twin)
        assert fast.sum() == round(ratio * 80)


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_equals_the_naive_twin_around_hubs(hops: int) -> None:
    graph = Graph.from_scipy(nx.to_scipy_sparse_array(nx.barabasi_albert_graph(2000, 4, seed=0)))
    for seed, ratio in enumerate([0.01, 0.2, 0.5, 0.9, 1.0]):
        fast = khop_mask(graph, ratio, hops, np.random.default_rng(seed))
        np.testing.assert_array_equal(
            fast, reference.khop_mask(graph, ratio, hops, np.random.default_rng(seed))
        )


@pytest.mark.parametrize("hops", [1, 2])
def test_every_masked_node_hangs_on_a_masked_seed(hops: int) -> None:
    graph = random_graph(300, 1.2, 4)
    mask = khop_mask(graph, 0.4, hops, np.random.default_rng(1))
    seeds = np.random.default_rng(1).permutation(np.arange(300, dtype=np.int32))
    twin = nx.from_scipy_sparse_array(graph.adjacency[mask][:, mask])  # masked nodes only: paths stay inside
    position = np.cumsum(mask) - 1
    covered: set[int] = set()
    for seed in seeds:
        if len(covered) == mask.sum():
            break
        assert mask[seed], "seeds are used in order, so one that was needed is masked"
        covered |= set(nx.single_source_shortest_path_length(twin, int(position[seed]), cutoff=hops))
    assert len(covered) == mask.sum()


def test_same_seed_same_mask_other_seed_another() -> None:
    graph = random_graph(500, 3, 0)
    first, again, other = (khop_mask(graph, 0.3, 1, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)


def test_directed_balls_follow_outgoing_edges() -> None:
    star = Graph.from_edges([0] * 9, range(1, 10), direction="keep")  # node 0 points at all others
    for seed in range(20):
        mask = khop_mask(star, 0.5, 1, np.random.default_rng(seed))
        order = np.random.default_rng(seed).permutation(np.arange(10, dtype=np.int32))
        before_hub = order[: np.flatnonzero(order == 0)[0]][:5]
        assert mask[before_hub].all()
        assert mask[0] == (before_hub.size < 5)


def test_nothing_and_everything() -> None:
    graph = random_graph(50, 1, 0)
    assert not khop_mask(graph, 0.0, 2, np.random.default_rng(0)).any()
    assert khop_mask(graph, 1.0, 2, np.random.default_rng(0)).all()
    assert khop_mask(Graph.from_edges([], [], num_nodes=8), 0.5, 2, np.random.default_rng(0)).sum() == 4


def test_ratio_is_linear_and_then_stays() -> None:
    ratios = [MaskingConfig().at(epoch)[0] for epoch in range(60)]
    assert ratios[:51] == pytest.approx([0.2 + 0.3 * epoch / 50 for epoch in range(51)])
    assert set(ratios[50:]) == {0.5}


def test_hops_switch_half_way() -> None:
    hops = [MaskingConfig().at(epoch)[1] for epoch in range(60)]
    assert hops == [1] * 25 + [2] * 35


def test_disabled_means_end_values_from_the_start() -> None:
    assert MaskingConfig(curriculum_epochs=0).at(0) == (0.5, 2)


def test_more_hops_and_falling_ratios_work() -> None:
    steep = MaskingConfig(ratio_start=0.6, ratio=0.4, hops_start=1, hops=4, curriculum_epochs=6)
    assert [steep.at(epoch)[1] for epoch in range(8)] == [1, 2, 2, 3, 3, 4, 4, 4]
    assert steep.at(3)[0] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("setting", "bad"),
    [
        ("ratio_start", 0.0),
        ("ratio", 1.0),
        ("ratio", float("nan")),
        ("hops_start", -1),
        ("hops", 1.5),
        ("curriculum_epochs", -1),
        ("curriculum_epochs", True),
    ],
)
def test_bad_ranges_are_refused_by_the_name_of_the_setting(setting: str, bad: float) -> None:
    with pytest.raises(ConfigError, match=rf"^masking\.{setting} is {bad}"):
        MaskingConfig(**{setting: bad})
