"""Which ids are of one node: two kinds of nodes, ids that became floats."""

from __future__ import annotations

import pyarrow as pa
import pytest

from nodejepa import read_graph
from nodejepa.errors import GraphError
from nodejepa.tables.options import two_kinds
from nodejepa.tables.prepare import prepare_store

BOUGHT = pa.table({"user_id": [0, 0, 1, 2, 3], "item_id": [0, 1, 1, 2, 0]})


@pytest.mark.parametrize(
    "names",
    [
        ("user_id", "item_id"),
        ("UserID", "MovieID"),
        ("userid", "productid"),
        ("customer", "product"),
        ("investor_id", "company_id"),
    ],
)
def test_two_kinds_that_share_numbers_are_refused_with_a_reason(names):
    with pytest.raises(GraphError, match="named after two kinds of nodes, but 3 numbers") as refused:
        read_graph(BOUGHT.rename_columns(names))
    assert f"{names[0]} 0 and {names[1]} 0 would be one node" in str(refused.value)
    assert "with bipartite=True, or say bipartite=False" in refused.value.fix


@pytest.mark.parametrize(
    "names",
    [
        ("source", "target"),
        ("source_id", "target_id"),
        ("user1", "user2"),
        ("user_id", "friend_id"),
        ("employee_id", "manager_id"),
        ("citing_paper_id", "cited_paper_id"),
        ("from_user", "to_user"),
        ("column 1", "column 2"),
        ("paper", "cites"),
        ("a", "b"),
        ("id", "item_id"),
    ],
)
def test_ends_of_one_kind_are_one_set_of_nodes(names):
    assert not two_kinds(*names)
    assert read_graph(BOUGHT.rename_columns(names)).graph.num_nodes == 4


def test_one_set_where_nothing_is_shared_or_somebody_says_so():
    assert read_graph(BOUGHT, bipartite=False).graph.num_nodes == 4
    apart = BOUGHT.set_column(1, "item_id", pa.array([10, 11, 11, 12, 10]))
    assert read_graph(apart).graph.node_ids.tolist() == [0, 1, 2, 3, 10, 11, 12]
    everybody = pa.table({"id": [0, 1, 2, 3], "x": [1.0, 2, 3, 4]})
    one = read_graph(BOUGHT, everybody)  # a table of users called id looks the same: it is said
    assert one.graph.num_nodes == 4
    assert any("user_id 0 and item_id 0 are taken for one node" in said for said in one.report.warnings)
    assert not read_graph(BOUGHT, everybody, bipartite=False).report.warnings
    with pytest.raises(GraphError, match="two kinds"):
        read_graph(BOUGHT, everybody.rename_columns(["user_id", "x"]))


def test_two_kinds_are_kept_apart_and_still_known_by_their_own_ids(tmp_path):
    loaded = read_graph(BOUGHT, bipartite=True)
    assert loaded.graph.num_nodes == 7
    assert loaded.graph.num_edges == 10
    assert loaded.graph.node_ids.tolist()[:5] == [*(f"user_id:{i}" for i in range(4)), "item_id:0"]
    assert loaded.sides == {"side": ["user_id"] * 4 + ["item_id"] * 3, "side_id": [0, 1, 2, 3, 0, 1, 2]}
    assert read_graph(BOUGHT, bipartite=False).sides == {}
    users = pa.table({"user_id": [3, 2, 1, 0], "age": [20.0, 30, 40, 50]})
    known = read_graph(BOUGHT, users, bipartite=True)
    assert known.sides["side_id"] == [3, 2, 1, 0, 0, 1, 2]
    assert known.report.added_nodes == 3
    (tmp_path / "e.csv").write_text("user_id,item_id\n0.0,0\n0.0, 1\n1.0,1\n2.0,2\n3.0,0\n")
    text = read_graph(tmp_path / "e.csv", bipartite=True)
    assert text.graph.node_ids.tolist() == loaded.graph.node_ids.tolist()


@pytest.mark.parametrize("ids", ["0\n1\n2\n", "0.0\n1.0\n2.0\n"])
@pytest.mark.parametrize("ends", ["0,1.0\n1,2.0\n2,0.0\n", "0.0,1.0\n1.0,2.0\n2.0,0.0\n", "0,1\n1,2\n2,0\n"])
def test_ids_that_became_floats_meet_whole_numbers(tmp_path, ids, ends):
    (tmp_path / "e.csv").write_text("source,target\n" + ends)
    nodes = "id,x\n" + "".join(f"{name},{i * i}\n" for i, name in enumerate(ids.split()))
    (tmp_path / "n.csv").write_text(nodes)
    loaded = read_graph(tmp_path / "e.csv", tmp_path / "n.csv")
    assert loaded.graph.num_nodes == 3
    if "." in ids and ends.startswith("0.0"):
        assert loaded.graph.node_ids.tolist() == ["0.0", "1.0", "2.0"]  # as they are written everywhere
    else:
        assert loaded.graph.node_ids.tolist() == [0, 1, 2]
        assert any("taken for whole numbers" in note for note in loaded.notes) == ("." in ids + ends)


