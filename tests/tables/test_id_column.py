"""Ids are found by their values: the index of a data frame never names the nodes where a column does."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nodejepa import GraphError, load_graph, read_graph
from nodejepa.tables.prepare import prepare_store

SIZE = 60


def people(**more) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Edges in a ring, and nodes in another order than their ids; ``x`` is 10 times the id."""
    order = np.random.default_rng(0).permutation(SIZE)
    ring = np.arange(SIZE)
    nodes = pd.DataFrame({"user_id": ring, "x": 10.0 * ring, **more})
    edges = pd.DataFrame({"follower": ring, "followed": np.roll(ring, -1)})
    return edges, nodes.iloc[order]


def saved(frame, path):
    frame.to_csv(path) if path.suffix == ".csv" else frame.to_parquet(path)
    return path


DOORS = ["frame", ".parquet", ".csv", "store.parquet", "store.csv"]


@pytest.fixture(params=DOORS)
def door(request, tmp_path):
    ending = request.param.removeprefix("store")
    kind = request.param

    def through(edges, nodes, **options):
        if kind == "frame":
            graph = load_graph(edges, nodes, scale="none", **options)
            return graph.node_ids, graph.features
        files = [saved(f, tmp_path / f"{n}{ending}") for f, n in ((edges, "e"), (nodes, "n"))]
        if kind.startswith("store"):
            options |= {"header": True, "scale": "none", "force": True}
            store = prepare_store(*files, out=tmp_path / "g.store", **options)
            ids = np.array(store.ids(0, store.num_nodes).to_pylist())
            return ids, store.feature_rows(0, store.num_nodes)
        graph = load_graph(*files, scale="none", **options)
        return graph.node_ids, graph.features

    return through


def test_the_index_of_a_sorted_frame_is_no_id_and_no_feature(door):
    edges, nodes = people()
    nodes = nodes.sort_values("x", ascending=False)  # its index is a shuffled 0, 1, 2, ...: all ids of edges
    ids, x = door(edges, nodes)
    assert x.shape == (SIZE, 1)
    np.testing.assert_array_equal(x[:, 0], 10.0 * ids)


def test_an_index_of_the_edges_is_no_end_of_them(door):
    edges, nodes = people()
    expected, _ = door(edges, nodes, source="follower")
    shuffled = edges.sample(frac=1, random_state=1)
    ids, x = door(shuffled, nodes, source="follower")
    np.testing.assert_array_equal(ids, expected)
    np.testing.assert_array_equal(x[:, 0], 10.0 * ids)
    assert len(ids) == SIZE  # row numbers of the edges would be nodes as well


