"""PyG, NetworkX and SciPy objects in and out, and what PyG itself would compute."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

from nodejepa.errors import DataError, GraphError, NodeJEPAError
from nodejepa.graph import Graph
from nodejepa.methods import make_method
from nodejepa.tables.convert import as_graph, embeddings_frame, from_networkx, from_pyg
from reference.convert import to_networkx, to_pyg


@st.composite
def graphs(draw) -> Graph:
    size = draw(st.integers(1, 7))
    node = st.integers(0, size - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=15))
    weights = draw(st.none() | st.just(np.arange(1, len(pairs) + 1) / 4))
    features = np.arange(size * 2, dtype=np.float32).reshape(size, 2)
    return Graph.from_edges(
        [i for i, _ in pairs],
        [j for _, j in pairs],
        features=sp.csr_array(features) if draw(st.booleans()) else features,
        weights=weights,
        node_ids=[f"n{i}" for i in range(size)],
        direction=draw(st.sampled_from(["symmetrize", "keep"])),
    )


def pyg_data(**fields):
    from torch_geometric.data import Data  # takes seconds: only the process that runs this file pays

    return Data(**fields)


def assert_same(one: Graph, other: Graph) -> None:
    assert one.structure_hash == other.structure_hash
    dense = [g.features.toarray() if sp.issparse(g.features) else g.features for g in (one, other)]
    np.testing.assert_array_equal(*dense)


def kept(graph: Graph) -> str:
    return "keep" if graph.directed else "check"


@given(graphs())
def test_pyg_round_trip(graph):
    assert_same(from_pyg(to_pyg(graph), direction=kept(graph)), graph)


@given(graphs())
def test_networkx_round_trip(graph):
    again = from_networkx(to_networkx(graph), feature="x", weight="weight", direction=kept(graph))
    assert_same(again, graph)
    assert again.node_ids.tolist() == graph.node_ids.tolist()


@given(graphs())
def test_normalized_adjacency_is_what_pyg_propagates_with(graph):
    from torch_geometric.nn.conv.gcn_conv import gcn_norm

    data = to_pyg(graph)
    weight = torch.from_numpy(graph.edge_arrays()[2])
    (source, target), norm = gcn_norm(data.edge_index, weight, num_nodes=graph.num_nodes)
    expected = sp.coo_array((norm.numpy(), (target.numpy(), source.numpy())), shape=graph.adjacency.shape)
    np.testing.assert_allclose(graph.normalized_adjacency.toarray(), expected.toarray(), atol=1e-6)


def test_as_graph_takes_every_kind():
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    adjacency = sp.coo_array((np.ones(4), edges.numpy()), shape=(3, 3))
    graph = Graph.from_scipy(adjacency)
    assert as_graph(graph) is graph
    for other in (adjacency, pyg_data(edge_index=edges), nx.path_graph(3)):
        assert as_graph(other).structure_hash == graph.structure_hash


def test_pyg_labels_stay_behind():
    data = pyg_data(edge_index=torch.tensor([[0, 1], [1, 0]]), x=torch.eye(2), y=torch.tensor([0, 1]))
    assert not any(name == "y" or "label" in name for name in vars(from_pyg(data)))


def test_pyg_isolated_nodes_are_kept():
    edges = torch.tensor([[0, 1], [1, 0]])
    assert from_pyg(pyg_data(edge_index=edges, num_nodes=5)).num_nodes == 5
    assert from_pyg(pyg_data(edge_index=edges, x=torch.ones(4, 1))).num_nodes == 4


@pytest.mark.parametrize(
    "x", [torch.eye(2).to_sparse(), torch.eye(2).bfloat16(), torch.eye(2).requires_grad_()]
)
def test_pyg_features_of_every_layout(x):
    graph = from_pyg(pyg_data(edge_index=torch.tensor([[0, 1], [1, 0]]), x=x))
    assert_same(graph, graph.with_features(np.eye(2)))
    assert sp.issparse(graph.features) == x.is_sparse


def test_networkx_names_weights_and_multi_edges():
    source = nx.MultiGraph()
    source.add_nodes_from([(0, "a"), (0, "b"), (1, "a")])
    source.add_edge((0, "a"), (0, "b"), w=2)
    source.add_edge((0, "b"), (0, "a"), w=3)
    source.add_edge((1, "a"), (1, "a"), w=9)
    graph = from_networkx(source, weight="w")
    assert graph.node_ids.tolist() == [(0, "a"), (0, "b"), (1, "a")]
    assert graph.adjacency.toarray().tolist() == [[0, 5, 0], [5, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("kind", [nx.MultiGraph, nx.MultiDiGraph])
def test_parallel_edges_without_weights_add_up_as_in_networkx(kind):
    source = kind([("a", "b"), ("a", "b"), ("b", "c")])
    found = from_networkx(source, direction="keep").adjacency.toarray()
    assert found.tolist() == nx.to_numpy_array(source).tolist()
    assert from_networkx(source, weight=False, direction="keep").adjacency.max() == 1


def test_one_way_edges_join_both_ways_with_a_warning():
    directed = nx.DiGraph([(0, 1)])
    data = pyg_data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)
    matrix = sp.coo_array(([1.0], ([0], [1])), shape=(2, 2))
    for source, convert in ((directed, "from_networkx"), (data, "from_pyg"), (matrix, "Graph.from_scipy")):
        with pytest.warns(
            UserWarning, match=rf'directed.*joins both ways.*{convert}\(graph, direction="keep"'
        ):
            graph = as_graph(source)
        assert graph.num_edges == 2
        assert not graph.directed
    with pytest.raises(GraphError, match=r'directed.*Pass direction="symmetrize"'):
        from_pyg(data)
    assert from_pyg(data, direction="symmetrize").num_edges == 2
    assert Graph.from_scipy(matrix, direction="symmetrize").num_edges == 2
    assert from_networkx(directed, direction="symmetrize").num_edges == 2
    assert from_networkx(directed, direction="keep").directed


EDGES = torch.tensor([[0, 1], [1, 0]])


@pytest.mark.parametrize(
    "source",
    [
        None,
        "graph",
        42,
        [[0, 1], [1, 0]],
        np.eye(3),
        SimpleNamespace(edge_index=None),
        SimpleNamespace(edge_index=torch.zeros(3)),
        SimpleNamespace(edge_index=EDGES.float() + 0.5),
        SimpleNamespace(edge_index=EDGES, x=torch.ones(2)),
        SimpleNamespace(edge_index=EDGES, x="text"),
        SimpleNamespace(edge_index=EDGES, x=torch.full((2, 1), torch.nan)),
        SimpleNamespace(edge_index=EDGES, x=torch.ones(1, 1)),
        SimpleNamespace(edge_index=EDGES, num_nodes="two"),
        SimpleNamespace(edge_index=EDGES, edge_weight=torch.ones(2, 1)),
        SimpleNamespace(edge_index=EDGES, edge_weight=-torch.ones(2)),
        nx.Graph(),
    ],
)
def test_what_is_no_graph_is_refused(source):
    with pytest.raises(GraphError):
        as_graph(source)


def test_edge_attr_is_not_taken_for_a_weight_without_a_word():
    """It may be a distance or a kind; a weight is said to be one."""
    data = pyg_data(edge_index=EDGES, edge_attr=torch.tensor([[5.0], [5.0]]), num_nodes=2)
    with pytest.warns(UserWarning, match="set data.edge_weight = data.edge_attr.ravel"):
        assert not from_pyg(data).is_weighted
    one_way = pyg_data(edge_index=EDGES[:, :1], edge_attr=torch.ones(1, 1), num_nodes=2)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        as_graph(one_way)
    assert sum("edge_attr" in str(each.message) for each in said) == 1
    data.edge_weight = data.edge_attr.ravel()
    assert from_pyg(data).is_weighted


def test_networkx_attributes_must_be_everywhere_and_numbers():
    path = nx.path_graph(2)
    with pytest.raises(GraphError, match="node 0 has no attribute 'x'"):
        from_networkx(path, feature="x")
    with pytest.raises(GraphError, match="edge 0-1 has no attribute 'w'"):
        from_networkx(path, weight="w")
    for bad in (["text", [1]], [[1], [1, 2]], [object(), object()], [None, None]):
        nx.set_node_attributes(path, dict(enumerate(bad)), "x")
        with pytest.raises(GraphError):
            from_networkx(path, feature="x")
    with pytest.raises(GraphError, match="unknown"):
        from_networkx(path, direction="sideways")
    with pytest.raises(GraphError, match="not a NetworkX graph"):
        from_networkx([1, 2])


def test_a_missing_library_is_explained(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(GraphError, match="pandas is not installed") as caught:
        embeddings_frame(None, np.eye(2))
    assert "pip install 'nodejepa[pandas]'" in caught.value.fix


# ---------------------------------------------------------------- embeddings go back

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


def test_embeddings_go_back_on_pyg_data():
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    data = pyg_data(x=torch.eye(3), edge_index=edges, y=torch.tensor([0, 1, 0]))
    z = make_method("random-gcn").fit(data).transform(data)
    data.z = torch.from_numpy(z)
    assert data.is_node_attr("z")
    part = data.subgraph(torch.tensor([2, 1]))  # PyG takes z along with the nodes
    np.testing.assert_array_equal(part.z.numpy(), z[[2, 1]])
    again = from_pyg(pyg_data(x=data.z, edge_index=data.edge_index))
    np.testing.assert_array_equal(again.features, z)


def test_embeddings_go_back_on_networkx_nodes():
    people = nx.Graph([("eve", "ann"), ("ann", "bob")])
    graph = from_networkx(people, features=np.eye(3))
    z = make_method("random-gcn").fit(graph).transform(graph)
    nx.set_node_attributes(people, dict(zip(graph.node_ids.tolist(), z, strict=True)), "z")
    np.testing.assert_array_equal(people.nodes["bob"]["z"], z[2])
    np.testing.assert_array_equal(from_networkx(people, feature="z").features, z)
