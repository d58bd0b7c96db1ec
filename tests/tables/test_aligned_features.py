"""Features beside a graph: a frame is aligned by its index, X of an estimator is used, weights are read."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch

from nodejepa import Graph, GraphError, LinearJEPA, as_graph, from_networkx, load_graph, read_graph
from nodejepa.errors import ConfigError
from nodejepa.methods import make_method
from nodejepa.workflow import embed_graph
from nodejepa.workflow.apply import apply_run

NAMES = [f"n{i}" for i in range(12)]


def ring() -> nx.Graph:
    return nx.relabel_nodes(nx.cycle_graph(12), dict(enumerate(NAMES)))


def frame(names=NAMES) -> pd.DataFrame:
    values = [float(name[1:]) for name in names]
    return pd.DataFrame({"x": values, "y": np.square(values)}, index=names)


def test_a_frame_is_aligned_by_its_index():
    shuffled = frame().sample(frac=1, random_state=0)
    for graph in (from_networkx(ring(), shuffled), from_networkx(ring()).with_features(shuffled)):
        np.testing.assert_array_equal(graph.features[:, 0], [float(name[1:]) for name in graph.node_ids])
    more = pd.concat([shuffled, frame(["n77"])])
    assert from_networkx(ring(), more).num_nodes == 12
    plain = Graph.from_edges([0, 1], [1, 2]).with_features(pd.DataFrame({"x": [5.0, 3.0, 4.0]}, [2, 0, 1]))
    assert plain.features[:, 0].tolist() == [3, 4, 5]
    numbered = frame().reset_index(drop=True)  # says nothing of ids: rows are in order
    assert from_networkx(ring(), numbered).features[:, 0].tolist() == list(range(12))


def test_an_index_that_does_not_match_is_refused():
    for wrong in (frame(NAMES[1:]), frame().rename({"n3": "m3"}), pd.concat([frame(), frame()[:1]])):
        for make in (lambda x: from_networkx(ring(), x), from_networkx(ring()).with_features):
            with pytest.raises(GraphError, match="index of the frame"):
                make(wrong)
    shuffled = frame().reset_index(drop=True).sample(frac=1, random_state=0)
    with pytest.raises(GraphError, match="reset_index"):
        from_networkx(ring(), shuffled)


def test_weights_of_networkx_are_read():
    graph = ring()
    assert not from_networkx(graph).is_weighted
    graph.edges["n0", "n1"]["weight"] = 3.0
    assert sorted(from_networkx(graph).adjacency.data.tolist()) == [1.0] * 22 + [3.0] * 2
    assert not from_networkx(graph, weight=False).is_weighted
    with pytest.raises(GraphError, match="no attribute 'weight'"):
        from_networkx(graph, weight="weight")


@pytest.mark.parametrize("method", ["raw", "linear-jepa", "nodejepa"])  # untrained, solved, trained
def test_features_beside_the_graph_are_used(method):
    settings = {"training.epochs": 1} if hasattr(make_method(method).config, "training") else {}
    x = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
    graph = from_networkx(ring())

    def embedded(*given):
        return np.asarray(make_method(method, settings=settings, device="cpu").fit(*given).transform(*given))

    np.testing.assert_array_equal(embedded(graph, x), embedded(graph.with_features(x)))


def test_fit_transform_takes_features_and_looks_at_no_labels():
    x = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
    wanted = LinearJEPA().fit_transform(from_networkx(ring(), x))
    np.testing.assert_array_equal(LinearJEPA().fit_transform(ring(), x), wanted)
    np.testing.assert_array_equal(LinearJEPA().fit_transform(from_networkx(ring(), x), [0, 1] * 6), wanted)
    by_id = pd.DataFrame(x, index=NAMES).sample(frac=1, random_state=1)
    np.testing.assert_array_equal(LinearJEPA().fit_transform(ring(), by_id), wanted)


def test_attributes_of_networkx_that_are_not_read_are_warned_of():
    graph = ring()
    nx.set_node_attributes(graph, 3.5, "age")
    nx.set_node_attributes(graph, "red", "team")
    nx.set_edge_attributes(graph, 2, "capacity")
    with pytest.warns(UserWarning, match="not read") as said:
        from_networkx(graph)
    assert [str(each.message).partition(";")[0] for each in said] == [
        "attributes 'age' are not read",
        "attributes 'capacity' are not read",
    ]
    from_networkx(graph, frame(), weight=False)  # somebody chose: warnings are errors here
    assert from_networkx(graph, feature="age", weight="capacity").is_weighted


def test_a_column_of_ids_is_no_feature():
    numbered = pd.DataFrame({"id": NAMES[::-1], "x": np.arange(12.0)})
    for make in (lambda x: from_networkx(ring(), x), from_networkx(ring()).with_features):
        with pytest.raises(GraphError, match=r"Say features.set_index\('id'\)"):
            make(numbered)
    graph = from_networkx(ring(), numbered.set_index("id"))
    assert graph.features[:, 0].tolist() == list(range(11, -1, -1))


def test_columns_of_a_frame_keep_their_names_and_order(tmp_path):
    """A frame with its columns the other way round was embedded as if each were the other."""
    model = LinearJEPA().fit(ring(), frame())
    model.save(tmp_path / "run")
    for fitted in (model, LinearJEPA.load(tmp_path / "run")):
        with pytest.raises(GraphError, match="columns y, x, the encoder was fitted on x, y"):
            fitted.transform(ring(), frame()[["y", "x"]])
        assert len(fitted.transform(ring(), frame())) == len(fitted.transform(ring(), frame().to_numpy()))
    again = LinearJEPA()
    again.fit_transform(ring(), frame())
    with pytest.raises(GraphError, match="fitted on x, y"):
        again.transform(ring(), frame().rename(columns={"y": "z"}))


def test_one_column_of_numbers_is_not_taken_for_labels_without_a_word():
    graph = from_networkx(ring(), frame())
    with pytest.warns(UserWarning, match="one dimension and is not used"):
        LinearJEPA().fit(graph, frame()["x"])


def test_other_columns_are_refused_and_columns_encoded_anew_are_warned_of(tmp_path):
    edges = pd.DataFrame({"source": range(11), "target": range(1, 12)})
    table = frame(NAMES).reset_index(drop=True).assign(id=range(12))
    model = LinearJEPA().fit(load_graph(edges, table))
    model.save(tmp_path)
    wanted = model.transform(load_graph(edges, table))
    moved = table.assign(x=table.x + 3)
    for fitted in (model, LinearJEPA.load(tmp_path)):
        with pytest.raises(GraphError, match="columns y, x, the encoder was fitted on x, y"):
            fitted.transform(load_graph(edges, table[["id", "y", "x"]]))
        with pytest.warns(UserWarning, match="scaled and encoded anew"):
            fitted.transform(load_graph(edges, moved))
    as_fitted = read_graph(edges, table[["y", "id", "x"]], schema=read_graph(edges, table).schema).graph
    np.testing.assert_array_equal(model.transform(as_fitted), wanted)
    framed = LinearJEPA().fit(from_networkx(ring(), frame()))
    with pytest.raises(GraphError, match="columns y, x"):
        framed.transform(from_networkx(ring(), frame()[["y", "x"]]))


def test_missing_values_of_a_frame_are_called_so():
    table = frame().astype({"x": "Int64"})
    table.loc["n3", "x"] = pd.NA
    with pytest.raises(GraphError, match="there are missing values"):
        from_networkx(ring(), table)


def test_weights_so_small_that_neighbours_hardly_count_are_warned_of():
    light = Graph.from_scipy(nx.to_scipy_sparse_array(ring()) * 1e-3, frame().to_numpy())
    with pytest.warns(UserWarning, match=r"edge weights are 0\.001 on average"):
        LinearJEPA().fit(light)
    LinearJEPA().fit(Graph.from_scipy(light.adjacency * 300, light.features))


def test_attributes_of_any_node_or_edge_are_seen():
    graph = nx.Graph([("a", "b", {"relation": "r"}), ("b", "c", {"strength": 3.0})])
    with pytest.warns(UserWarning, match="'strength' are not read"):
        as_graph(graph)
    vectors = ring()
    nx.set_node_attributes(vectors, {"n1": torch.ones(3)}, "v")
    with pytest.warns(UserWarning, match="'v' are not read"):
        as_graph(vectors)


def test_options_of_reading_beside_a_graph_are_refused(tmp_path):
    edges = pd.DataFrame({"source": range(11), "target": range(1, 12)})
    made = embed_graph(edges, frame().assign(id=range(12)), out=tmp_path / "z.parquet", use="columns")
    with pytest.raises(ConfigError, match="its own options"):
        apply_run(made.paths.run, from_networkx(ring(), frame()), weight=False)
