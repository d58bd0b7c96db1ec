"""Edge lists in: which columns, which ids, what is counted. The twin is a dictionary and a loop."""

from __future__ import annotations

import uuid

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import nodejepa
from nodejepa import GraphError, NodeJEPAError, load_graph, read_graph

HOSTILE = [
    "<script>alert(1)</script>",
    "=cmd|'/C calc'!A0",
    "../../etc/passwd",
    "e\u0301",  # e and a combining accent, not the same as the next
    "\u00e9",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "a\0b",
    "nan",
    "NULL",
    'say "hi"',
    "two\nlines",
    "semi;colon,comma\ttab",
    "\u202eright to left",
    "x" * 300,
]


def write(path, text, **options):
    path.write_bytes(text.encode(**options) if isinstance(text, str) else text)
    return path


def edge_names(graph):
    """Every stored edge by the users' own ids."""
    source, target, weight = graph.edge_arrays()
    names = graph.node_ids.tolist()
    return {
        (names[i], names[j]): w
        for i, j, w in zip(source.tolist(), target.tolist(), weight.tolist(), strict=True)
    }


def naive_graph(pairs):
    """Both directions of every pair but loops, in a set."""
    return {pair for a, b in pairs for pair in ((a, b), (b, a)) if a != b}


@pytest.mark.slow
@given(st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4)), min_size=1, max_size=30))
def test_typed_text_ids_are_kept_verbatim(pairs):
    table = pa.table({"u": [a for a, _ in pairs], "v": [b for _, b in pairs]})
    loaded = read_graph(table, structural=False)
    assert set(edge_names(loaded.graph)) == naive_graph(pairs)
    assert set(loaded.graph.node_ids.tolist()) == {name for pair in pairs for name in pair}
    distinct = {pair for pair in pairs if pair[0] != pair[1]}
    loops = sum(a == b for a, b in pairs)
    assert loaded.report.self_loop_rows == loops
    assert loaded.report.duplicate_rows == len(pairs) - loops - len(distinct)
    assert loaded.report.reciprocal_pairs == sum((b, a) in distinct for a, b in distinct) // 2


@pytest.mark.slow
@given(st.lists(st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 2), min_size=1, max_size=30))
def test_64_bit_ids_stay_exact_in_parquet_and_text(tmp_path_factory, pairs):
    expected = naive_graph(pairs)
    table = pa.table({"source": [a for a, _ in pairs], "target": [b for _, b in pairs]})
    assert set(edge_names(load_graph(table, structural=False))) == expected
    text = "source,target\n" + "".join(f"{a},{b}\n" for a, b in pairs)
    path = write(tmp_path_factory.mktemp("ids") / "e.csv", text)
    assert set(edge_names(load_graph(path, structural=False))) == expected


def test_ids_above_2_to_the_63_and_billions(tmp_path):
    path = write(tmp_path / "e.csv", f"a,b\n{2**64 - 1},4000000000000\n1,{2**63}\n")
    graph = load_graph(path)
    assert graph.num_nodes == 4
    assert graph.node_ids.tolist() == [str(2**64 - 1), "1", "4000000000000", str(2**63)]
    beyond = load_graph(write(tmp_path / "f.csv", f"a,b\n{2**64},-1\n"))
    assert beyond.node_ids.tolist() == [str(2**64), "-1"]


def test_leading_zeros_are_part_of_an_id(tmp_path):
    graph = load_graph(write(tmp_path / "e.csv", "source,target\n007,7\n07,7\n"))
    assert graph.node_ids.tolist() == ["007", "07", "7"]


