"""GraphML through NetworkX: the same graph as from tables, and nothing that XML could smuggle in."""

from __future__ import annotations

import gzip

import networkx as nx
import numpy as np
import pytest

from nodejepa.errors import DataError, NodeJEPAError
from nodejepa.memory import Room
from nodejepa.tables import load_graph, read_graph

BOMB = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10 if i else "ha" * 10}">' for i in range(12))


@pytest.fixture
def club(tmp_path):
    graph = nx.karate_club_graph()
    for node, attributes in graph.nodes(data=True):
        attributes["age"] = node + 0.5
    nx.write_graphml(graph, tmp_path / "club.graphml")
    return tmp_path / "club.graphml"


def test_edges_weights_attributes_and_labels(club):
    loaded = read_graph(club, labels="club")
    assert loaded.graph.node_ids.tolist() == [str(i) for i in range(34)]
    assert loaded.graph.num_edges == 2 * 78
    assert loaded.graph.is_weighted
    assert loaded.class_names == ("Mr. Hi", "Officer")
    assert [column.name for column in loaded.schema.columns] == ["age"]
    assert loaded.graph.num_features == 1
    no_nodes = load_graph(club, drop=["club", "age"])
    assert no_nodes.num_features == 139  # without attributes the structure describes the nodes


def test_compressed_directed_and_beside_other_files(club, tmp_path):
    packed = tmp_path / "club.graphml.gz"
    packed.write_bytes(gzip.compress(club.read_bytes()))
    assert load_graph(packed, drop=["club"]).content_hash == load_graph(club, drop=["club"]).content_hash
    nx.write_graphml(nx.DiGraph([("a", "b"), ("b", "c")]), tmp_path / "way.graphml")
    loaded = read_graph(tmp_path / "way.graphml")
    assert any("directed=True keeps" in note for note in loaded.notes)
    assert read_graph(tmp_path / "way.graphml", directed=True).graph.num_edges == 2
    (tmp_path / "e.csv").write_text("source,target\n0,1\n33,2\n")
    mixed = load_graph(tmp_path / "e.csv", nodes=club, drop=["club"])
    assert (mixed.num_nodes, mixed.num_features) == (34, 1)


def test_attributes_that_are_called_like_our_columns(tmp_path):
    graph = nx.Graph()
    graph.add_edge("a", "b", source="x", weight=2.0)
    graph.nodes["a"]["id"], graph.nodes["b"]["id"] = 1.5, 2.5
    nx.write_graphml(graph, tmp_path / "g.graphml")
    loaded = read_graph(tmp_path / "g.graphml")
    assert loaded.graph.node_ids.tolist() == ["a", "b"]
    assert [column.name for column in loaded.schema.columns] == ["id (attribute)"]


@pytest.mark.parametrize(
    "start",
    [
        '<!DOCTYPE graphml SYSTEM "http://192.0.2.1/graphml.dtd">',
        '<!DOCTYPE g [<!ENTITY secret SYSTEM "file:///etc/hostname">]>',
        f"<!DOCTYPE g [{BOMB}]>",
    ],
    ids=["address", "file", "billion laughs"],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_document_types_are_refused_before_they_are_followed(tmp_path, start, encoding, monkeypatch):
    monkeypatch.setattr(nx, "read_graphml", lambda *_: pytest.fail("it was read"))
    body = "<graphml><graph><node id='a'>&e11;&secret;</node></graph></graphml>"
    text = f"<?xml version='1.0' encoding='{encoding}'?>{start}{body}"
    (tmp_path / "bad.graphml").write_bytes(text.encode(encoding))
    with pytest.raises(DataError, match="declares a document type"):
        read_graph(tmp_path / "bad.graphml")


@pytest.mark.parametrize("content", [b"<graphml><graph>", b"<graphml/>", b"nothing", b"\x00\x01"])
def test_damaged_files_are_named(tmp_path, content):
    (tmp_path / "bad.graphml").write_bytes(content)
    with pytest.raises(NodeJEPAError, match=r"bad\.graphml"):
        read_graph(tmp_path / "bad.graphml")


@pytest.mark.slow
def test_the_limit_on_what_unpacks_holds_here_too(tmp_path):
    (tmp_path / "big.graphml.gz").write_bytes(gzip.compress(b"<graphml>" + b" " * 50_000_000))
    with pytest.raises(DataError, match="unpacks to more"):
        read_graph(tmp_path / "big.graphml.gz", memory_limit=Room.of(None).held / 1e9 + 0.05)


def test_numbers_survive(club, monkeypatch):
    monkeypatch.setattr("nodejepa.tables.inputs._SHOW_PROGRESS_ABOVE", 0)  # as large files do
    graph = load_graph(club, drop=["club"], scale="none")
    np.testing.assert_allclose(np.asarray(graph.features).ravel(), np.arange(34) + 0.5)
