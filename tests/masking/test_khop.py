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


def test_ratio_and_hops_move_linearly_and_then_stay() -> None:
    ratios, hops = zip(*(MaskingConfig().at(epoch) for epoch in range(60)), strict=True)
    assert ratios == pytest.approx([0.2 + 0.3 * min(epoch, 50) / 50 for epoch in range(60)])
    assert hops == (*[1] * 25, *[2] * 35)
    assert MaskingConfig(curriculum_epochs=0).at(0) == (0.5, 2)
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