def test_hostile_ids_survive_every_format(tmp_path):
    ring = HOSTILE[1:] + HOSTILE[:1]
    table = pa.table({"source": HOSTILE, "target": ring})
    pq.write_table(table, tmp_path / "e.parquet")
    quoted = [f'"{a.replace(chr(34), 2 * chr(34))}"' for a in HOSTILE]
    rows = zip(quoted, quoted[1:] + quoted[:1], strict=True)
    write(tmp_path / "e.csv", "source,target\n" + "".join(f"{a},{b}\n" for a, b in rows))
    for source in (table, tmp_path / "e.parquet", tmp_path / "e.csv"):
        graph = load_graph(source)
        assert graph.node_ids.tolist() == HOSTILE
        assert set(edge_names(graph)) == naive_graph(zip(HOSTILE, ring, strict=True))


def test_text_ids_in_dictionaries_and_views():
    names = [str(uuid.UUID(int=i * 2**100 + 7)) for i in range(4)]
    for column in (pa.array(names), pa.array(names).dictionary_encode(), pa.array(names, pa.string_view())):
        edges = pa.table({"u": column, "v": pa.array(names[1:] + names[:1])})
        assert load_graph(edges).node_ids.tolist() == names
        assert load_graph(edges.slice(1, 2)).node_ids.tolist() == names[1:]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([1.5, 2.0]), "floating-point"),
        (pa.array([1e17, 2.0]), "floating-point"),
        (pa.array([1.0, None]), "row 2 has no id"),
        (pa.array([1.0, float("nan")]), "row 2 has no id"),
        (pa.array([None, 3]), "row 1 has no id"),
        (pa.array(["a", None]), "row 2 has no id"),
        (pa.nulls(2), "row 1 has no id"),
        (pa.array([True, False]), "bool values cannot be ids"),
        (pa.array([[1], [2]]), "cannot be ids"),
        (pa.array([b"\xff", b"a"]), "binary values cannot be ids"),
        (pa.array([{"a": 1}, {"a": 2}]), "cannot be ids"),
    ],
)
def test_what_cannot_be_an_id(column, message):
    with pytest.raises(GraphError, match=message):
        load_graph(pa.table({"source": column, "target": pa.array([1, 2])}))


def test_whole_floats_are_ids():
    frame = pd.DataFrame({"source": [1.0, 2.0], "target": [2.0, 3.0]})
    assert load_graph(frame).node_ids.tolist() == [1, 2, 3]


def test_small_integer_types_and_uint64_meet():
    table = pa.table({"u": pa.array([1, 2], pa.uint8()), "v": pa.array([2, 3], pa.uint64())})
    assert load_graph(table).node_ids.tolist() == [1, 2, 3]
    table = pa.table({"u": pa.array([1, 2], pa.int8()), "v": pa.array([2, 2**63], pa.uint64())})
    assert load_graph(table).node_ids.tolist() == ["1", "2", str(2**63)]


def test_empty_cell_of_a_text_file_is_a_missing_id(tmp_path):
    with pytest.raises(GraphError, match="row 2 has no id"):
        load_graph(write(tmp_path / "e.csv", "source,target\na,b\n,c\n"))


def test_spaces_around_cells_are_layout(tmp_path):
    loaded = read_graph(write(tmp_path / "e.csv", "source, target\n1, 2\n2, 3\n"))
    assert loaded.graph.node_ids.tolist() == [1, 2, 3]
    assert any("spaces" in note for note in loaded.notes)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("source,target", ("source", "target")),
        ("date,dst,src", ("src", "dst")),
        ("To,From,x", ("From", "To")),
        ("weight,target_id,source_id", ("source_id", "target_id")),
        ("FromNodeId,ToNodeId,z", ("FromNodeId", "ToNodeId")),
        ("kind,V,U", ("U", "V")),
        ("tail,head,rel", ("head", "tail")),
    ],
)
def test_edge_columns_are_guessed_and_said(tmp_path, header, expected):
    width = header.count(",") + 1
    rows = "".join(",".join(f"{i + k}" for k in range(width)) + "\n" for i in range(3))
    loaded = read_graph(write(tmp_path / "e.csv", f"{header}\n{rows}"))
    columns = loaded.report.edge_columns
    assert (columns["source"], columns["target"]) == expected
    assert any(repr(expected[0]) in note and "guessed" in note for note in loaded.notes)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("edge_id,user,friend", ("user", "friend")),
        ("EdgeID,user,friend", ("user", "friend")),
        ("row,user,friend,since", ("user", "friend")),
        ("weight,user,friend", ("user", "friend")),
        ("link_id,user", ("link_id", "user")),
    ],
)
def test_what_numbers_the_rows_is_no_end(tmp_path, header, expected):
    cells = [["7", "3", "9"], ["a", "b", "c"], ["b", "c", "a"], ["1", "2", "3"]][: header.count(",") + 1]
    rows = "".join(",".join(row) + "\n" for row in zip(*cells, strict=True))
    columns = read_graph(write(tmp_path / "e.csv", f"{header}\n{rows}")).report.edge_columns
    assert (columns["source"], columns["target"]) == expected


