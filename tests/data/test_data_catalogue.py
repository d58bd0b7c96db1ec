"""The catalogue: real graphs count what they should, wrong names and wrong files are explained."""

import dataclasses
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from tests.forked import Forked

from nodejepa.data import CATALOGUE, load_dataset
from nodejepa.data.catalogue import check_counts, data_root
from nodejepa.errors import ConfigError, DataError

REAL = {  # isolated nodes, largest degree, entries of the features; sizes of the split 20-30
    "computers": ((281, 2992, 3_675_081), (200, 300)),
    "photo": ((115, 1434, 1_979_909), (160, 240)),
    "cs": (None, (300, 450)),  # the paper's table has 439 instead of 30 x 15
    "physics": (None, (100, 150)),
    "cora": (None, None),
}
DEVELOPMENT = (
    "acm actor blogcatalog chameleon_filtered citeseer dblp facebook_pagepage minesweeper pubmed tolokers"
)


def test_catalogue_names_every_promised_graph():
    promised = f"computers photo cs physics arxiv cora {DEVELOPMENT} digits synthetic synthetic-arxiv"
    assert list(CATALOGUE) == promised.split()
    for name, entry in CATALOGUE.items():
        assert entry.name == name
        assert entry.summary
        assert "\n" not in entry.summary
        assert entry.source


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_graph_has_the_published_counts(data_root, name):
    dataset, entry = load_dataset(name, data_root), CATALOGUE[name]
    graph = dataset.graph
    found = (graph.num_nodes, graph.num_edges, graph.num_features, dataset.num_classes)
    assert found == (entry.nodes, entry.edges, entry.features, entry.classes)
    assert np.unique(dataset.labels).size == entry.classes
    assert len(dataset.class_names) == entry.classes
    assert isinstance(graph.features, sp.csr_array)
    assert np.all(graph.features.data == 1)
    assert (graph.adjacency != graph.adjacency.T).nnz == 0
    assert not graph.adjacency.diagonal().any()
    assert entry.is_present(data_root)
    peculiarities, sizes = REAL[name]
    if peculiarities is not None:
        assert (np.sum(graph.degrees == 0), graph.degrees.max(), graph.features.nnz) == peculiarities
    if sizes is not None:
        split = dataset.split("20-30", seed=42)
        assert (split.train.size, split.val.size) == sizes
        assert split.test.size == graph.num_nodes - sum(sizes)


@pytest.mark.slow
@pytest.mark.parametrize("name", DEVELOPMENT.split())
def test_a_development_graph_has_its_counts(data_root, name):
    dataset, entry = load_dataset(name, data_root), CATALOGUE[name]
    assert dataset.graph.num_nodes == entry.nodes
    assert (dataset.graph.adjacency != dataset.graph.adjacency.T).nnz == 0


def test_a_development_graph_that_is_missing_or_broken_is_explained(tmp_path):
    with pytest.raises(DataError, match=r"missing, and cannot be downloaded.*development"):
        load_dataset("acm", tmp_path)
    (tmp_path / "development").mkdir()
    (tmp_path / "development" / "acm.npz").write_bytes(b"no archive")
    with pytest.raises(DataError, match="cannot be read"):
        load_dataset("acm", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["photo", "cora"])
def test_loads_agree_with_pytorch_geometric(data_root, name):
    """An independent reader of the same files."""
    npz = pytest.importorskip("torch_geometric.io.npz")
    planetoid = pytest.importorskip("torch_geometric.io.planetoid")
    dataset = load_dataset(name, data_root)
    if name == "photo":
        data = npz.read_npz(str(data_root / CATALOGUE[name].files[0]))
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = planetoid.read_planetoid_data(str(data_root / "Planetoid/Cora/raw"), "cora")
        for part, mask in (("train", "train_mask"), ("val", "val_mask"), ("test", "test_mask")):
            theirs = np.flatnonzero(data[mask].numpy())
            assert np.array_equal(getattr(dataset.official_split, part), theirs)
    assert np.array_equal(dataset.labels, data.y.numpy())
    assert np.array_equal(dataset.graph.features.toarray(), data.x.numpy())
    source, target = dataset.graph.edge_arrays()[:2]
    theirs = np.unique(data.edge_index.numpy(), axis=1)
    assert np.array_equal(np.unique(np.stack([source, target]), axis=1), theirs)


@pytest.mark.slow
def test_loading_physics_stays_below_500_mb(data_root):
    script = """
import sys
from nodejepa.data import load_dataset
from nodejepa.machine import peak_memory_mb
before = peak_memory_mb()
load_dataset("physics", sys.argv[1])
print(peak_memory_mb() - before)
"""
    code, said = Forked(script, data_root).wait()
    assert code == 0, said
    assert 0 < float(said) < 500


@pytest.mark.parametrize(
    ("typo", "meant"), [("phto", "photo"), ("Cora", "cora"), ("synthetic_arxiv", "synthetic-arxiv")]
)
def test_unknown_name_suggests_the_nearest(typo, meant):
    with pytest.raises(DataError, match=f"Did you mean '{meant}'.*Known are computers, photo"):
        load_dataset(typo)


@pytest.mark.parametrize("name", ["zzzzzz", None, 3])
def test_name_like_nothing_gets_the_list_only(name):
    with pytest.raises(DataError, match="Known are") as caught:
        load_dataset(name)
    assert "Did you mean" not in str(caught.value)


def test_only_synthetic_graphs_take_settings():
    with pytest.raises(DataError, match="takes no settings"):
        load_dataset("cora:nodes=3")
    dataset = load_dataset("synthetic:nodes=300,edges=1200,features=5,classes=3,seed=1")
    assert dataset.name == "synthetic:nodes=300,edges=1200,features=5,classes=3,seed=1"
    assert (dataset.graph.num_nodes, dataset.graph.num_edges, dataset.num_classes) == (300, 1200, 3)
    with pytest.raises(ConfigError, match="Did you mean nodes"):
        load_dataset("synthetic:node=300")


@pytest.mark.slow
@pytest.mark.parametrize("what", ["nodes", "edges", "features", "classes"])
def test_wrong_counts_are_refused(what):
    dataset, entry = load_dataset("digits"), CATALOGUE["digits"]
    wrong = dataclasses.replace(entry, **{what: getattr(entry, what) + 1})
    check_counts(dataset, entry)
    with pytest.raises(DataError, match=f"{what} instead of"):
        check_counts(dataset, wrong)


def test_root_is_argument_then_environment_then_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("NODEJEPA_DATA", str(tmp_path / "env"))
    assert data_root(tmp_path) == tmp_path
    assert data_root() == tmp_path / "env"
    monkeypatch.delenv("NODEJEPA_DATA")
    assert data_root() == Path(os.environ["NODEJEPA_CACHE"]) / "datasets"
    assert data_root("~/x") == Path.home() / "x"
    assert not CATALOGUE["photo"].is_present(tmp_path)


@pytest.mark.slow
def test_dataset_splits_by_its_default():
    digits = load_dataset("digits")
    assert digits.split(seed=42).name == "20-30"
    assert digits.split("random-10-10-80", seed=42).train.size == 179
    with pytest.raises(ValueError, match="read-only"):
        digits.labels[0] = 3
