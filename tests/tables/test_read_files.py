"""Files of every format, whole and broken: a graph or an error that names the file, never anything else."""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from nodejepa import DataError, Graph, GraphError, NodeJEPAError, load_graph, read_graph

EDGES = [("a", "b"), ("b", "c"), ("c", "d")]
CSV = "source,target\n" + "".join(f"{a},{b}\n" for a, b in EDGES)


def write(path, content):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def pairs(graph):
    source, target, _ = graph.edge_arrays()
    names = np.arange(graph.num_nodes) if graph.node_ids is None else graph.node_ids
    return {tuple(sorted(pair)) for pair in zip(names[source].tolist(), names[target].tolist(), strict=True)}


# ---------------------------------------------------------------- text


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("e.csv", CSV),
        ("e.CSV", CSV.rstrip("\n")),
        ("e.csv", "\ufeff" + CSV),
        ("e.csv", CSV.replace("\n", "\r\n")),
        ("e.csv", CSV.replace("\n", "\r")),
        ("e.csv", "\ufeff" + CSV.replace("\n", "\r\n")),
        ("e.csv", CSV.replace("\n", "\n\n")),
        ("e.csv", "\n\n" + CSV),
        ("e.tsv", CSV.replace(",", "\t")),
        ("e.csv", CSV.replace(",", ";")),
        ("e.txt", CSV.replace(",", " ")),
        ("e.txt", CSV.replace(",", " ").replace("a", '"a"')),
        ("e", CSV.replace(",", "|")),
        ("e.edges", "# a comment\n% another\n" + CSV),
        ("e.csv", '"source","target"\n"a","b"\n"b","c"\n"c","d"\n'),
        ("e.csv", '"the\nsource","the\ntarget"\na,b\nb,c\nc,d\n'),
        ("e.csv.gz", gzip.compress(CSV.encode(), mtime=0)),
        ("misnamed.csv", gzip.compress(CSV.encode(), mtime=0)),
        ("e.csv.bz2", bz2.compress(CSV.encode())),
        ("e.csv.zst", pa.compress(CSV.encode(), codec="zstd", asbytes=True)),
    ],
)
def test_text_files(tmp_path, name, content):
    assert pairs(load_graph(write(tmp_path / name, content))) == set(EDGES)


def test_tab_and_space_lists_without_header(tmp_path):
    for delimiter in ("\t", " "):
        path = write(tmp_path / "snap.txt", f"# Nodes: 3\n30{delimiter}1412\n30{delimiter}3352\n")
        loaded = read_graph(path)
        assert pairs(loaded.graph) == {(30, 1412), (30, 3352)}
        assert any("no header" in note for note in loaded.notes)
        assert any("separated by" in note for note in loaded.notes)


def test_header_is_told_from_data_and_can_be_told(tmp_path):
    names = write(tmp_path / "e.csv", "ann,bob\nbob,cleo\nann,cleo\n")
    assert pairs(load_graph(names)) == {("ann", "bob"), ("bob", "cleo"), ("ann", "cleo")}
    assert pairs(load_graph(names, header=True)) == {("bob", "cleo"), ("ann", "cleo")}
    numbered = write(tmp_path / "f.csv", "1,2\n3,4\n")
    assert pairs(load_graph(numbered)) == {(1, 2), (3, 4)}
    assert pairs(load_graph(numbered, header=True)) == {(3, 4)}


def test_delimiter_can_be_told(tmp_path):
    path = write(tmp_path / "e.csv", "source:target\na,x:b,y\n")
    assert pairs(load_graph(path, delimiter=":")) == {("a,x", "b,y")}
    with pytest.raises(GraphError, match="delimiter"):
        load_graph(path, delimiter="::")


@pytest.fixture
def small_blocks_of_text(monkeypatch):
    monkeypatch.setattr("nodejepa.tables.text._BLOCK", 1 << 16)


@pytest.mark.usefixtures("small_blocks_of_text")
def test_quoted_delimiters_and_line_breaks_beyond_the_first_block(tmp_path):
    rows = [(f'"x, {i}\nsecond line"', f"y{i}") for i in range(10_000)]
    path = write(tmp_path / "e.csv", "source,target\n" + "".join(f"{a},{b}\n" for a, b in rows))
    graph = load_graph(path, structural=False)
    assert graph.num_nodes == 20_000
    assert graph.node_ids[9999] == "x, 9999\nsecond line"