def test_a_column_that_counts_the_rows_is_asked_about():
    columns = {"id": range(6), "user": list("abcdef"), "friend": list("bcdefa")}
    with pytest.raises(GraphError, match="column 'id' counts the rows"):
        read_graph(pa.table(columns))
    told = read_graph(pa.table(columns), source="user", target="friend")
    assert told.graph.node_ids.tolist() == list("abcdef")
    pairs = pa.table({"node": range(6), "parent": [0] * 6})  # two columns: there is nothing to choose
    assert read_graph(pairs).graph.num_nodes == 6


def test_named_columns_win_and_are_not_called_guesses(tmp_path):
    path = write(tmp_path / "e.csv", "source,target,x,y\n1,2,8,9\n")
    loaded = read_graph(path, source="x", target="y")
    assert loaded.graph.node_ids.tolist() == [8, 9]
    assert not any("guessed" in note for note in loaded.notes)
    assert read_graph(path, source="target").report.edge_columns["target"] == "source"
    assert read_graph(path, target="y").report.edge_columns["source"] == "x"


@pytest.mark.parametrize(
    "options", [{"source": "nope"}, {"source": "a", "target": "a"}, {"weight": "b", "target": "b"}]
)
def test_wrong_column_names(options):
    with pytest.raises(GraphError):
        load_graph(pa.table({"a": [1], "b": [2]}), **options)


def test_weights(tmp_path):
    path = write(tmp_path / "e.csv", "source,target,weight,strength\na,b,2,7\na,b,3,1\nb,c,0,1\n")
    loaded = read_graph(path)
    assert edge_names(loaded.graph) == {("a", "b"): 5.0, ("b", "a"): 5.0}
    assert loaded.report.zero_weight_rows == 1
    assert any("guessed" in n and "weight" in n for n in loaded.notes)
    assert not read_graph(path, weight=False).graph.is_weighted
    assert edge_names(load_graph(path, weight="strength"))["a", "b"] == 8.0


@pytest.mark.parametrize(
    ("cell", "message"), [("-1", "row 2 is -1"), ("", "row 2 is missing"), ("inf", "row 2")]
)
def test_bad_weights_are_named(tmp_path, cell, message):
    path = write(tmp_path / "e.csv", f"source,target,weight\na,b,1\nb,c,{cell}\n")
    with pytest.raises(GraphError, match=message):
        load_graph(path)
    with pytest.raises(GraphError, match="not numbers"):
        load_graph(pa.table({"u": [1], "v": [2], "weight": ["heavy"]}))


def test_direction_is_kept_on_request():
    table = pa.table({"u": ["a", "b", "c"], "v": ["b", "a", "c"]})
    directed = read_graph(table, directed=True)
    assert set(edge_names(directed.graph)) == {("a", "b"), ("b", "a")}
    assert directed.graph.directed
    assert directed.report.isolated_nodes == 1
    assert directed.report.edges == 2
    assert read_graph(table).report.edges == 1


