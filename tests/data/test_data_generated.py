"""Graphs without files: the digits and the block model."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodejepa.data import CATALOGUE, load_dataset
from nodejepa.data.synthetic import ARXIV_LIKE, SyntheticSpec, _BlockModel, make_synthetic
from nodejepa.errors import ConfigError
from nodejepa.machine import TooLarge

SMALL = SyntheticSpec(nodes=2000, edges=16_000, features=6, classes=5, seed=3)


def within_class_share(dataset):
    source, target, _ = dataset.graph.edge_arrays()
    return np.mean(dataset.labels[source] == dataset.labels[target])


# ---------------------------------------------------------------- digits


@pytest.mark.slow
def test_digits_is_the_naive_nearest_neighbour_graph():
    dataset = load_dataset("digits")
    assert dataset.class_names == tuple("0123456789")
    features = dataset.graph.features
    assert features.dtype == np.float32
    assert (features.min(), features.max()) == (0, 1)
    pixels = np.rint(features * 16).astype(int)
    naive = set()
    for i in range(len(pixels)):
        distances = ((pixels - pixels[i]) ** 2).sum(axis=1).tolist()
        nearest = sorted((d, j) for j, d in enumerate(distances) if j != i)[:10]
        naive |= {(i, j) for _, j in nearest} | {(j, i) for _, j in nearest}
    source, target, weight = dataset.graph.edge_arrays()
    assert set(zip(source.tolist(), target.tolist(), strict=True)) == naive
    assert np.all(weight == 1)
    assert within_class_share(dataset) > 0.9


# ---------------------------------------------------------------- synthetic


@pytest.mark.slow
@given(
    st.integers(2, 200),
    st.floats(0, 1),
    st.integers(1, 9),
    st.floats(0, 1),
    st.floats(2.01, 4),
    st.floats(0.001, 1),
    st.integers(0, 1000),
)
def test_any_spec_gives_exactly_the_edges_it_asks_for(nodes, fill, classes, homophily, exponent, share, seed):
    edges = 2 * int(fill * nodes * (nodes - 1) / 4)
    spec = SyntheticSpec(
        nodes, edges, 3, min(classes, nodes), homophily, exponent, max_degree_share=share, seed=seed
    )
    dataset = make_synthetic(spec)
    graph = dataset.graph
    assert (graph.num_nodes, graph.num_edges, graph.num_features) == (nodes, edges, 3)
    assert np.all(np.bincount(dataset.labels, minlength=spec.classes) >= 1)
    assert graph.features.dtype == np.float32
    assert np.all(np.isfinite(graph.features))
    adjacency = graph.adjacency.toarray()
    assert np.array_equal(adjacency, adjacency.T)
    assert not adjacency.diagonal().any()
    assert set(np.unique(adjacency)) <= {0, 1}


def test_same_spec_same_bits_and_other_seed_other_graph():
    one, again = make_synthetic(SMALL), make_synthetic(SMALL)
    other = make_synthetic(dataclasses.replace(SMALL, seed=4))
    assert one.graph.content_hash == again.graph.content_hash != other.graph.content_hash
    assert np.array_equal(one.labels, again.labels)


def test_adjacency_is_what_the_checking_constructor_would_build():
    graph = make_synthetic(SMALL).graph
    rebuilt = type(graph).from_edges(*graph.edge_arrays()[:2], features=graph.features, direction="check")
    assert rebuilt.content_hash == graph.content_hash
    assert graph.adjacency.indices.dtype == np.int32


def test_draws_follow_the_block_model_formula():
    """P(edge i -> j) = w_i / W * (h * w_j / W_same if same class else (1 - h) * w_j / W_other)."""
    labels = np.array([1, 0, 1, 2, 0, 2])
    weights = np.array([3, 1, 2, 5, 4, 1])
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels, weights=weights).astype(int)
    last = np.cumsum(sizes)
    model = _BlockModel(labels, np.repeat(order, weights[order]).astype(np.int32), last - sizes, last, 0.6)
    draws = 400_000
    source, target = model.draw(draws, np.random.default_rng(0))
    found = np.zeros((6, 6))
    np.add.at(found, (source, target), 1 / draws)
    for i in range(6):
        for j in range(6):
            same = labels[i] == labels[j]
            pool = weights[labels == labels[i]].sum() if same else weights[labels != labels[i]].sum()
            chance = weights[i] / weights.sum() * (0.6 if same else 0.4) * weights[j] / pool
            assert abs(found[i, j] - chance) < 5 * math.sqrt(chance / draws)


@pytest.mark.parametrize("homophily", [0.1, 0.5, 0.8])
def test_homophily_is_what_was_asked_for(homophily):
    dataset = make_synthetic(SyntheticSpec(nodes=20_000, edges=200_000, features=1, homophily=homophily))
    assert abs(within_class_share(dataset) - homophily) < 0.02


def test_default_graph_has_classes_hubs_and_features_that_tell_a_little():
    dataset = load_dataset("synthetic")
    sizes = np.bincount(dataset.labels)
    assert np.all(np.diff(sizes) < 0)
    degrees = dataset.graph.degrees
    assert degrees.max() > 50 * np.median(degrees)
    # random order: neither class nor degree runs along the node numbers
    position = np.arange(dataset.graph.num_nodes)
    assert abs(np.corrcoef(position, dataset.labels)[0, 1]) < 0.04
    assert abs(np.corrcoef(position, degrees)[0, 1]) < 0.04
    features, labels = dataset.graph.features, dataset.labels
    centres = np.stack([features[labels == c].mean(axis=0) for c in range(8)])
    distance = ((features[:, None, :] - centres[None]) ** 2).sum(axis=2)
    accuracy = np.mean(distance.argmin(axis=1) == labels)
    assert 0.3 < accuracy < 0.9


@pytest.mark.slow
def test_arxiv_preset_has_arxivs_size_and_hubs():
    dataset = load_dataset("synthetic-arxiv")
    degrees = dataset.graph.degrees
    assert 10_000 < degrees.max() < 16_000  # the real one: 13,161
    assert 5 <= np.median(degrees) <= 7  # 6
    assert abs(degrees.mean() - 13.67) < 0.01
    assert abs(within_class_share(dataset) - 0.65) < 0.02
    arxiv, preset = CATALOGUE["arxiv"], CATALOGUE["synthetic-arxiv"]
    for count in ("nodes", "edges", "features", "classes"):
        assert getattr(arxiv, count) == getattr(preset, count) == getattr(ARXIV_LIKE, count)


@pytest.mark.parametrize(
    "changes",
    [
        {"nodes": 1}, {"edges": 3}, {"edges": -2}, {"nodes": 4, "edges": 8, "classes": 2}, {"features": 0},
        {"classes": 0}, {"nodes": 10, "edges": 20, "classes": 11}, {"homophily": 1.5},
        {"homophily": math.nan}, {"degree_exponent": 2.0}, {"max_degree_share": 0.0}, {"seed": -1},
        {"feature_noise": -1.0}, {"nodes": 10.5}, {"nodes": "ten"}, {"seed": True},
    ],
    ids=str,
)  # fmt: skip
def test_impossible_specs_are_refused(changes):
    with pytest.raises(ConfigError):
        SyntheticSpec(**changes)


@pytest.mark.parametrize("text", ["", "nodes", "nodes=", "nodes=ten", "nodes=1.5", "colour=3", "=", ","])
def test_bad_settings_are_refused(text):
    with pytest.raises(ConfigError):
        load_dataset(f"synthetic:{text}")


def test_settings_are_read():
    graph = load_dataset("synthetic:seed=5, homophily=1,nodes=2_000,edges=400,features=2").graph
    spec = SyntheticSpec(nodes=2000, edges=400, features=2, homophily=1.0, seed=5)
    assert graph.content_hash == make_synthetic(spec).graph.content_hash


def test_a_graph_beyond_memory_is_refused_before_it_is_made():
    with pytest.raises(TooLarge, match=r"2,000,000,000 nodes.* needs about"):
        load_dataset("synthetic:nodes=2000000000,edges=4000000000")
