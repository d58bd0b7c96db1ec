"""``compare``: every method measured once, nothing lost by a kill, a recommendation with its reasons."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from workflow_files import NODES, people, write

from nodejepa import compare, load_graph, read_embeddings
from nodejepa.errors import CheckpointError, ConfigError, EvaluationError, GraphError
from nodejepa.graph import Graph
from nodejepa.methods import UNTRAINED, load_method, make_method
from nodejepa.workflow import COMPARED, apply_run, node2vec
from nodejepa.workflow.compare import Bench, edges_words
from nodejepa.workflow.recommend import MethodRow, recommend

FEW = ("raw", "random-gcn")


def two_groups(seed=0, nodes=60):
    """A graph whose edges and features know the label."""
    rng = np.random.default_rng(seed)
    labels = np.arange(nodes) % 2
    source, target = rng.integers(0, nodes, (2, 6 * nodes))
    same = (labels[source] == labels[target]) | (rng.random(len(source)) < 0.1)
    x = rng.normal(size=(nodes, 6)).astype(np.float32) + labels[:, None]
    ids = np.array([f"n{i}" for i in range(nodes)])
    graph = Graph.from_edges(source[same], target[same], features=x, num_nodes=nodes, node_ids=ids)
    return graph, labels


def measured(row):
    """Everything but time and memory."""
    return replace(row, seconds=None, memory_mb=None)


# ------------------------------------------------------------------ what comes out


@pytest.mark.slow
def test_every_kind_of_method_is_measured_in_all_respects():
    graph, labels = two_groups()
    made = compare(graph, labels, methods=[*FEW, "nodejepa"], epochs=2)
    assert [row.method for row in made.rows] == ["linear-jepa", *FEW, "nodejepa", "edges-only"]
    for row in made.rows[:-1]:  # what knows every link is asked for none
        assert row.problem is None
        assert len(row.accuracy) == len(row.balanced_accuracy) == len(row.macro_f1) == len(row.roc_auc) == 5
        assert 0 <= row.links_auc <= 1
        assert 0 < row.links_mrr <= 1
        assert row.seconds > 0
        assert row.epochs == (2 if row.method == "nodejepa" else 0)
    best = max(made.rows[:-1], key=lambda row: np.mean(row.accuracy))
    assert np.mean(best.accuracy) == pytest.approx(
        np.mean(next(row.accuracy for row in made.rows if row.method == made.recommendation.method))
    )
    wanted = make_method(made.recommendation.method).fit(graph).transform(graph)
    if made.recommendation.method != "nodejepa":
        np.testing.assert_array_equal(made.embeddings, wanted)
    without = compare(graph, methods=[*FEW, "nodejepa"], epochs=2)  # labels reach no embedding
    for row, blind in zip(made.rows, without.rows, strict=True):
        unlabelled = replace(row, accuracy=(), balanced_accuracy=(), macro_f1=(), roc_auc=())
        assert measured(unlabelled) == measured(blind)


@pytest.mark.slow
def test_from_files_to_the_embeddings_of_the_recommended_method(run, files):
    out = files.folder / "compared"
    said, _ = run.ok(
        *("compare", "--edges", files.edges, "--nodes", files.nodes, "--labels", "team"),
        *("--methods", "sgc,random-gcn,patchjepa", "--epochs", "2", "--out", out),
    )
    result = json.loads((out / "compare.json").read_text())
    *names, edges = [row["method"] for row in result["methods"]]
    assert names == ["linear-jepa", "sgc", "random-gcn", "patchjepa"]
    assert edges == "edges-only"
    assert result["made_of"] == "columns"
    chosen = result["recommendation"]["method"]
    assert result["recommendation"]["by_labels"]
    assert f"Take {chosen}: its test accuracy" in said
    for name in names:
        assert name in said
    ids, z = read_embeddings(out / "embeddings.parquet")
    assert list(ids) == people()[1]["user"].to_pylist()
    graph = load_graph(files.edges, files.nodes, labels="team")
    np.testing.assert_array_equal(z, load_method(out / "runs" / chosen).transform(graph))
    for name in names:  # each can be applied to another graph
        assert len(apply_run(out / "runs" / name, files.edges, files.nodes).embeddings) == NODES
    page = (out / "report.html").read_text()
    assert '"side_by_side":true' in page
    assert "All methods are given the columns as features" in page
    assert all(f'"{name}"' in page for name in names)
    said, _ = run.ok(
        *("compare", "--edges", files.edges, "--nodes", files.nodes, "--labels", "team", "--json"),
        *("--methods", "sgc,random-gcn,patchjepa", "--epochs", "2", "--out", out, "--resume"),
    )
    assert json.loads(said)["methods"] == result["methods"]  # not measured again: the same seconds


@pytest.mark.slow
def test_without_labels_the_default_is_taken(run, files):
    out = files.folder / "compared"
    command = ("compare", "--edges", files.edges, "--nodes", files.nodes, "--methods", "raw", "--out", out)
    said, _ = run.ok(*command, "--drop", "team")
    assert "Take linear-jepa, the default" in said
    assert "accuracy" not in said
    assert '"side_by_side":true' in (out / "report.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "says"),
    [("default", "no links are held out"), ("all", "saw the links that were then held out")],
)
def test_structural_features_are_said_to_have_seen_the_links(run, files, asked, says):
    more = () if asked == "default" else ("--structural", asked)
    out = files.folder / asked
    _, err = run.ok("compare", "--edges", files.edges, "--methods", "raw", "--out", out, *more)
    assert says in err


# ------------------------------------------------------------------ kills, budgets, mistakes


@pytest.mark.slow
def test_a_kill_loses_at_most_the_method_under_way(tmp_path, monkeypatch):
    graph, labels = two_groups()
    whole = compare(graph, labels, methods=[*FEW, "sgc"], out=tmp_path / "whole")
    work, begun = Bench._measure, []

    def die_in_the_third(bench, estimator, name):
        begun.append(name)
        if len(begun) == 3:
            raise KeyboardInterrupt
        return work(bench, estimator, name)

    monkeypatch.setattr(Bench, "_measure", die_in_the_third)
    with pytest.raises(KeyboardInterrupt):
        compare(graph, labels, methods=[*FEW, "sgc"], out=tmp_path / "killed")
    assert not (tmp_path / "killed" / "compare.json").exists()
    again = compare(graph, labels, methods=[*FEW, "sgc"], out=tmp_path / "killed", resume=True)
    assert begun == ["linear-jepa", "raw", "random-gcn", "random-gcn", "sgc", "edges-only"]
    assert [measured(row) for row in again.rows] == [measured(row) for row in whole.rows]
    np.testing.assert_array_equal(again.embeddings, whole.embeddings)
    more = compare(graph, labels, methods=[*FEW, "sgc-1"], out=tmp_path / "killed", resume=True)
    assert begun[6:] == ["sgc-1"]  # another choice of methods keeps what is there
    assert [row.method for row in more.rows] == ["linear-jepa", *FEW, "sgc-1", "edges-only"]
    (tmp_path / "killed" / "runs" / "raw" / "scores.json").write_text('{"row": {"method": "raw"')
    mended = compare(graph, labels, methods=[*FEW, "sgc-1"], out=tmp_path / "killed", resume=True)
    assert begun[7:] == ["raw"]  # a damaged result is measured again
    assert [measured(row) for row in mended.rows] == [measured(row) for row in more.rows]


def test_what_does_not_fit_the_memory_is_not_begun():
    graph, _ = two_groups()
    with pytest.raises(EvaluationError, match=r"no method could be measured.*not begun: it needs"):
        compare(graph, methods=FEW, memory_limit=0.001)


def test_a_method_that_fails_is_a_row():
    """LinearJEPA predicts from neighbours: without edges there are none."""
    lonely = Graph.from_edges([], [], features=np.random.default_rng(0).random((20, 4)), num_nodes=20)
    made = compare(lonely, methods=["raw"])
    assert "no edges" in made.rows[0].problem
    assert made.recommendation.method == "raw"
    assert made.rows[1].links_auc is None


def test_too_few_labels_are_said_and_not_scored():
    graph, labels = two_groups()
    few = np.where(np.arange(len(labels)) < 2, labels, -1)
    made = compare(graph, few, methods=["raw"])
    assert "too few" in made.notes[0]
    assert not made.recommendation.by_labels


@pytest.mark.slow
def test_results_that_are_there_are_not_replaced_unasked(tmp_path):
    graph, _ = two_groups()
    compare(graph, methods=["raw"], out=tmp_path)
    (tmp_path / "runs" / "mine.txt").write_text("keep me")
    with pytest.raises(ConfigError, match=r"exist\. Go on with resume=True"):
        compare(graph, methods=["raw"], out=tmp_path)
    with pytest.raises(ConfigError, match="contradict"):
        compare(graph, methods=["raw"], out=tmp_path, resume=True, force=True)
    other, _ = two_groups(seed=1)
    with pytest.raises(CheckpointError, match="another graph"):
        compare(other, methods=["raw"], out=tmp_path, resume=True)
    compare(other, methods=["raw"], out=tmp_path, force=True)
    assert (tmp_path / "runs" / "mine.txt").read_text() == "keep me"


@pytest.mark.parametrize(
    ("more", "error", "said"),
    [
        ({"methods": ["supervised-gcn"]}, ConfigError, "learns from labels"),
        ({"methods": ["sgx"]}, ConfigError, "Did you mean"),
        ({"labels": [0, 1]}, EvaluationError, r"labels are .* for 60 nodes"),
        ({"labels": ["a"] * 60}, EvaluationError, "whole number per node"),
    ],
)
def test_mistakes_are_explained(more, error, said):
    with pytest.raises(error, match=said):
        compare(two_groups()[0], **more)


def test_the_files_of_the_graph_are_never_overwritten(run, tmp_path):
    edges = write(people()[0], tmp_path / "embeddings.parquet")
    assert "embeddings.parquet" in run.refused("compare", "--edges", edges, "--out", tmp_path)


def test_a_graph_store_is_refused_with_what_to_do(run, files, tmp_path):
    store = tmp_path / "graph.store"
    assert run("prepare", "--edges", files.edges, "--nodes", files.nodes, "--out", store)[0] == 0
    err = run.refused("compare", "--edges", store, "--out", tmp_path / "compared")
    assert "not on a graph store" in err
    assert "nodejepa embed-graph" in err
    assert not (tmp_path / "compared").exists()


# ------------------------------------------------------------------ the recommendation


def row(method, *accuracy, **more):
    return MethodRow(method, accuracy=accuracy, **more)


def test_labels_choose_and_what_they_cannot_tell_apart_is_named():
    clear = recommend([row("linear-jepa", 70, 72), row("sgc", 60, 61)])
    assert (clear.method, clear.by_labels) == ("linear-jepa", True)
    assert "below it by more" in clear.words[-1]
    close = recommend([row("linear-jepa", 70, 72), row("sgc", 69.5, 71.4), row("raw", 20, 21)])
    assert "Not clearly below it: sgc." in close.words
    spread = recommend([row("raw", 60, 80), row("sgc", 70, 66)])  # 2 points apart, with a spread of 17
    assert spread.method == "raw"
    assert any("sgc" in words for words in spread.words)
    worse = recommend([row("linear-jepa", 50, 51), row("raw", 60, 61)])
    assert worse.method == "raw"


def test_a_recommendation_by_guessing_large_classes_is_told():
    rows = [
        row("raw", 60, 61, balanced_accuracy=(12, 13)),
        row("linear-jepa", 53, 54, balanced_accuracy=(32, 33)),
        row("edges-only", 62, 63, balanced_accuracy=(9, 9)),
    ]
    found = recommend(rows[:2])
    assert any("take linear-jepa if small classes matter" in words for words in found.words)
    assert not edges_words(rows, replace(found, method="linear-jepa"))
    assert edges_words(rows, found)


def test_scores_without_labels_are_told_and_not_followed():
    rows = [
        row("linear-jepa", links_auc=0.5),
        row("sgc", links_auc=0.9),
        row("raw", links_auc=0.4),
    ]
    found = recommend(rows)
    assert (found.method, found.by_labels) == ("linear-jepa", False)
    assert any("sgc predicts held-out links best." in words for words in found.words)
    without = recommend(rows[1:])
    assert without.method == "sgc"
    assert "could not be measured" in without.words[0]
    assert recommend([MethodRow("raw", "no memory")]) is None


def test_the_default_methods():
    assert ("linear-jepa", *UNTRAINED, "nodejepa", "patchjepa") == COMPARED


# ------------------------------------------------------------------ node2vec


class CountedWords:
    """In place of gensim's Word2Vec: how often each word stands in a sentence of each start."""

    def __init__(self, sentences, *, vector_size, **settings):
        assert settings == {"window": 10, "min_count": 0, "sg": 1, "epochs": 1, "seed": 0, "workers": 1}
        heard = [[list(walk) for walk in sentences] for _ in range(2)]
        assert heard[0] == heard[1]
        rows = np.zeros((60, vector_size), dtype=np.float32)
        for walk in heard[0]:
            rows[int(walk[0]), [int(word) for word in walk]] += 1
        self.wv = Rows(rows)