def test_isolated_and_unknown_nodes():
    edges = pa.table({"u": ["a", "x"], "v": ["b", "y"]})
    nodes = pa.table({"id": ["b", "lonely", "a"], "size": [1.0, 2.0, 4.0]})
    loaded = read_graph(edges, nodes)
    assert loaded.graph.node_ids.tolist() == ["b", "lonely", "a", "x", "y"]
    assert loaded.report.added_nodes == 2
    assert loaded.report.isolated_nodes == 1
    np.testing.assert_array_equal(loaded.graph.features[:, 1], [0, 0, 0, 1, 1])  # the mark of what is missing
    np.testing.assert_array_equal(loaded.graph.features[3:, 0], 0)
    assert any("2 ids of the edges are not in the node table, such as 'x'" in note for note in loaded.notes)


def test_no_id_in_common_is_a_mistake():
    edges = pa.table({"u": ["a", "x"], "v": ["b", "y"]})
    with pytest.raises(GraphError, match="no edge names a node"):
        load_graph(edges, pa.table({"id": ["A", "B"], "size": [1, 2]}))


def test_numbers_in_one_file_and_text_in_the_other(tmp_path):
    edges = write(tmp_path / "e.csv", "source,target\n1,2\n2,3\n")
    typed = pa.table({"id": [3, 2, 1], "size": [1.0, 2.0, 3.0]})
    assert load_graph(edges, typed).node_ids.tolist() == [3, 2, 1]
    words = pa.table({"id": ["3", "2", "1"], "size": [1.0, 2.0, 3.0]})
    assert load_graph(edges, words).node_ids.tolist() == ["3", "2", "1"]
    mixed = read_graph(pa.table({"u": [1, 2], "v": [2, 3]}), words)
    assert mixed.graph.node_ids.tolist() == ["3", "2", "1"]
    assert any("compared as text" in note for note in mixed.notes)


def test_repeated_node_ids_are_named():
    nodes = pa.table({"id": ["a", "b", "a"], "size": [1, 2, 3]})
    with pytest.raises(GraphError, match=r"more than once: 'a' \(rows 1 and 3\)"):
        load_graph(pa.table({"u": ["a"], "v": ["b"]}), nodes)


def test_other_objects_pass_through():
    adjacency = sp.csr_array(np.array([[0, 1], [1, 0]]))
    assert load_graph(adjacency).num_edges == 2
    with pytest.raises(GraphError, match="not a graph"):
        load_graph(3)
    with pytest.raises(GraphError, match="a list is not a graph"):
        read_graph([1, 2])


@pytest.mark.parametrize(
    "options",
    [
        {"text": "eat"},
        {"scale": 3},
        {"ignore": [3]},
        {"directed": "no"},
        {"directed": None},
        {"bipartite": "false"},
        {"header": "no"},
        {"header": 1},
    ],
)
def test_unknown_choices(options):
    with pytest.raises(nodejepa.ConfigError):
        load_graph(pa.table({"u": [1], "v": [2]}), **options)


def test_labels_need_a_node_table():
    with pytest.raises(GraphError, match="node table"):
        load_graph(pa.table({"u": [1], "v": [2]}), labels="y")


@pytest.mark.parametrize("rows", [0, 1])
def test_graphs_of_nothing_but_loops_or_nothing(rows):
    edges = pa.table({"u": pa.array(["a"] * rows, pa.string()), "v": pa.array(["a"] * rows, pa.string())})
    nodes = pa.table({"id": ["a", "b"], "size": [1, 2]})
    assert load_graph(edges, nodes).num_edges == 0
    if rows:
        assert load_graph(edges).num_nodes == 1
    else:
        with pytest.raises(NodeJEPAError, match="no edges"):
            load_graph(edges)


