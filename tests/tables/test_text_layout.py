"""Text files as spreadsheets, pandas and published collections write them; doubtful guesses are said."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

from nodejepa import DataError, GraphError, read_graph
from nodejepa.tables.options import frame_indexes, speaks_of_a_graph

EDGES = "from,to\na,b\nb,c\nc,a\n"
IDS = ["a", "b", "c"]


@pytest.fixture
def read(tmp_path):
    """Read edges and nodes from what the files should hold."""

    def read(edges, nodes=None, **options):
        paths = []
        for name, content in (("e.csv", edges), ("n.csv", nodes)):
            if content is not None:
                path = tmp_path / name
                path.write_bytes(content if isinstance(content, bytes) else content.encode())
                paths.append(path)
        return read_graph(*paths, **options)

    return read


def said(loaded, words):
    return [note for note in loaded.notes if words in note]


# ---------------------------------------------------------------- spreadsheets


def test_the_line_that_declares_the_delimiter_is_no_row(read):
    for break_ in ("\n", "\r\n"):
        loaded = read(f"sep=;{break_}" + EDGES.replace(",", ";").replace("\n", break_))
        assert loaded.graph.node_ids.tolist() == IDS
        assert loaded.report.edge_columns["source"] == "from"


@pytest.mark.parametrize(
    ("nodes", "cell"),
    [
        ("id;sales\na;1,5\nb;-2,25\nc;+1e3\n", "1,5"),
        ("id;sales\na;1,500\nb;2\nc;20,000\n", "1,500"),
        ("id;sales\na;0,5\nb;1.234,25\nc;,75\n", "0,5"),
        ('id,sales\na,2.5\nb,"1,500.25"\nc,"1,000,000"\n', "1,500.25"),
    ],
)
def test_numbers_with_commas_are_refused(read, nodes, cell):
    with pytest.raises(GraphError, match=f"numbers have commas, such as '{cell}'"):
        read(EDGES, nodes)


def test_other_text_encodings_are_named_with_the_remedy(read):
    for nodes in ("id,town\na,Köln\nb,Ulm\nc,Ulm\n", "id,größe\na,x\nb,y\nc,y\n"):
        with pytest.raises(DataError, match=r"line \d is not UTF-8.*CSV UTF-8"):
            read(EDGES, nodes.encode("cp1252"))
    late = ("source,target\n" + "x,y\n" * 50_000 + "Köln,y\n").encode("cp1252")
    with pytest.raises(DataError, match=r"not UTF-8.*CSV UTF-8"):
        read(late)


def test_a_letter_across_the_end_of_the_sample_is_no_damage(read):
    for shift in range(3):
        ids = ["é" * 40 + "x" * shift + str(i) for i in range(3000)]
        loaded = read("source,target\n" + "".join(f"{a},z\n" for a in ids), structural=False)
        assert loaded.graph.num_nodes == 3001


# ---------------------------------------------------------------- data frames


def test_the_index_of_a_frame_is_no_feature(read):
    """Rows are often sorted by class: their numbers would give it away."""
    for first in ("", "Unnamed: 0"):
        loaded = read(EDGES, f"{first},id,x,team\n0,a,3,s\n1,b,4,s\n2,c,5,t\n", labels="team")
        assert [column.name for column in loaded.schema.columns] == ["x"]
        assert said(loaded, "index of a data frame")
    nodes = pa.table({"id": IDS, "x": [1.0, 2.0, 4.0], "__index_level_0__": [2, 0, 1]})
    loaded = read_graph(pa.table({"u": IDS, "v": [*IDS[1:], "a"]}), nodes)
    assert [column.name for column in loaded.schema.columns] == ["x"]
    chosen = read_graph(pa.table({"u": IDS, "v": [*IDS[1:], "a"]}), nodes, columns=["__index_level_0__"])
    assert [column.name for column in chosen.schema.columns] == ["__index_level_0__"]


def test_the_index_of_a_frame_names_the_nodes_where_nothing_else_does(read):
    nodes = pa.table({"x": [1.0, 2.0, 4.0], "__index_level_0__": IDS})
    loaded = read_graph(pa.table({"u": IDS, "v": [*IDS[1:], "a"]}), nodes)
    assert loaded.report.id_column == "__index_level_0__"
    assert read(EDGES, ",x,y\na,1,2\nb,2,5\nc,4,1\n").graph.features.shape == (3, 2)


def test_the_index_of_a_frame_is_no_end_of_an_edge(read):
    loaded = read(",person,friend\n0,a,b\n1,b,c\n")
    assert loaded.graph.node_ids.tolist() == IDS
    assert frame_indexes(["column 1", "column 2"]) == ()
    assert frame_indexes(["id", "x"]) == ()


@pytest.mark.parametrize(
    "header", [",0,1,2", "id,0,1,2", "who,0,1,2", "id,2019,2020,2021", ",0,1,2,3,4", "a1,x,2,y"]
)
def test_numbers_may_be_names_of_columns(read, header):
    width = header.count(",")
    rows = "".join(
        f"{name}," + ",".join(f"{i * k}.5" for k in range(width)) + "\n" for i, name in enumerate(IDS)
    )
    loaded = read(EDGES, header + "\n" + rows)
    if header == "a1,x,2,y":  # no telling: two words over numbers, one over ids, a number
        assert said(loaded, "no header")
        return
    assert loaded.graph.node_ids.tolist() == IDS
    assert [column.name for column in loaded.schema.columns] == header.split(",")[2:]  # the first is constant


@pytest.mark.parametrize(
    "rows", ["a,1,2\nb,2,3\nc,3,4\n", "a,NA,1\nb,5,2\nc,4,9\n", "a,unknown,3\nb,1,1\nc,2,8\n"]
)
def test_rows_of_numbers_without_header_stay_rows(read, rows):
    loaded = read(EDGES, rows, text="ignore")
    assert loaded.graph.node_ids.tolist() == IDS
    assert said(loaded, "no header")


# ---------------------------------------------------------------- headers


def test_a_first_row_that_may_be_an_edge_is_pointed_out(read):
    assert said(read("ann,bob\ncleo,dan\neve,fay\n"), "say header=False")
    assert not said(read("source,target\ncleo,dan\neve,fay\n"), "header")
    assert not said(read("customer,supplier\n1,2\n3,4\n"), "header")


def test_an_end_that_is_the_other_end_elsewhere_is_data(read):
    loaded = read("ann,bob\nbob,cleo\ncleo,dan\n")
    assert loaded.graph.node_ids.tolist() == ["ann", "bob", "cleo", "dan"]
    assert said(loaded, "no header")


def test_what_names_speak_of_a_graph():
    assert speaks_of_a_graph(["From", "To"])
    assert speaks_of_a_graph(["Node_ID", "age"])
    assert not speaks_of_a_graph(["from", "age"])


# ---------------------------------------------------------------- shape


@pytest.mark.slow
def test_headers_longer_than_the_sample(read):
    width = 2500
    names = [f"a_column_with_a_long_name_{i}" for i in range(width)]
    rows = "".join(
        f"{name}," + ",".join(f"0.{i + k}" for k in range(width)) + "\n" for i, name in enumerate(IDS)
    )
    loaded = read(EDGES, ",".join(["id", *names]) + "\n" + rows)
    assert loaded.graph.features.shape == (3, width)
    assert loaded.schema.columns[-1].name == names[-1]


def test_runs_of_spaces_are_refused_with_advice(tmp_path):
    path = tmp_path / "e.txt"
    path.write_text("a   b\nb   c\n")
    with pytest.raises(GraphError, match="several spaces"):
        read_graph(path)
    path.write_text("a b \nb c \n")  # a space at the end of lines is only untidy
    assert read_graph(path).graph.node_ids.tolist() == IDS


def test_labels_with_dashes_and_ids_that_are_fractions(read):
    loaded = read(EDGES, "id,team\na,--5\nb,1\nc,-3\n", labels="team")
    assert loaded.class_names == ("--5", "-3", "1")
    with pytest.raises(GraphError, match=r"row 2 is 1\.5, stored"):
        read_graph(pa.table({"u": [1.0, 1.5], "v": [2, 3]}))


def test_a_header_that_stands_again_is_refused(tmp_path):
    """Files joined by `cat` had nodes called source and target."""
    (tmp_path / "e.csv").write_text("source,target\n1,2\n2,3\nsource,target\n3,4\n")
    with pytest.raises(GraphError, match=r"the header \(source, target\) stands again below"):
        read_graph(tmp_path / "e.csv")
    assert read_graph(tmp_path / "e.csv", header=False).graph.num_nodes == 6


def test_a_matrix_is_not_taken_for_a_list_of_edges_without_a_word(tmp_path):
    rows = [[int(abs(i - j) == 1) for j in range(5)] for i in range(5)]
    (tmp_path / "m.csv").write_text("\n".join(",".join(map(str, row)) for row in rows))
    assert any("looks like a matrix" in said for said in read_graph(tmp_path / "m.csv").report.warnings)
    (tmp_path / "e.csv").write_text("source,target,weight\n1,2,1\n2,3,1\n3,1,2\n")
    assert not read_graph(tmp_path / "e.csv").report.warnings


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("#source,target,weight\na,b,3\nb,c,4\n", ["source", "target", "weight"]),
        ("# Web graph\n# FromNodeId\tToNodeId\n1\t2\n2\t3\n", ["FromNodeId", "ToNodeId", None]),
        ("# ours, of 2020\n1,2\n2,3\n", ["column 1", "column 2", None]),
        ("# source,target,weight\n1,2\n2,3\n", ["column 1", "column 2", None]),
    ],
)
def test_names_of_columns_may_stand_in_a_comment(read, text, names):
    assert list(read(text).report.edge_columns.values()) == names
    assert read(text, header=False, weight=False).report.edge_columns["source"] == "column 1"


def test_what_is_wrong_with_comments_is_said(read):
    with pytest.raises(DataError, match=r"every line begins with # or %.*names of the columns above"):
        read("#jazz,#blues\n#blues,#soul\n")
    assert read("tag,other\n#jazz,#blues\n#blues,#soul\n").graph.node_ids.tolist()[0] == "#jazz"
    with pytest.raises(DataError, match=r"a comment is among the rows: Row #3.*above the first row only"):
        read("source,target\na,b\n# later\nb,c\n")


def test_a_data_frame_is_not_called_a_file():
    with pytest.raises(DataError, match=r"^the data frame cannot be read"):
        read_graph(pd.DataFrame({"u": [1, "a"], "v": [1, 2]}))
    with pytest.raises(GraphError, match="no edges: the table has no rows"):
        read_graph(pd.DataFrame({"u": [], "v": []}))
