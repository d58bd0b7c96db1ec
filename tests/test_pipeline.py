"""Embeddings in scikit-learn's pipelines, searches and cross-validations; its own checks where they apply."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from nodejepa.data import load_dataset
from nodejepa.demo import DEMO_METHODS, run_demo, write_as_csv
from nodejepa.errors import ConfigError, DataError, EvaluationError, GraphError
from nodejepa.graph import Graph
from nodejepa.methods import METHODS, UNTRAINED, NodeJEPA, make_method
from nodejepa.pipeline import NodeEmbedder
from nodejepa.tables import read_embeddings, read_graph

NAMES = np.array(["ann", "bob", "eve", "=1"])
GRAPH = Graph.from_edges([0, 1, 2], [1, 2, 3], features=np.eye(4), node_ids=NAMES)
Z = make_method("random-gcn", seed=3).fit(GRAPH).transform(GRAPH)

# scikit-learn's checks hand over matrices of features; what they mean to see is tested on nodes below.
_NODES = "X is nodes of the graph, the check's X is a matrix of features"
_UNREAD = "fit does not read X: it trains on the whole graph"
EXPECTED_FAILURES = {
    "check_fit_score_takes_y": _NODES,
    "check_estimators_dtypes": _NODES,
    "check_pipeline_consistency": _NODES,
    "check_estimators_pickle": _NODES,
    "check_f_contiguous_array_estimator": _NODES,
    "check_transformer_general": _NODES,
    "check_transformer_preserve_dtypes": _NODES,
    "check_methods_sample_order_invariance": _NODES,
    "check_methods_subset_invariance": _NODES,
    "check_dict_unchanged": _NODES,
    "check_fit_idempotent": _NODES,
    "check_estimator_sparse_tag": _UNREAD,
    # it hands over an argument that does not exist, as any class refuses it; here with the right name
    "check_do_not_raise_errors_in_init_or_set_params": "unknown arguments are refused at once",
}


@pytest.fixture
def embedder():
    return NodeEmbedder(GRAPH, "random-gcn", seed=3)


@pytest.mark.slow
def test_scikit_learns_own_checks(embedder):
    results = check_estimator(embedder, expected_failed_checks=EXPECTED_FAILURES, on_fail=None, on_skip=None)
    by_status = {
        status: {r["check_name"] for r in results if r["status"] == status}
        for status in ("passed", "failed", "xfail")
    }
    assert not by_status["failed"], [r for r in results if r["status"] == "failed"]
    assert by_status["xfail"] == EXPECTED_FAILURES.keys(), "a check passes now: take it off the list"
    assert {"check_estimator_cloneable", "check_set_params", "check_get_params_invariance"} <= by_status[
        "passed"
    ]


@pytest.mark.parametrize(
    "nodes",
    [
        NAMES[[2, 0]],
        NAMES[[2, 0]].astype(object),
        NAMES[[2, 0]].reshape(-1, 1),
        ["eve", "ann"],
        [["eve"], ["ann"]],
        pd.Series(["eve", "ann"]),
        pd.DataFrame({"node": ["eve", "ann"]}),
    ],
)
def test_nodes_in_any_container_give_their_rows(embedder, nodes):
    """Also: any order and any subset give the same rows, and fitting twice changes nothing."""
    before = dict(embedder.fit().__dict__)
    np.testing.assert_array_equal(embedder.transform(nodes), Z[[2, 0]])
    assert embedder.__dict__ == before
    np.testing.assert_array_equal(embedder.fit_transform(nodes, [0, 1]), Z[[2, 0]])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(embedder)).transform(nodes), Z[[2, 0]])


def test_a_mask_is_refused(embedder):
    numbered = NodeEmbedder(Graph.from_edges([0, 1, 2], [1, 2, 3], features=np.eye(4)), "raw").fit()
    for fitted in (embedder.fit(), numbered):
        mask = np.arange(len(fitted.node_ids_)) % 2 == 0
        for given in (mask, mask.tolist(), pd.Series(mask)):
            with pytest.raises(DataError, match="a mask of True and False"):
                fitted.transform(given)


def test_graphs_without_ids_and_of_other_libraries():
    numbered = Graph.from_edges([0, 1, 2], [1, 2, 3], features=np.eye(4))
    for nodes in ([3, 1], np.array([[3], [1]]), np.array([3, 1], dtype=np.uint8)):
        found = NodeEmbedder(numbered, "random-gcn", seed=3).fit(nodes).transform(nodes)
        np.testing.assert_array_equal(found, Z[[3, 1]])
    assert NodeEmbedder(numbered, "raw").fit().transform([]).shape == (0, 4)


def test_clones_share_the_graph_and_nothing_else():
    first = NodeEmbedder(GRAPH, "nodejepa", settings={"epochs": 1}).fit()
    second = clone(first)
    assert second.graph is GRAPH
    assert second.get_params() == first.get_params()
    assert second.settings is not first.settings
    assert not hasattr(second, "embedding_")
    assert clone(make_pipeline(first))[0].graph is GRAPH


def test_frames_with_names_of_columns(embedder):
    frame = embedder.set_output(transform="pandas").fit().transform(pd.Series(["eve", "ann"], index=[7, 9]))
    assert frame.index.tolist() == [7, 9]
    assert frame.columns[1] == "nodeembedder1"
    np.testing.assert_array_equal(frame.to_numpy(), Z[[2, 0]])


@pytest.mark.slow
def test_pipeline_and_search_on_a_real_graph():
    data = load_dataset("digits")
    split = data.split(seed=1)
    pipeline = Pipeline(
        [("embed", NodeEmbedder(data.graph, "sgc")), ("classify", LogisticRegression(max_iter=1000))]
    )
    search = GridSearchCV(
        pipeline, {"embed__settings": [{"hops": 0}, {"hops": 2}], "classify__C": [0.01]}, cv=3, n_jobs=1
    )
    search.fit(split.train, data.labels[split.train])
    assert search.best_params_["embed__settings"] in ({"hops": 0}, {"hops": 2})
    assert search.score(split.test, data.labels[split.test]) > 0.8
    by_hand = make_method("sgc", settings=search.best_params_["embed__settings"]).fit(data.graph)
    z = by_hand.transform(data.graph)
    model = LogisticRegression(max_iter=1000, C=0.01).fit(z[split.train], data.labels[split.train])
    np.testing.assert_array_equal(search.predict(split.test), model.predict(z[split.test]))


@pytest.mark.slow
def test_frozen_embedder_trains_once(monkeypatch):
    data = load_dataset("digits")
    embedder = NodeEmbedder(data.graph, "raw").fit()
    monkeypatch.setattr(NodeEmbedder, "fit", lambda *_: pytest.fail("trained again"))
    model = make_pipeline(FrozenEstimator(embedder), LogisticRegression(max_iter=1000))
    nodes = data.split(seed=1).train
    assert cross_val_score(model, nodes, data.labels[nodes], cv=2).shape == (2,)


@pytest.mark.parametrize(
    ("use", "error", "match"),
    [
        (lambda: NodeEmbedder().fit(), GraphError, "no graph to embed"),
        (lambda: NodeEmbedder("graph").fit(), GraphError, "a str is not a graph"),
        (lambda: NodeEmbedder(GRAPH, "nodejpea").fit(), ConfigError, "Did you mean nodejepa"),
        (lambda: NodeEmbedder(GRAPH, "sgc", settings={"hop": 1}).fit(), ConfigError, "Did you mean hops"),
        (lambda: NodeEmbedder(GRAPH, device="tpu").fit(), ConfigError, "device 'tpu' is unknown"),
        (lambda: NodeEmbedder(GRAPH, seed=-1).fit(), ConfigError, "seed is -1"),
        (lambda: NodeEmbedder(GRAPH, "supervised-gcn").fit(), ConfigError, "learns from labels"),
        (lambda: NodeEmbedder(GRAPH).transform(["ann"]), NotFittedError, "not fitted"),
        (lambda: NodeEmbedder(GRAPH, "raw").fit().transform(["Ann"]), DataError, "Did you mean 'ann'"),
        (lambda: NodeEmbedder(GRAPH, "raw").fit().transform([["ann", "bob"]]), DataError, "no node"),
        (
            lambda: NodeEmbedder(GRAPH, "raw").fit().transform(np.eye(3)),
            EvaluationError,
            "one column of nodes",
        ),
        (lambda: NodeEmbedder(GRAPH, "raw").fit().transform("ann"), EvaluationError, "one column"),
    ],
)
def test_mistakes_are_explained(use, error, match):
    with pytest.raises(error, match=match):
        use()


def test_what_does_not_fit_is_not_trained(monkeypatch):
    monkeypatch.setattr(NodeJEPA, "fit", lambda *_, **__: pytest.fail("it trains"))
    with pytest.raises(ConfigError, match="memory plan"):
        NodeEmbedder(GRAPH, "nodejepa", memory_limit=0.001).fit()


# ---------------------------------------------------------------- the demo


@pytest.mark.slow
def test_the_demo_leaves_a_graph_its_embeddings_and_a_page(tmp_path, monkeypatch, small_digits):
    monkeypatch.setattr("nodejepa.demo.load_dataset", lambda _: small_digits)
    (tmp_path / "report.html").write_text("of the last time")
    found = run_demo(tmp_path, methods=("raw", "nodejepa"), epochs=1)
    assert [row.method for row in found.rows] == ["linear-jepa", "raw", "nodejepa", "edges-only"]
    assert found.recommendation.by_labels
    assert "1 of its 300 epochs" in found.notes[0]
    loaded = read_graph(tmp_path / "edges.csv", nodes=tmp_path / "nodes.csv", labels="label")
    stored = read_embeddings(tmp_path / "embeddings.parquet")
    assert stored.ids.tolist() == loaded.graph.node_ids.tolist()
    page = (tmp_path / "report.html").read_text()
    for shown in (
        "1 of its 300 epochs",
        "How NodeJEPA was trained",
        "loss and its terms",
        "The mask of one training step",
    ):
        assert shown in page


def test_the_demo_compares_learned_methods_with_untrained_ones():
    learned = {name for name in DEMO_METHODS if METHODS[name].trained}
    assert learned == {"linear-jepa", "nodejepa", "patchjepa"}
    assert set(DEMO_METHODS) - learned <= set(UNTRAINED)


@pytest.mark.slow
def test_the_demo_graph_comes_back_from_its_files(tmp_path):
    digits = load_dataset("digits")
    edges, nodes = write_as_csv(digits, tmp_path)
    loaded = read_graph(edges, nodes=nodes, labels="label")
    assert loaded.graph.node_ids[17] == "digits-0017"
    assert (loaded.graph.adjacency != digits.graph.adjacency).nnz == 0
    assert loaded.class_names == tuple("0123456789")
    np.testing.assert_array_equal(loaded.labels, digits.labels)