@pytest.mark.parametrize(("weights", "ending"), [([1, 5], "once, with the larger weight."), ([], "once.")])
def test_what_becomes_of_weights_in_both_directions_is_said(weights, ending):
    columns = {"source": ["a", "b"], "target": ["b", "a"]} | ({"weight": weights} if weights else {})
    loaded = read_graph(pa.table(columns))
    assert loaded.graph.adjacency.max() == max(weights, default=1)
    assert any(note.endswith(f"listed in both directions and count {ending}") for note in loaded.notes)


def test_measured_numbers_are_no_ends_of_edges(tmp_path):
    """A table of nodes in place of the edges made a graph of ages."""
    (tmp_path / "n.csv").write_text("user,age,team\n1,0.3471,a\n2,1.5,b\n3,2.25,a\n")
    with pytest.raises(GraphError, match=r"column 'age' holds numbers such as 0.3471, which are no ids"):
        read_graph(tmp_path / "n.csv")
    assert read_graph(tmp_path / "n.csv", source="user", target="age").graph.num_nodes == 6
    (tmp_path / "e.csv").write_text("part,of\n1.1,1\n1.10,1.1\n192.168.001.123,1\n2.000,1.1\n")
    assert read_graph(tmp_path / "e.csv").graph.num_nodes == 5


def test_a_weight_that_single_precision_makes_zero_is_refused(tmp_path):
    """The edge was gone, and the note said that it repeated another."""
    (tmp_path / "e.csv").write_text("source,target,weight\n1,2,1e-50\n2,3,1\n")
    with pytest.raises(GraphError, match="the weight of row 1 is 1e-50"):
        read_graph(tmp_path / "e.csv")
    (tmp_path / "e.csv").write_text("source,target,weight\n1,2,1e-30\n2,3,0\n")
    assert read_graph(tmp_path / "e.csv").graph.num_edges == 2


def test_a_few_ids_that_are_no_numbers_are_named(tmp_path):
    path = tmp_path / "edges.csv"
    rows = "".join(f"{i},{i + 1}\n" for i in range(100))
    path.write_text(f"source,target\n{rows}Total,300\n")
    (warning,) = read_graph(path).report.warnings
    assert "1 of 103: 'Total'" in warning
    path.write_text(f"source,target\n{rows}")
    assert not read_graph(path).report.warnings


def test_more_than_two_columns_that_may_be_ends_are_asked_about(tmp_path):
    rng = np.random.default_rng(0)
    paper, reference = rng.integers(3000, 3100, (2, 300))
    year = rng.integers(1990, 2020, 300)
    first = {"year": year, "paper": paper, "reference": reference}
    with pytest.raises(GraphError, match=r"'year', 'paper', 'reference' may all be ends.*source=COLUMN"):
        read_graph(pa.table(first))
    write(path := tmp_path / "e.csv", "alpha,beta,gamma\n1,2,3\n2,3,1\n")
    with pytest.raises(GraphError, match="'alpha', 'beta', 'gamma' may all be ends"):
        read_graph(path, structural=False)
    told = read_graph(pa.table(first), pa.table({"id": range(3000, 3100)}), structural=True)
    assert told.report.edge_columns == {"source": "paper", "target": "reference", "weight": None}
    days = pa.array([f"{year}-01-05" for year in year])
    for table in (
        {"day": days, "caller": paper, "callee": reference},
        {"caller": paper, "callee": reference, "day": year},
        {"one": paper, "other": reference, "amount": rng.integers(1, 90, 300)},
        {"one": paper, "other": reference, "type": rng.integers(0, 3, 300)},
        {"one": paper, "other": reference, "x": rng.normal(size=300)},
        {"user_id": paper, "item_id": reference + 100, "timestamp": rng.integers(1 << 30, 1 << 31, 300)},
    ):
        ends = read_graph(pa.table(table)).report.edge_columns
        assert [ends["source"], ends["target"]] == [name for name in table if name not in ("day", *OTHERS)]


OTHERS = ("amount", "type", "x", "timestamp")


