"""What embeddings are made of: columns, structure or both. A node table makes nothing worse unnoticed."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from nodejepa import Graph, LinearJEPA, apply_run, choose_features, compare, embed_graph
from nodejepa.data.splits import default_splits
from nodejepa.errors import ConfigError, GraphError
from nodejepa.machine import Room
from nodejepa.structure import laplacian
from nodejepa.tables import FeatureSchema, ReadingOptions
from nodejepa.tables.options import STRUCTURAL
from nodejepa.tables.schema import side_by_side
from nodejepa.workflow.compare import compare_files
from nodejepa.workflow.use import Evidence, Material, choose, validation_accuracy

NODES, CLASSES = 320, 4


def communities(columns: str, seed: int = 0) -> tuple[Graph, np.ndarray]:
    """Communities whose columns are noise, or say which community it is."""
    rng = np.random.default_rng(seed)
    labels = np.arange(NODES) % CLASSES
    source, target = rng.integers(0, NODES, (2, 12_000))
    kept = (labels[source] == labels[target]) | (rng.random(12_000) < 0.02)
    kept &= source != target
    features = rng.normal(size=(NODES, 2))
    if columns == "telling":
        features = rng.normal(size=(NODES, CLASSES)) + 4 * np.eye(CLASSES)[labels]
    graph = Graph.from_edges(
        source[kept], target[kept], features=features.astype(np.float32), direction="symmetrize"
    )
    return graph, labels


def material(graph: Graph) -> Material:
    return Material(graph, FeatureSchema(matrix_width=graph.num_features), tuple(STRUCTURAL), Room.of())


@pytest.mark.parametrize("labelled", [True, False])
def test_columns_of_noise_do_not_hide_the_structure(labelled):
    graph, labels = communities("noise")
    choice = choose(material(graph), "auto", labels if labelled else None)
    assert choice.taken != "columns"
    assert choice.by == ("labels" if labelled else "rule")
    assert 'use="columns"' in choice.words
    assert ("structure" in choice.validation) == labelled


def test_columns_that_say_it_all_are_taken_alone():
    graph, labels = communities("telling")
    choice = choose(material(graph), "auto", labels)
    assert (choice.taken, choice.by) == ("columns", "labels")
    assert 'use="both"' in choice.words


def test_a_handful_of_labels_leaves_the_choice_to_the_rule():
    graph, labels = communities("noise")
    few = np.where(np.arange(NODES) < 3 * CLASSES, labels, -1)
    assert choose(material(graph), "auto", few).by == "rule"


def test_test_labels_choose_nothing():
    graph, labels = communities("noise")
    z, split = LinearJEPA().fit(graph).transform(graph), default_splits(labels)[0]
    shuffled = labels.copy()
    shuffled[split.test] = np.random.default_rng(1).permutation(labels[split.test])
    assert validation_accuracy(z, labels, [split]) == validation_accuracy(z, shuffled, [split])


def test_columns_and_structure_are_solved_apart():
    """What neighbours predict of the columns does not depend on the structural columns beside them."""
    graph, _ = communities("telling")
    both = choose_features(graph, "both")
    assert both.structural == sum(STRUCTURAL.values())
    again = replace(
        graph.with_features(side_by_side(graph.features, 7 * both.features[:, graph.num_features :])),
        structural=both.structural,
    )
    first, second = (LinearJEPA().fit(each) for each in (both, again))
    np.testing.assert_allclose(first.spectrum(), second.spectrum(), atol=1e-4)
    found = np.array(first.findings_.rho)
    own = np.array(LinearJEPA(side_by_side=0).fit(graph).findings_.rho)
    assert all(np.abs(found - value).min() < 1e-4 for value in own)
    assert list(abs(found)) == sorted(abs(found), reverse=True)


def test_a_graph_has_the_features_that_were_asked_for():
    graph, _ = communities("noise")
    assert choose_features(graph, "columns") is graph
    structure = choose_features(graph, "structure")
    assert structure.num_features == structure.structural == sum(STRUCTURAL.values())
    np.testing.assert_array_equal(choose_features(structure, "structure").features, structure.features)
    with pytest.raises(ConfigError, match="no columns"):
        choose_features(structure, "columns")
    with pytest.raises(ConfigError, match="one of 'auto'"):
        choose_features(graph, "edges")


def test_classes_may_be_text():
    graph, labels = communities("noise")
    words = np.array(["red", "green", "blue", "grey"])[labels]
    for given in (words, words.tolist(), pd.Series(words, dtype="category")):
        chosen = choose_features(graph, "auto", given)
        assert chosen.num_features == choose_features(graph, "auto", labels).num_features


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("use")
    graph, labels = communities("noise")
    source, target, _ = graph.edge_arrays()
    once = source < target
    pd.DataFrame({"from": source[once], "to": target[once]}).to_csv(folder / "edges.csv", index=False)
    nodes = pd.DataFrame(graph.features, columns=[f"c{i}" for i in range(graph.num_features)])
    nodes.assign(id=range(NODES), kind=[f"k{label}" for label in labels]).to_csv(
        folder / "nodes.csv", index=False
    )
    return folder


@pytest.mark.slow
def test_the_run_remembers_what_was_taken(tables):
    files = (tables / "edges.csv", tables / "nodes.csv")
    made = embed_graph(*files, out=tables / "z.parquet", labels="kind", report=False)
    told = json.loads((tables / "z.json").read_text(encoding="utf-8"))["use"]
    assert (told["asked"], told["by"]) == ("auto", "labels")
    assert told["taken"] != "columns"
    assert any("input features" in note for note in made.inspection.data.report.notes)
    assert made.scores is not None
    rows = {name: result.test_accuracy_mean for name, result in made.scores.rows.items()}
    assert "linear-jepa, columns only" in rows
    assert rows["linear-jepa"] > rows["linear-jepa, columns only"] + 10
    np.testing.assert_array_equal(apply_run(tables / "z.run", *files).embeddings, made.embeddings)
    fewer = pd.read_csv(files[0])[:-10]
    with pytest.raises(
        GraphError, match=r'another graph.*use="columns"'
    ):  # said before training, in the data report
        apply_run(tables / "z.run", fewer, files[1])


@pytest.mark.parametrize("nodes", [199, 50_001])
def test_small_and_large_graphs_keep_their_columns(nodes):
    ring = np.arange(nodes)
    features = np.random.default_rng(0).normal(size=(nodes, 2))
    graph = Graph.from_edges(ring, np.roll(ring, 1), features=features, direction="symmetrize")
    choice = choose(material(graph), "auto", None)
    assert (choice.taken, choice.by) == ("columns", "nothing else")
    assert ('use="both"' in choice.words) == (nodes > 200)


def test_the_rule_takes_both_where_the_structure_predicts_the_columns_or_neighbours_do_not():
    assert Evidence(predicted=0.06, related=0.9).taken == "both"
    assert Evidence(predicted=0.01, related=0.1).taken == "both"
    assert Evidence(predicted=0.01, related=0.9).taken == "columns"


@pytest.mark.slow
def test_compare_lets_labels_choose_and_keeps_links_to_score_without(tables, tmp_path):
    files = (tables / "edges.csv", tables / "nodes.csv")
    labelled = compare_files(*files, ReadingOptions(labels="kind"), out=tmp_path / "a", methods=["raw"])
    assert any("chosen by validation accuracy" in note for note in labelled.notes)
    bare = compare_files(*files, ReadingOptions(drop=("kind",)), out=tmp_path / "b", methods=["raw"])
    assert bare.rows[0].links_auc is not None


@pytest.mark.slow
def test_a_table_can_be_left_out_and_its_columns_alone_serve_other_graphs(tables):
    files = (tables / "edges.csv", tables / "nodes.csv")
    made = embed_graph(*files, out=tables / "s.npy", use="structure", drop=["kind"], report=False)
    alone = embed_graph(files[0], out=tables / "a.npy", report=False)
    assert made.embeddings.shape[1] == alone.embeddings.shape[1]
    columns = embed_graph(*files, out=tables / "c.npy", use="columns", drop=["kind"], report=False)
    applied = apply_run(tables / "c.run", pd.read_csv(files[0])[:-10], files[1])
    assert applied.embeddings.shape == columns.embeddings.shape


@pytest.mark.slow
def test_compare_has_the_row_of_the_edges():
    graph, labels = communities("noise")
    made = compare(graph, labels, methods=["raw"])
    rows = {row.method: np.mean(row.accuracy) for row in made.rows}
    assert rows["edges-only"] > rows["linear-jepa"] + 10
    assert any('use="structure"' in note for note in made.notes)
    assert "edges-only" not in {
        row.method for row in compare(choose_features(graph, "structure"), methods=["raw"]).rows
    }


@pytest.mark.slow
def test_many_eigenvectors_of_a_large_graph_are_near_the_exact_ones(monkeypatch):
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 20, 3000)
    source, target = rng.integers(0, 3000, (2, 150_000))
    kept = (groups[source] == groups[target]) & (source != target)
    graph = Graph.from_edges(source[kept], target[kept], num_nodes=3000, direction="symmetrize")
    exact = laplacian.adjacency_coordinates(graph)
    monkeypatch.setattr(laplacian, "EXACT_UP_TO", 1000)
    near = laplacian.adjacency_coordinates(graph)
    np.testing.assert_array_equal(near, laplacian.adjacency_coordinates(graph))
    span = [np.linalg.qr(values[:, :19])[0] for values in (exact, near)]
    assert np.linalg.svd(span[0].T @ span[1])[1].min() > 0.95


def test_labels_in_a_series_are_aligned_by_its_index():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 150)
    source, target = rng.integers(0, 150, (2, 1500)) + 150 * rng.integers(0, 2, 1500)
    ids = np.array([f"n{i}" for i in range(300)])
    graph = Graph.from_edges(source, target, features=rng.normal(size=(300, 4)), node_ids=ids)
    series = pd.Series(truth, index=ids).sample(frac=1, random_state=0)
    chosen = [choose_features(graph, "auto", labels) for labels in (truth, series)]
    assert chosen[0].content_hash == chosen[1].content_hash
    pair = np.arange(40) // 20
    small = Graph.from_edges(
        np.arange(40), np.roll(np.arange(40), 1), features=np.eye(2)[pair], node_ids=ids[:40]
    )
    scores = [compare(small, y, methods=[]).rows[0].accuracy for y in (pair, pd.Series(pair, ids[:40])[::-1])]
    assert scores[0] == scores[1]
    assert scores[0]
    numbered = Graph.from_edges(source, target, features=graph.features, node_ids=np.arange(300)[::-1])
    for other, given in ((graph, series.rename({"n3": "m3"})), (numbered, pd.Series(truth))):
        for ask in (compare, lambda g, y: choose_features(g, "auto", y)):
            with pytest.raises(GraphError, match="index"):
                ask(other, given)