def test_the_edges_ids_may_be_some_of_the_nodes_or_some_more(door):
    edges, nodes = people()
    ids, x = door(edges.iloc[: SIZE // 2], nodes)
    np.testing.assert_array_equal(x[:, 0], 10.0 * ids)
    assert len(ids) == SIZE
    ids, x = door(edges, nodes[nodes["user_id"] % 5 > 0])
    known = 4 * SIZE // 5  # of others only the ids are known
    np.testing.assert_array_equal(x[:known, 0], 10.0 * ids[:known])
    np.testing.assert_array_equal(x[:, 1], np.arange(SIZE) >= known)


def test_text_ids_are_found_wherever_they_stand(door):
    edges, nodes = people()
    edges, nodes = edges.map("u{}".format), nodes.assign(handle=nodes["user_id"].map("u{}".format))
    ids, x = door(edges, nodes.drop(columns="user_id"))
    np.testing.assert_array_equal(x[:, 0], [10.0 * int(name[1:]) for name in ids])


def test_of_two_columns_that_match_equally_the_right_one_is_asked_for(door):
    edges, nodes = people(rank=np.arange(SIZE)[::-1])
    with pytest.raises(GraphError, match=r"'user_id' and 'rank' both hold ids.*id_column"):
        door(edges, nodes)
    ids, x = door(edges, nodes, id_column="user_id", drop=["rank"])
    np.testing.assert_array_equal(x[:, 0], 10.0 * ids)
    ids, _ = door(edges, nodes, id_column="rank")
    np.testing.assert_array_equal(ids, SIZE - 1 - nodes["user_id"].to_numpy())
    ids, x = door(edges, nodes, drop=["rank"])
    np.testing.assert_array_equal(x[:, 0], 10.0 * ids)


def test_an_unnamed_index_that_matches_better_is_asked_about(door):
    edges, nodes = people()
    nodes["user_id"] = nodes["user_id"] + SIZE // 3  # a third of the ids are of nobody in the edges
    with pytest.raises(GraphError, match="both hold ids of the edges"):
        door(edges, nodes)


def test_the_index_names_the_nodes_where_it_alone_can(door):
    edges, nodes = people()
    ids, x = door(edges, nodes.drop(columns="user_id"))
    np.testing.assert_array_equal(x[:, 0], 10.0 * ids)


def test_a_name_decides_between_equal_columns_and_values_against_a_name():
    edges, nodes = people(rank=np.arange(SIZE)[::-1])
    told = nodes.rename(columns={"user_id": "id"})
    assert read_graph(edges, told).report.id_column == "id"
    told = nodes.rename(columns={"user_id": "follower"})  # as an end of the edges is called
    assert read_graph(edges, told).report.id_column == "follower"
    named = nodes.drop(columns="rank").assign(name=[f"person {i % 7}" for i in range(SIZE)])
    assert read_graph(edges, named).report.id_column == "user_id"
    counted = nodes.drop(columns="rank").assign(id=np.arange(SIZE) + 7000)
    assert read_graph(edges, counted).report.id_column == "user_id"
    twice = nodes.drop(columns="rank").assign(again=nodes["user_id"])
    assert read_graph(edges, twice).report.id_column == "user_id"


def test_one_column_and_the_index_asked_for_by_name():
    edges, nodes = people()
    bare = pa.table({"whoever": nodes["user_id"].to_numpy()})
    assert read_graph(edges, bare).report.id_column == "whoever"
    loaded = read_graph(edges, nodes, id_column="user_id", columns=["x", "__index_level_0__"])
    assert [column.name for column in loaded.schema.columns] == ["x", "__index_level_0__"]
    loaded = read_graph(edges, nodes)
    assert loaded.report.dropped_columns.keys() == {"__index_level_0__"}
    assert any("index of a data frame" in note for note in loaded.notes)


def test_two_kinds_of_nodes_with_a_table_of_one(door):
    users = pd.DataFrame({"user_id": np.arange(20), "x": 10.0 * np.arange(20)}).sample(frac=1, random_state=0)
    edges = pd.DataFrame({"user_id": np.arange(40) % 20, "item_id": np.arange(40) % 8})
    ids, x = door(edges, users, bipartite=True)
    own = [int(name.removeprefix("user_id:")) for name in ids[:20]]
    np.testing.assert_array_equal(np.asarray(x[:20])[:, 0], 10.0 * np.array(own))


def test_a_named_index_holds_ids_also_where_pandas_stores_it_as_a_range(door):
    edges, nodes = people()
    nodes = nodes.sort_values("user_id").assign(x=lambda frame: 1.5 + (7 * frame.user_id) % SIZE)
    indexed = nodes.set_index("user_id")
    assert isinstance(indexed.index, pd.RangeIndex) or int(pd.__version__.split(".")[0]) < 3
    ids, x = door(edges, indexed)
    assert ids.tolist() == list(range(SIZE))
    np.testing.assert_allclose(x[:, 0], nodes["x"])
    assert x.shape == (SIZE, 1)


def test_a_named_range_that_is_no_id_is_no_feature():
    edges, nodes = people()
    nodes = nodes.rename(columns={"user_id": "id"}).reset_index(drop=True).rename_axis("row")
    loaded = read_graph(edges, nodes)
    assert loaded.report.id_column == "id"
    assert loaded.report.feature_columns == {"x": "numeric"}
    assert loaded.report.dropped_columns == {"row": "the index of a data frame"}


def test_a_stale_range_in_the_metadata_is_no_column(tmp_path):
    frame = pa.Table.from_pandas(pd.DataFrame({"id": [3, 4, 5], "x": [0.5, 1.0, 2.0]}).rename_axis("row"))
    pq.write_table(frame.slice(1), tmp_path / "n.parquet")
    assert read_graph(pd.DataFrame({"a": [4], "b": [5]}), tmp_path / "n.parquet").graph.num_features == 1


def test_another_column_named_as_one_of_ids_is_asked_about(door):
    edges, nodes = people(id=np.arange(SIZE)[::-1])
    with pytest.raises(GraphError, match=r"'id' and 'user_id' both hold ids"):
        door(edges, nodes)


def test_two_kinds_whose_tables_both_call_it_id_are_told_how_to_go_on():
    edges = pd.DataFrame({"user_id": np.arange(40) % 20, "item_id": np.arange(40) % 8})
    users, items = (pd.DataFrame({"id": np.arange(n), "x": 1.0 * np.arange(n)}) for n in (20, 8))
    for nodes in (users, [users, items]):
        with pytest.raises(GraphError, match="as the edges do: 'user_id' and 'item_id'"):
            read_graph(edges, nodes, bipartite=True)
    named = [users.rename(columns={"id": "user_id"}), items.rename(columns={"id": "item_id"})]
    assert read_graph(edges, named, bipartite=True).graph.num_nodes == 28


@pytest.mark.parametrize(("kept", "said"), [(4, True), (160, False)])
def test_a_table_that_matches_almost_nothing_is_warned_of(kept, said):
    """4 of 300 ids matched by chance, and 294 nodes were added without features."""
    nodes = pd.DataFrame({"id": np.arange(300) + 300 - kept, "x": np.arange(300.0)})
    ring = np.arange(298)
    edges = pd.DataFrame({"source": ring, "target": np.roll(ring, 1)})
    warned = [text for text in read_graph(edges, nodes).report.warnings if "may not belong together" in text]
    assert bool(warned) == said
    sample = edges[edges.min(axis=1) > 298 - kept]  # a few of all edges, between nodes of the table
    assert sample.empty or not read_graph(sample, nodes).report.warnings


def test_a_table_that_is_matched_by_numbers_alone_is_warned_of():
    edges, nodes = people()
    for name, said in (("rank", True), ("user_id", False), ("person", False), ("follower", False)):
        warned = read_graph(edges, nodes.rename(columns={"user_id": name})).report.warnings
        assert [f'id_column="{name}"' in text for text in warned] == [True] * said
    handles = nodes.assign(user_id=nodes["user_id"].map("u{}".format)).rename(columns={"user_id": "rank"})
    assert not read_graph(edges.map("u{}".format), handles).report.warnings
    told = nodes.rename(columns={"user_id": "rank"})
    assert not read_graph(edges, told, id_column="rank").report.warnings


def test_a_table_without_a_column_of_ids_is_told_so():
    edges, _ = people()
    nodes = pd.DataFrame({"height": np.linspace(1.5, 2, SIZE), "age": np.arange(SIZE) // 2})
    for table in (nodes, pa.Table.from_pandas(nodes, preserve_index=False)):
        with pytest.raises(GraphError, match=r"no column names the nodes.*id_column=COLUMN"):
            read_graph(edges, table)