class Rows:
    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, words):
        return self.rows[[int(word) for word in words]]


def test_walks_follow_edges_in_proportion_to_their_weights():
    star = Graph.from_edges([0, 0, 0], [1, 2, 3], weights=[1.0, 2.0, 5.0], num_nodes=5)
    walks = node2vec.random_walks(star, np.zeros(4000, dtype=np.int64), 3, np.random.default_rng(0))
    assert np.all(walks[:, [0, 2]] == 0)
    shares = np.bincount(walks[:, 1], minlength=5) / len(walks)
    assert shares == pytest.approx([0, 1 / 8, 2 / 8, 5 / 8, 0], abs=0.03)
    assert np.all(node2vec.random_walks(star, np.array([4]), 5, np.random.default_rng(0)) == 4)  # no edge


def test_node2vec_is_a_row_where_asked_and_never_recommended(monkeypatch, tmp_path):
    models = ModuleType("gensim.models")
    models.Word2Vec = CountedWords
    monkeypatch.setitem(sys.modules, "gensim", ModuleType("gensim"))
    monkeypatch.setitem(sys.modules, "gensim.models", models)
    graph, labels = two_groups()
    made = compare(graph, labels, methods=["raw"], random_walks=True, out=tmp_path / "c")
    row = made.rows[-1]
    assert (row.method, row.problem, row.columns, len(row.accuracy)) == ("node2vec", None, 256, 5)
    assert 0 <= row.links_auc <= 1
    assert "node2vec" not in json.dumps(made.to_dict()["recommendation"])
    again = compare(graph, labels, methods=["raw"], random_walks=True, out=tmp_path / "c", resume=True)
    assert again.rows[-1] == row


def test_node2vec_says_what_it_lacks_before_anything_is_fitted(monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    monkeypatch.setattr(Bench, "row", None)
    with pytest.raises(GraphError, match=r"nodejepa\[node2vec\]"):
        compare(*two_groups(), random_walks=True)
