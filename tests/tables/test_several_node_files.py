"""Several files of nodes are one table: rows follow each other, columns go by name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from nodejepa import GraphError, load_graph, read_graph
from nodejepa.tables.prepare import prepare_store
from nodejepa.tables.store import StoredGraph
from nodejepa.workflow import embed_graph

USERS = pd.DataFrame({"id": [f"u{i}" for i in range(6)], "x": np.arange(6.0) ** 2, "age": [20, 30, 40] * 2})
ITEMS = pd.DataFrame({"id": [f"i{i}" for i in range(4)], "price": [1.0, 5.0, 2.0, 9.0], "x": [3.0] * 4})
EDGES = pd.DataFrame({"source": [f"u{i % 6}" for i in range(12)], "target": [f"i{i % 4}" for i in range(12)]})


@pytest.fixture(params=["csv", "parquet"])
def files(request, tmp_path):
    paths = [tmp_path / f"{name}.{request.param}" for name in ("edges", "users", "items")]
    for table, path in zip((EDGES, USERS, ITEMS), paths, strict=True):
        table.to_csv(path, index=False) if request.param == "csv" else table.to_parquet(path)
    return paths


def test_they_are_the_table_of_all_of_them(files, tmp_path):
    edges, *nodes = files
    wanted = load_graph(EDGES, pd.concat([USERS, ITEMS], ignore_index=True))
    for found in (load_graph(edges, nodes), load_graph(EDGES, [USERS, ITEMS])):
        assert found.node_ids.tolist() == wanted.node_ids.tolist()
        np.testing.assert_array_equal(found.features, wanted.features)
    store = prepare_store(edges, nodes, out=tmp_path / "g.store")
    assert store.content_hash == wanted.content_hash
    assert read_graph(edges, nodes[:1]).report.node_rows == 6
    made = embed_graph(edges, nodes, out=tmp_path / "z.parquet", report=False)
    assert set(made.inspection.inputs) == {"edges", "nodes", "nodes 2"}


def test_a_column_of_several_tables_is_said_to_be_one_feature():
    (note,) = [note for note in read_graph(EDGES, [USERS, ITEMS]).report.notes if "one feature each" in note]
    assert note.endswith("'x'.")
    assert not any("one feature each" in note for note in read_graph(EDGES, USERS).report.notes)


CUSTOMERS = pd.DataFrame(
    {"customer_id": [1, 2, 3, 4], "age": [20.0, 30, 40, 25], "city": ["x", "y", "x", "y"]}
)
PRODUCTS = pd.DataFrame({"price": [9.0, 5.0, 2.0], "product_id": [7, 5, 6], "city": ["y", "x", "y"]})
BOUGHT = pd.DataFrame({"customer_id": [1, 2, 3, 4, 1], "product_id": [5, 6, 7, 5, 7]})


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("apart", [None, True])
def test_each_kind_of_nodes_may_have_a_key_of_its_own(tmp_path, kind, apart):
    paths = [tmp_path / f"{name}.{kind}" for name in ("bought", "customers", "products")]
    for table, path in zip((BOUGHT, CUSTOMERS, PRODUCTS), paths, strict=True):
        table.to_csv(path, index=False) if kind == "csv" else table.to_parquet(path)
    loaded = read_graph(paths[0], paths[1:], bipartite=apart)
    numbers = [1, 2, 3, 4, 7, 5, 6]
    sides = ["customer_id"] * 4 + ["product_id"] * 3
    if apart:
        assert loaded.sides == {"side": sides, "side_id": numbers}
    else:
        assert loaded.graph.node_ids.tolist() == numbers
    assert set(loaded.report.feature_columns) == {"age", "city", "price"}
    assert loaded.report.id_column == "customer_id or product_id"
    assert loaded.report.added_nodes == 0
    assert set(zip(*(end.tolist() for end in loaded.graph.edge_arrays()[:2]), strict=True)) == {
        pair for a, b in ((0, 5), (1, 6), (2, 4), (3, 5), (0, 4)) for pair in ((a, b), (b, a))
    }
    store = prepare_store(paths[0], paths[1:], out=tmp_path / "g.store", bipartite=apart)
    assert store.content_hash == loaded.graph.content_hash


def test_keys_of_two_kinds_that_share_numbers_are_kept_apart_on_request():
    bought = BOUGHT.assign(product_id=BOUGHT["product_id"] - 4)
    products = PRODUCTS.assign(product_id=PRODUCTS["product_id"] - 4)
    with pytest.raises(GraphError, match="bipartite=True keeps two kinds of nodes apart"):
        read_graph(bought, [CUSTOMERS, products])
    loaded = read_graph(bought, [CUSTOMERS, products], bipartite=True)
    assert loaded.sides["side_id"] == [1, 2, 3, 4, 3, 1, 2]
    unknown = products.rename(columns={"product_id": "key"})
    with pytest.raises(GraphError, match="column 'key' are of neither"):
        read_graph(bought, [CUSTOMERS, unknown], bipartite=True)


def test_what_cannot_be_one_table_is_refused(files, tmp_path):
    edges, users, _ = files
    with pytest.raises(GraphError, match="appear more than once"):
        load_graph(edges, [users, users])
    with pytest.raises(GraphError, match="appear more than once"):
        prepare_store(edges, [users, users], out=tmp_path / "g.store")
    with pytest.raises(GraphError, match="two types"):
        load_graph(EDGES, [USERS, ITEMS.assign(x="word")])


def test_the_command_line_reads_all_of_them(run, files, tmp_path):
    edges, *nodes = files
    named = [word for path in nodes for word in ("--nodes", path)]
    run.ok("prepare", "--edges", edges, *named, "--out", tmp_path / "g.store")
    assert StoredGraph(tmp_path / "g.store").content_hash == load_graph(edges, nodes).content_hash