def test_ids_that_only_look_a_little_like_floats_stay(tmp_path):
    (tmp_path / "e.csv").write_text("source,target\n1.0,1\n1,1.5\n1.10,1\n")
    assert set(read_graph(tmp_path / "e.csv").graph.node_ids.tolist()) == {"1.0", "1", "1.5", "1.10"}


def test_a_first_row_that_is_a_node_is_asked_about(tmp_path):
    edges, nodes = tmp_path / "e.csv", tmp_path / "n.csv"
    edges.write_text("source,target\nann,bob\nbob,eve\n")
    nodes.write_text("ann,red\nbob,blue\neve,green\n")
    with pytest.raises(GraphError, match="'ann' also occur as nodes"):
        read_graph(edges, nodes)
    nodes.write_text("who,colour\n" + nodes.read_text())
    assert read_graph(edges, nodes).graph.node_ids.tolist() == ["ann", "bob", "eve"]


def test_a_first_row_of_edges_that_is_no_header_is_refused(tmp_path):
    """Far below the rows that the layout is guessed from, its words come back as nodes."""
    lines = ["ann,bob", *(f"p{i},q{i}" for i in range(30_000)), "bob,ann"]
    path = tmp_path / "edges.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(GraphError, match="'ann', 'bob' also occur as nodes"):
        read_graph(path)
    assert read_graph(path, header=False, structural=False).graph.num_nodes == 60_002
    assert read_graph(path, header=True, structural=False).graph.num_nodes == 60_002


@pytest.mark.parametrize("stored", [False, True])
def test_a_first_row_of_edges_that_only_the_node_table_knows_is_refused(tmp_path, stored):
    edges, nodes = tmp_path / "edges.csv", tmp_path / "nodes.csv"
    edges.write_text("ann,bob\ncarl,dora\nemil,fay\n")
    names = ["ann", "bob", "carl", "dora", "emil", "fay"]
    nodes.write_text("id,age\n" + "".join(f"{name},{age}\n" for age, name in enumerate(names)))

    def read(**options):
        if stored:
            return prepare_store(edges, nodes, out=tmp_path / "g.store", **options).num_edges
        return read_graph(edges, nodes, **options).graph.num_edges

    with pytest.raises(GraphError, match="'ann', 'bob' also occur as nodes"):
        read()
    edges.write_text("from,to\n" + edges.read_text())
    assert read() == 6


@pytest.mark.parametrize("names", [("column 1", "column 2"), ("visitor", "url"), ("country", "export")])
def test_numbers_of_both_columns_are_noted_where_names_tell_nothing(names):
    """Ratings without a header: user 1 and film 1 became one node, and nothing said so."""
    notes = read_graph(BOUGHT.rename_columns(names)).notes
    assert any("3 numbers occur in both" in note and "bipartite=True" in note for note in notes)


def test_nothing_is_noted_where_names_tell_or_somebody_said():
    for names in (("source", "target"), ("user_id", "friend_id"), ("from_user", "to_user")):
        assert not any("occur in both" in note for note in read_graph(BOUGHT.rename_columns(names)).notes)
    assert not any("occur in both" in note for note in read_graph(BOUGHT, bipartite=False).notes)


@pytest.mark.parametrize("written", ["User_{}", "user_{}\u00a0", "\uff55ser_{}", "0{}"])
def test_ids_that_differ_in_case_or_zeros_only_are_warned_of(written):
    """Half of the table joins, so nothing is refused: the other half lost its features without a word."""
    plain = "{}" if written == "0{}" else "user_{}"
    ids = [(plain if i < 5 else written).format(i) for i in range(10)]
    edges = pa.table({"source": [plain.format(i) for i in range(10)], "target": [plain.format(3)] * 10})
    loaded = read_graph(edges, pa.table({"id": ids, "x": [float(i * i) for i in range(10)]}))
    (warning,) = loaded.report.warnings
    assert f"such as {plain.format(5)!r} and {ids[5]!r}: they are taken for different nodes" in warning
    others = pa.table({"source": ["zoe", *ids[:4]], "target": [ids[0]] * 5})
    assert not read_graph(others, pa.table({"id": ids, "x": [1.0 * i for i in range(10)]})).report.warnings
