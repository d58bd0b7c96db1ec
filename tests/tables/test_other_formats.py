"""What people have and we do not read is answered with what to do; slips of the pen with what was meant."""

from __future__ import annotations

import json

import pandas as pd
import pytest
import torch
from torch_geometric.data import HeteroData

from nodejepa.errors import CheckpointError, DataError, GraphError
from nodejepa.tables import as_graph, from_pyg, read_embeddings, read_graph
from nodejepa.workflow import apply_run

EDGES = "source,target\nann,bob\nbob,eve\neve,ann\n"
NODES = "id,age,team\nann,1,red\nbob,2,blue\neve,3,red\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "nodes.csv").write_text(NODES)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "content", "what", "fix"),
    [
        ("graph.xlsx", b"PK\x03\x04rest", "a spreadsheet", "read_excel"),
        ("graph.xls", b"\xd0\xcf\x11\xe0rest", "a spreadsheet", "Save each sheet as CSV"),
        ("graph.json", json.dumps({"nodes": [], "links": []}).encode(), "JSON", "node_link_graph"),
        ("graph.jsonl", b'{"source": 1, "target": 2}\n', "JSON", "read_json"),
        ("graph.txt", b'[{"source": 1, "target": 2}]', "JSON", "read_json"),
        ("graph.gexf", b"<?xml version='1.0'?><gexf></gexf>", "XML or GML", "read_gexf"),
        ("graph.gml", b"graph [\n node [ id 0 ]\n]", "XML or GML", "read_gml"),
        ("graph.mtx", b"%%MatrixMarket matrix coordinate real general\n", "a MatrixMarket file", "mmread"),
        ("graph.txt", b"<graphml></graphml>", "XML or GML", "read_graphml"),
        ("graph.zip", b"PK\x03\x04rest", "a zip archive", "CSV or TSV"),
        ("graph.npz", b"PK\x03\x04rest", "a file of arrays", "from_scipy"),
        ("graph.txt", b"\x93NUMPYrest", "a file of arrays", "from_edges"),
    ],
)
def test_formats_that_are_not_read(tmp_path, name, content, what, fix):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=what) as caught:
        read_graph(tmp_path / name)
    assert fix in caught.value.fix


@pytest.mark.parametrize("convert", [as_graph, from_pyg])
def test_several_kinds_of_nodes(convert):
    data = HeteroData()
    data["user"].x, data["item"].x = torch.ones(2, 3), torch.ones(4, 3)
    data["user", "rates", "item"].edge_index = torch.tensor([[0, 1], [2, 3]])
    with pytest.raises(GraphError) as caught:
        convert(data)
    assert "data.to_homogeneous()" in caught.value.fix
    assert as_graph(data.to_homogeneous().subgraph(torch.arange(2))).num_nodes == 2  # the advice works


@pytest.mark.parametrize(
    ("source", "fix"),
    [
        ("edges.csv", "load_graph"),
        (pd.DataFrame({"a": [1]}), "load_graph"),
        (torch.zeros(2, 3), "Graph.from_edges"),
    ],
)
def test_objects_that_are_no_graphs(source, fix):
    with pytest.raises(GraphError) as caught:
        as_graph(source)
    assert fix in caught.value.fix


@pytest.mark.parametrize(
    ("options", "meant"),
    [
        ({"labels": "taem"}, "'team'"),
        ({"labels": "Team"}, "'team'"),
        ({"id_column": "ID"}, "'id'"),
        ({"source": "sorce", "target": "target"}, "'source'"),
        ({"drop": ["aeg"]}, "'age'"),
    ],
)
def test_mistyped_columns(files, options, meant):
    with pytest.raises(GraphError, match=f"Did you mean {meant}"):
        read_graph(files / "edges.csv", files / "nodes.csv", **options)


@pytest.mark.parametrize("wrong", ["egdes.csv", "edges.cvs", "Edges.csv"])
def test_mistyped_paths(files, wrong):
    with pytest.raises(DataError, match=r"Did you mean .*edges\.csv"):
        read_graph(files / wrong)
    with pytest.raises(DataError, match=f"Did you mean {files}"):
        read_graph(f"{files}x/edges.csv")
    with pytest.raises(DataError) as caught:
        read_graph(files / "quite-another-thing.parquet")
    assert "Did you mean" not in caught.value.fix


def test_mistyped_embeddings_and_runs(files):
    (files / "z.run").mkdir()
    (files / "vectors.npy").write_bytes(b"")
    with pytest.raises(DataError, match=r"Did you mean .*vectors\.npy"):
        read_embeddings(files / "vector.npy")
    with pytest.raises(CheckpointError, match=r"Did you mean .*z\.run"):
        apply_run(files / "x.run", files / "edges.csv")


def test_swapped_files_are_noticed(files):
    with pytest.raises(GraphError, match="edges and nodes are swapped"):
        read_graph(files / "nodes.csv", files / "edges.csv")
    places = pd.DataFrame({"id": ["ann", "bob", "eve"], "x": [1.0, 2, 3], "y": [2.0, 3, 5]})
    pairs = pd.DataFrame({"mother": ["ann", "bob"], "friend": ["bob", "eve"]})
    assert read_graph(pairs, places).graph.num_features == 2  # x and y are places, not ends
    bare = pd.DataFrame({"a1": ["ann", "ann"], "a2": ["bob", "eve"]})
    with pytest.raises(GraphError, match="are edges and nodes swapped"):
        read_graph(places[["id", "x"]].astype(str), bare)