@pytest.mark.usefixtures("small_blocks_of_text")
def test_a_word_far_down_does_not_change_what_ids_are(tmp_path):
    body = "".join(f"{i},{i + 1}\n" for i in range(20_000))
    path = write(tmp_path / "e.csv", "source,target\n" + body + "end,0\n")
    with pytest.warns(UserWarning, match="numbers but for 1 of 20,002: 'end'"):
        graph = load_graph(path, structural=False)
    assert graph.node_ids[:3].tolist() == ["0", "1", "2"]
    assert graph.num_nodes == 20_002


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty"),
        ("\n \n", "empty"),
        ("source,target\n", "no edges"),
        ("source\na\nb\n", "one column"),
        ("source,source\na,b\n", "more than once"),
        ("source,target\na,b\nb,c,d\n", "Row #3|Expected 2 columns"),
        ("source,target\na,b\nb\n", "Expected 2 columns"),
        ('source,target\na,"b\nb,c\nc,d\n', "never closed"),
        ('source,target\na,"b\nb,c\nc,d', "never closed"),
        (b"source,target\na,b\xff\xfe\n", "UTF"),
        ("source,target\na,b\n".encode("utf-16"), "UTF-16"),
        (b"PK\x03\x04rest of a spreadsheet", "zip"),
        (b"\x80\x04\x95pickle", "pickle"),
    ],
)
def test_broken_text_files(tmp_path, content, message):
    path = write(tmp_path / "e.csv", content)
    with pytest.raises(NodeJEPAError, match=message) as caught:
        load_graph(path)
    assert "e.csv" in str(caught.value)


@pytest.mark.usefixtures("small_blocks_of_text")
def test_the_bad_row_is_named(tmp_path):
    body = "".join(f"{i},{i + 1}\n" for i in range(20_000))
    path = write(tmp_path / "e.csv", f"source,target\n{body}1,2,3\n{body}")
    with pytest.raises(DataError, match=r"Row #2000[12]"):
        load_graph(path)


# ---------------------------------------------------------------- files that are no files


def test_missing_folder_and_forbidden_files(tmp_path):
    with pytest.raises(DataError, match="no edges file"):
        load_graph(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match="folder"):
        load_graph(tmp_path)
    with pytest.raises(DataError, match="cannot be opened"):
        load_graph("bad\0name.csv")
    with pytest.raises(DataError, match="no nodes file"):
        load_graph(write(tmp_path / "e.csv", CSV), tmp_path / "nothing.csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(tmp_path):
    path = write(tmp_path / "e.csv", CSV)
    path.chmod(0)
    with pytest.raises(DataError, match=r"[Pp]ermission"):
        load_graph(path)


def test_refused_by_the_system(tmp_path, monkeypatch):
    path = write(tmp_path / "e.csv", CSV)

    def refuse(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(DataError, match="Permission denied"):
        load_graph(path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_cut_off_files(tmp_path, share):
    ids = [f"node-{i}" for i in range(5000)]
    table = pa.table({"source": ids, "target": ids[1:] + ids[:1]})
    parquet = io.BytesIO()
    pq.write_table(table, parquet)
    text = "source,target\n" + "".join(f"{a},{b}\n" for a, b in itertools.pairwise(ids))
    for name, content in (
        ("e.parquet", parquet.getvalue()),
        ("e.csv.gz", gzip.compress(text.encode())),
        ("e.csv.bz2", bz2.compress(text.encode())),
    ):
        with pytest.raises(DataError, match=r"cannot be read|empty"):
            load_graph(write(tmp_path / name, content[: int(share * len(content))]))


def test_foreign_content_under_a_known_name(tmp_path):
    for name in ("e.parquet", "e.npy", "e.mtx", "e.npz"):
        with pytest.raises(NodeJEPAError):
            load_graph(write(tmp_path / name, CSV))
    table = pa.table({"source": [1, 2], "target": [2, 3]})
    pq.write_table(table, tmp_path / "parquet.csv")
    assert pairs(load_graph(tmp_path / "parquet.csv")) == {(1, 2), (2, 3)}


def test_parquet_of_several_row_groups_and_no_rows(tmp_path):
    table = pa.table({"source": list(range(100)), "target": list(range(1, 101)), "unread": [{"a": 1}] * 100})
    pq.write_table(table, tmp_path / "e.parquet", row_group_size=7)
    assert pairs(load_graph(tmp_path / "e.parquet")) == {(i, i + 1) for i in range(100)}
    pq.write_table(table.slice(0, 0), tmp_path / "none.parquet")
    with pytest.raises(GraphError, match="no edges"):
        load_graph(tmp_path / "none.parquet")
    pq.write_table(pa.table({"only": [1]}), tmp_path / "one.parquet")
    with pytest.raises(GraphError, match="two columns"):
        load_graph(tmp_path / "one.parquet")


# ---------------------------------------------------------------- graphs that were made in Python


def test_a_graph_of_python_is_taken_as_it_is():
    features = sp.random_array((4, 50), density=0.05, rng=np.random.default_rng(0), format="csr")
    matrix = sp.coo_array(([1.0, 2.0, 1.0, 2.0], ([0, 1, 1, 2], [1, 2, 0, 1])), shape=(4, 4))
    graph = Graph.from_scipy(matrix, features)
    loaded = read_graph(graph)
    assert loaded.graph.content_hash == graph.content_hash
    assert loaded.schema.matrix_width == 50
    assert (loaded.report.nodes, loaded.report.edges) == (4, 2)
    assert read_graph(graph, structural="all").graph.num_features == 61
    bare = read_graph(matrix)
    assert bare.graph.num_features == 139
    assert bare.graph.structure_hash == graph.structure_hash
    for wrong in ({"source": "u"}, {"labels": "y"}, {"bipartite": True}):
        with pytest.raises(GraphError, match="no columns to name"):
            read_graph(graph, **wrong)
