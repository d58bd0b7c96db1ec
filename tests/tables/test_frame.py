"""Embeddings in pandas, and back on the objects the graph came from."""

from __future__ import annotations

import sys

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from nodejepa import Graph, from_networkx, from_pyg
from nodejepa.errors import DataError, GraphError, NodeJEPAError
from nodejepa.methods import make_method
from nodejepa.tables import embeddings_frame

Z = np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.mark.parametrize("z", [Z, sp.csr_array(Z)])
def test_frame_is_keyed_by_id(z):
    frame = embeddings_frame(["b", "a", "=c"], z)
    assert frame.index.name == "id"
    assert list(frame.columns) == ["z0", "z1"]
    assert frame.loc["a"].tolist() == [2, 3]
    np.testing.assert_array_equal(frame.to_numpy(), Z)


def test_frame_without_ids_is_numbered():
    assert embeddings_frame(Graph.from_edges([0], [1]).node_ids, Z).index.tolist() == [0, 1, 2]
    named = Graph.from_edges([0, 1], [1, 2], node_ids=["a", "b", "c"])
    assert embeddings_frame(named, Z).index.tolist() == ["a", "b", "c"]


def test_bad_frames_are_refused():
    with pytest.raises(DataError, match="2 ids for 3 rows"):
        embeddings_frame(["a", "b"], Z)
    with pytest.raises(NodeJEPAError, match="no table of rows"):
        embeddings_frame(["a"], Z[0])


def test_without_pandas_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(GraphError, match=r"pip install 'nodejepa\[pandas\]'"):
        embeddings_frame(None, Z)


def test_embeddings_go_back_on_pyg_data():
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    data = Data(x=torch.eye(3), edge_index=edges, y=torch.tensor([0, 1, 0]))
    z = make_method("random-gcn").fit(data).transform(data)
    data.z = torch.from_numpy(z)
    assert data.is_node_attr("z")
    part = data.subgraph(torch.tensor([2, 1]))  # PyG takes z along with the nodes
    np.testing.assert_array_equal(part.z.numpy(), z[[2, 1]])
    again = from_pyg(Data(x=data.z, edge_index=data.edge_index))
    np.testing.assert_array_equal(again.features, z)


def test_embeddings_go_back_on_networkx_nodes():
    people = nx.Graph([("eve", "ann"), ("ann", "bob")])
    graph = from_networkx(people, features=np.eye(3))
    z = make_method("random-gcn").fit(graph).transform(graph)
    nx.set_node_attributes(people, dict(zip(graph.node_ids.tolist(), z, strict=True)), "z")
    np.testing.assert_array_equal(people.nodes["bob"]["z"], z[2])
    np.testing.assert_array_equal(from_networkx(people, feature="z").features, z)