def linked(**options):
    """Columns of 800 random edges: employees, managers among them, accounts, years, places."""
    rng = np.random.default_rng(0)
    rows = {"employee": rng.integers(0, 300, 800), "manager": rng.integers(0, 30, 800)}
    rows |= {"a": rng.integers(0, 300, 800), "b": rng.integers(0, 300, 800), "record": rng.permutation(800)}
    rows |= {"begin": rng.integers(1990, 2020, 800), "stop": rng.integers(1990, 2020, 800)}
    rows |= {"east": rng.normal(size=800).round(3), "north": rng.normal(size=800).round(3)}
    rows["day"] = pd.to_datetime(pd.Series(rows["begin"]).astype(str))
    return pd.DataFrame({name: rows[of] for name, of in options.items()})


@pytest.mark.parametrize(
    "columns",
    [
        {"employee": "employee", "manager": "manager", "from": "begin", "to": "stop"},
        {"person": "a", "friend": "b", "start": "begin", "end": "stop"},
        {"station1": "a", "station2": "b", "x": "east", "y": "north"},
        {"transaction_id": "record", "credit_account": "a", "debit_account": "b"},
        {"id": "record", "person_a": "a", "person_b": "b"},
        {"tweet_id": "record", "user_id": "a", "mentioned_user_id": "b"},
        {"review_id": "record", "user_id": "a", "shop_id": "employee"},
        {"transaction_id": "record", "payer": "a", "payee": "b"},
    ],
)
@pytest.mark.parametrize("stored", [False, True])
def test_years_places_and_records_are_not_taken_for_ends_where_others_may_be(tmp_path, columns, stored):
    frame = linked(**columns)
    frame.to_csv(path := tmp_path / "e.csv", index=False)
    with pytest.raises(GraphError, match=r"may all be ends of the edges.*source=COLUMN"):
        read_graph(path if stored else frame)
    pair = list(columns)[-2:] if "record" in columns.values() else list(columns)[:2]
    told = read_graph(frame, source=pair[0], target=pair[1], bipartite=False, structural=False).graph
    assert told.num_nodes <= 300
    everybody = pa.table({"id": range(300)})  # a table of nodes tells as well
    if "manager" not in columns and "record" not in columns.values():
        ends = read_graph(frame, everybody, structural=False).report.edge_columns
        assert [ends["source"], ends["target"]] == pair


@pytest.mark.parametrize(
    ("columns", "ends"),
    [
        ({"from": "begin", "to": "stop"}, ["from", "to"]),
        ({"from": "a", "to": "b", "employee": "a", "manager": "b"}, ["from", "to"]),
        ({"from": "begin", "to": "stop", "amount": "a", "count": "b"}, ["from", "to"]),
        ({"person": "a", "friend": "b", "start": "day", "end": "day"}, ["person", "friend"]),
        (
            {"transaction_id": "record", "sender_account": "a", "receiver_account": "b"},
            ["sender_account", "receiver_account"],
        ),
        ({"src_ip": "a", "src_port": "manager", "dst_ip": "b", "dst_port": "manager"}, ["src_ip", "dst_ip"]),
        ({"child": "record", "mother": "b"}, ["child", "mother"]),
        ({"source": "record", "target": "b", "other_target": "a"}, ["source", "target"]),
        ({"worker_id": "record", "boss_id": "employee", "group_id": "manager"}, ["worker_id", "boss_id"]),
    ],
)
def test_telling_names_go_on_being_ends(columns, ends):
    found = read_graph(linked(**columns), structural=False).report.edge_columns
    assert [found["source"], found["target"]] == ends


def lines(*columns, ending="\t"):
    return "".join(ending.join(map(str, row)) + "\n" for row in zip(*columns, strict=True))


