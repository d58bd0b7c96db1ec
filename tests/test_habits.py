"""What people who know scikit-learn, NetworkX, PyG and pandas expect to work, or to be told the name of."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import nodejepa
from nodejepa import Graph, NodeEmbedder, linear_probe, make_method
from nodejepa.config import DEFAULT_METHOD
from nodejepa.data.splits import default_splits
from nodejepa.errors import ConfigError, EvaluationError
from nodejepa.methods import METHODS, UNTRAINED
from nodejepa.workflow import embed_graph

RING = Graph.from_edges(np.arange(20), (np.arange(20) + 1) % 20, features=np.eye(20))
SMALL = {"epochs": 1, "encoder.hidden": 8}
NAMES = [entry.name for entry in METHODS.values() if not entry.supervised]


def made(name):
    floor_or_closed = name in UNTRAINED or not METHODS[name].by_gradient
    return make_method(name, seed=3, settings={} if floor_or_closed else SMALL)


@pytest.mark.parametrize("name", NAMES)
def test_every_method_has_the_habits_of_an_estimator(name):
    method = made(name)
    both = method.fit_transform(RING)
    again = clone(method)
    apart = again.fit(RING).transform(RING)
    dense = [z if isinstance(z, np.ndarray) else z.toarray() for z in (both, apart, method.embedding_)]
    np.testing.assert_array_equal(dense[0], dense[1])
    np.testing.assert_array_equal(dense[0], dense[2])
    assert again.get_params() == method.get_params()
    assert not hasattr(clone(method), "embedding_")
    assert clone(method).set_params(seed=5).get_params()["seed"] == 5
    assert again.get_feature_names_out().tolist() == [f"z{j}" for j in range(dense[0].shape[1])]


def test_frames_come_out_where_they_are_asked_for():
    named = nodejepa.load_graph(pd.DataFrame({"source": ["ann", "bob"], "target": ["bob", "cid"]}))
    method = nodejepa.LinearJEPA().set_output(transform="pandas")
    for made in (method, clone(method)):
        frame = made.fit_transform(named)
        assert frame.index.tolist() == named.node_ids.tolist()
        assert frame.columns.tolist() == made.get_feature_names_out().tolist()
    np.testing.assert_array_equal(method.set_output(transform="default").transform(named), frame)
    with pytest.raises(ConfigError, match="output 'polars' is unknown"):
        method.set_output(transform="polars")
    with pytest.raises(ConfigError, match="not been fitted"):
        nodejepa.LinearJEPA().get_feature_names_out()


def test_parameters_are_the_constructors_and_are_checked():
    method = nodejepa.NodeJEPA(preset="paper", epochs=7, seed=2)
    params = method.get_params()
    assert params["training.epochs"] == 7
    assert nodejepa.NodeJEPA(**params).get_params() == params
    method.set_params(epochs=9, **{"masking.hops": 1})
    assert (method.config.training.epochs, method.config.masking.hops) == (9, 1)
    with pytest.raises(ConfigError, match="Did you mean"):
        method.set_params(epoch=3)
    assert method.config.training.epochs == 9


@pytest.mark.parametrize("name", ["dim", "embedding_dim", "n_components", "out_dim"])
@pytest.mark.parametrize("method", ["linear-jepa", "nodejepa", "patchjepa", "dgi", "bgrl", "random-gcn"])
def test_the_width_is_understood_by_its_other_names(method, name):
    small = {} if method in ("linear-jepa", "random-gcn") else {"epochs": 0}
    found = make_method(method, settings={**small, name: 12}).fit(RING).transform(RING)
    assert found.shape == (20, 12)


@pytest.mark.parametrize(
    ("use", "match"),
    [
        (lambda: NodeEmbedder(RING, random_state=3), "It is called seed here"),
        (lambda: NodeEmbedder(RING, overrides={"epochs": 3}), "It is called settings here"),
        (lambda: NodeEmbedder(RING, embedding_dim=64), r'settings=\{"embedding_dim": 64\}'),
        (lambda: NodeEmbedder(RING, epochs=3), r'settings=\{"epochs": 3\}'),
        (lambda: NodeEmbedder(RING, presets="paper"), "Did you mean preset"),
        (lambda: nodejepa.NodeJEPA(preset="paper", random_state=3), "It is called seed here"),
        (lambda: nodejepa.LinearJEPA(random_state=3), "It is called seed here"),
        (lambda: make_method("sgc", overrides={"hops": 1}), "It is called settings here"),
        (lambda: make_method("sgc", random_state=1), "It is called seed here"),
        (lambda: make_method("nodejepa", settings={"training.units": 2}), "It is called micro_batches here"),
        (lambda: embed_graph("e.csv", out="z.npy", overrides={}), "It is called settings here"),
        (lambda: embed_graph("e.csv", out="z.npy", label="y"), "It is called labels here"),
        (lambda: embed_graph("e.csv", out="z.npy", sources="y"), "Did you mean source"),
    ],
)
def test_names_of_other_libraries_are_answered_with_ours(use, match):
    with pytest.raises(ConfigError, match=match):
        use()


def test_one_method_is_the_default_everywhere():
    import inspect

    from nodejepa.cli.models import pretrain
    from nodejepa.cli.own_graph import embed_graph as embed_command

    for where in (NodeEmbedder, embed_graph, embed_command, pretrain):
        assert inspect.signature(where).parameters["method"].default == DEFAULT_METHOD == "linear-jepa"
    np.testing.assert_array_equal(
        NodeEmbedder(RING).fit().embedding_, nodejepa.LinearJEPA().fit_transform(RING)
    )


def test_a_probe_without_splits_takes_the_five_of_the_house():
    labels = np.repeat([0, 1, 2], 50)
    z = np.random.default_rng(0).normal(size=(150, 4)) + labels[:, None]
    told = linear_probe(z, labels, default_splits(labels))
    assert linear_probe(z, labels).to_dict() == told.to_dict()
    assert [score.seed for score in told.scores] == [42, 43, 44, 45, 46]
    with pytest.raises(EvaluationError, match="too few for a score"):
        linear_probe(z[:4], [0, 1, 0, -1])


def test_without_features_the_structure_describes_the_nodes_as_on_the_command_line(tmp_path):
    club = nx.karate_club_graph()
    pairs = pd.DataFrame(list(club.edges), columns=["source", "target"])
    by_files = embed_graph(pairs, out=tmp_path / "z.parquet", report=False)
    graph = nodejepa.load_graph(pairs).with_features(np.zeros((34, 0)))
    np.testing.assert_array_equal(NodeEmbedder(graph).fit().embedding_, by_files.embeddings)
    np.testing.assert_array_equal(nodejepa.LinearJEPA().fit_transform(graph), by_files.embeddings)
    assert make_method("sgc").fit_transform(club).shape == (34, 139)
