"""Embeddings on disk: original ids, original order, whole or not at all."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from nodejepa.errors import GraphError, NodeJEPAError
from nodejepa.graph import Graph
from nodejepa.tables import export_embeddings, write_embeddings

Z = np.array([[1, 0.5], [0, 2], [3, 0]], dtype=np.float32)


@pytest.mark.parametrize("embeddings", [Z, Z.astype(np.float64), np.asfortranarray(Z), sp.csr_array(Z)])
@pytest.mark.parametrize("ids", [None, ["b", "<i>", "=1+1"], [2**62, -5, 0]])
def test_round_trip(tmp_path, embeddings, ids):
    write_embeddings(
        tmp_path / "deep" / "z.parquet", Graph.from_edges([0], [1], num_nodes=3, node_ids=ids), embeddings
    )
    table = pq.read_table(tmp_path / "deep" / "z.parquet").to_pydict()
    assert table == {"id": ids or [0, 1, 2], "z0": [1, 0, 3], "z1": [0.5, 2, 0]}


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path):
    mixed = Graph.from_edges([0], [1], node_ids=[1, "one", (2,)])
    with pytest.raises(GraphError, match="parquet cannot hold"):
        write_embeddings(tmp_path / "z.parquet", mixed, Z)
    with pytest.raises(GraphError, match=r"parquet cannot hold.*below 2\^63"):
        write_embeddings(tmp_path / "z.parquet", Graph.from_edges([0], [1], node_ids=[2**64, 1, 2]), Z)
    for bad in (Z[:2], Z[0], np.full((3, 1), "text")):
        with pytest.raises(GraphError, match="for 3 nodes"):
            write_embeddings(tmp_path / "z.parquet", mixed, bad)
    with pytest.raises(GraphError, match="embeddings are a list"):
        write_embeddings(tmp_path / "z.parquet", mixed, Z.tolist())
    for name in ("z.csv", "z", ""):
        with pytest.raises(GraphError, match=r"\.parquet .* or \.npy"):
            write_embeddings(tmp_path / name, mixed, Z)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("embeddings", [Z.astype(np.float64), sp.csr_array(Z)])
@pytest.mark.parametrize("name", ["z.npy", "z.NPY"])
def test_npy_is_the_array_in_the_order_of_nodes(tmp_path, embeddings, name):
    write_embeddings(tmp_path / name, Graph.from_edges([0], [1], num_nodes=3), embeddings)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    found = np.load(tmp_path / name)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, Z)


def test_paths_that_cannot_be_written_are_explained(tmp_path):
    (tmp_path / "folder.parquet").mkdir()
    (tmp_path / "file").touch()
    graph = Graph.from_edges([0], [1], num_nodes=3)
    for path in (tmp_path / "folder.parquet", tmp_path / "file" / "z.npy"):
        with pytest.raises(NodeJEPAError, match="Check the path") as caught:
            write_embeddings(path, graph, Z)
        assert caught.value.where == str(path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.parquet"]


def test_a_file_is_hardly_larger_than_its_numbers(tmp_path):
    """Parquet's dictionaries would make it half as large again, and slow to write."""
    z = np.random.default_rng(0).normal(size=(5000, 32)).astype(np.float32)
    graph = Graph.from_edges([0], [1], num_nodes=len(z), node_ids=[f"n{i}" for i in range(len(z))])
    write_embeddings(tmp_path / "z.parquet", graph, z)
    export_embeddings(tmp_path / "v.parquet", graph.node_ids, z, to="parquet")
    for name in ("z.parquet", "v.parquet"):
        assert (tmp_path / name).stat().st_size < 1.15 * z.nbytes


@pytest.mark.parametrize("there", [False, True])
def test_a_link_stays_and_the_file_that_it_names_is_written(tmp_path, there):
    target, link = tmp_path / "other" / "z.npy", tmp_path / "link.npy"
    target.parent.mkdir()
    if there:
        np.save(target, np.zeros(1))
    link.symlink_to(target)
    write_embeddings(link, Graph.from_edges([0], [1]), np.ones((2, 3), dtype=np.float32))
    assert link.is_symlink()
    np.testing.assert_array_equal(np.load(target), np.ones((2, 3)))