def test_triples_without_a_header_are_asked_about(tmp_path):
    """Relations became nodes, and the tails were gone."""
    rng = np.random.default_rng(0)
    head, tail = rng.integers(0, 300, (2, 900))
    relation = rng.integers(0, 12, 900)
    names = {name: [f"/m/{i}" for i in of] for name, of in (("head", head), ("tail", tail))}
    links = [f"/film/r{i}" for i in relation]
    drugs, diseases = [f"drug{i}" for i in head], [f"disease{i}" for i in tail]
    path = tmp_path / "train.txt"
    for columns in (
        (names["head"], links, names["tail"]),
        (np.sort(head), relation, tail),
        (head, links, tail),
        (drugs, links, diseases),
    ):
        path.write_text(lines(*columns))
        with pytest.raises(
            GraphError, match=r"'column 1', 'column 2', 'column 3' may all be ends.*source=COL"
        ):
            read_graph(path)
        told = read_graph(path, source="column 1", target="column 3", structural=False).graph
        assert told.num_nodes == len({*map(str, columns[0]), *map(str, columns[2])})
    frame = pd.DataFrame({0: names["head"], 1: links, 2: names["tail"]})
    with pytest.raises(GraphError, match="'0', '1', '2' may all be ends"):
        read_graph(frame)
    (tmp_path / "n.csv").write_text("id,x\n" + lines([f"/m/{i}" for i in range(300)], range(300), ending=","))
    path.write_text(lines(names["head"], links, names["tail"]))
    assert read_graph(path, tmp_path / "n.csv").report.edge_columns["target"] == "column 3"


@pytest.mark.parametrize("apart", [0, 1000])
@pytest.mark.parametrize("third", ["weight", "count", "rating", "time", "class", "review", "day"])
def test_a_third_column_without_a_name_that_is_no_end(tmp_path, third, apart):
    rng = np.random.default_rng(0)
    user, item = rng.integers(0, 300, 900), rng.integers(0, 200, 900) + apart
    columns = {
        "weight": rng.random(900),
        "count": rng.integers(1, 150, 900),
        "rating": rng.integers(1, 6, 900),
        "time": rng.integers(1 << 30, 1 << 31, 900),
        "class": [f"kind {i}" for i in rng.integers(0, 9, 900)],
        "review": [f"text {i}" for i in range(900)],
        "day": [f"20{i}-01-05" for i in rng.integers(10, 24, 900)],
    }
    for one, two in ((user, item), ([f"u{i}" for i in user], [f"i{i}" for i in item])):
        (tmp_path / "e.txt").write_text(lines(one, two, columns[third]))
        ends = read_graph(tmp_path / "e.txt", structural=False).report.edge_columns
        assert (ends["source"], ends["target"]) == ("column 1", "column 2")


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (
            "a b 4.0\nb c 2.0\nc d 1.5\n",
            "column 'column 3' of numbers is not used: weight='column 3' makes it",
        ),
        ("source\ttarget\tw\na\tb\t4\nb\tc\t2\n", "column 'w' of numbers is not used: weight='w'"),
        ("source,target,count\na,b,4\nb,c,2\n", "column 'count' of numbers"),
        ("source,target,sign\na,b,-1\nb,c,1\n", "edges of both signs count alike"),
        (
            "Source,Target,Type,Id\na,b,Directed,0\nb,c,Directed,1\n",
            "'Type' says that the edges are directed",
        ),
        ("Source,Target,Type\na,b,Directed\nb,c,Undirected\n", ""),
        ("source,target,weight,count\na,b,1,4\nb,c,3,2\n", ""),
        ("a,b,5,881250949\nb,c,3,891717742\nc,d,1,878887116\n", ""),
        ("a b friend\nb c friend\nc d foe\n", ""),
    ],
)
def test_columns_that_may_weigh_or_direct_edges_are_warned_of(tmp_path, text, warning):
    path = write(tmp_path / "e.txt", text)
    warned = read_graph(path).report.warnings
    assert [warning in said for said in warned] == ([True] if warning else [])
    assert not read_graph(path, weight=False, directed=True).report.warnings
    assert not read_graph(pd.DataFrame({0: ["a"], 1: ["b"], 2: [3]}), weight="2").report.warnings
