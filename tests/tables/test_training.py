"""Training in parts from a graph on disk is training in parts from the graph in memory, read by rows."""

from __future__ import annotations

import importlib
import itertools

import numpy as np
import pytest
import torch

from nodejepa.errors import ConfigError
from nodejepa.masking.patches import Patches
from nodejepa.methods import NodeJEPA, make_method
from nodejepa.nn.inputs import WholeGraph
from nodejepa.nn.stored_inputs import StoredInputs, StoredPart
from nodejepa.nn.workspace import Workspace
from nodejepa.structure import DESCRIPTORS, partition
from nodejepa.structure.partition import random_parts
from nodejepa.tables import StoredGraph, ordered
from nodejepa.tables.ordered import ordered_by_part

# by name, because the package offers a function that is called like the module
partition_module = importlib.import_module("nodejepa.structure.partition")
BY_ROWS = ("pagerank", "degree", "clustering")
IN_PARTS = {"training.epochs": 2, "training.parts": 8, "training.parts_per_step": 4}
SMALL = IN_PARTS | {"encoder.hidden": 32, "predictor.hidden": 32, "predictor.descriptors": BY_ROWS}


def bits(estimator):
    return {name: value.numpy().tobytes() for name, value in estimator.encoder_.state_dict().items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("directed", "weighted", "more"),
    [
        (False, False, {"predictor.descriptors": DESCRIPTORS}),
        (True, True, {"training.partition": "random"}),
        (False, True, {"training.micro_batches": 2}),
    ],
    ids=["metis", "directed-random", "weighted-micro-batches"],
)
@pytest.mark.usefixtures("small_blocks")
def test_nodejepa_on_disk_has_the_bits_of_nodejepa_in_memory(make_graph, directed, weighted, more):
    graph, store = make_graph(20, directed, weighted)
    ours, theirs = (NodeJEPA(preset="paper", **SMALL | more, seed=3).fit(given) for given in (store, graph))
    assert bits(ours) == bits(theirs)
    assert [record["loss"] for record in ours.history_] == [record["loss"] for record in theirs.history_]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "columns"),
    [
        *((name, 20) for name in ("patchjepa", "bgrl", "dgi", "graphmae", "cca-ssg")),
        *((name, "sparse") for name in ("nodejepa", "graphmae")),
    ],
)
@pytest.mark.usefixtures("small_blocks")
def test_other_methods_on_disk_have_the_bits_of_those_in_memory(make_graph, method, columns):
    graph, store = make_graph(columns)
    more = {"predictor.hidden": 32, "predictor.descriptors": ("degree",), "start": "random"}
    more = {"nodejepa": more, "patchjepa": {"patches.hops": 2}}.get(method, {})
    settings = IN_PARTS | {"encoder.hidden": 32} | more
    ours, theirs = (make_method(method, settings=settings).fit(given) for given in (store, graph))
    assert bits(ours) == bits(theirs)


@pytest.mark.slow
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.usefixtures("small_blocks")
def test_parts_by_rows_are_those_of_the_graph_in_memory(make_graph, monkeypatch, directed):
    graph, store = make_graph(20, directed, directed)
    for entries in (partition_module.METIS_ENTRIES, 0):
        monkeypatch.setattr(partition_module, "METIS_ENTRIES", entries)
        part = partition(graph, 6, cache=False)
        np.testing.assert_array_equal(partition(store, 6, cache=False), part)
    for hops in (1, 2):
        mine, wanted = (Patches.from_partition(given, part, hops=hops) for given in (store, graph))
        np.testing.assert_array_equal(mine.pooling.indptr, wanted.pooling.indptr)
        np.testing.assert_array_equal(mine.pooling.indices, wanted.pooling.indices)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.usefixtures("small_blocks")
def test_joined_parts_are_the_induced_subgraph(make_graph, directed, weighted):
    """Read from the ordered copy alone: nodes, edges, operators and features are those of the whole graph."""
    graph, store = make_graph(20, directed, weighted)
    part = random_parts(graph, 6)
    copy, whole = ordered_by_part(store, part), WholeGraph(graph)
    for chosen in ([2], [0, 3, 5], list(range(6))):
        mine = StoredPart(copy, chosen, whole.device)
        wanted = whole.induced([np.flatnonzero(np.isin(part, chosen)).astype(np.int32)])
        np.testing.assert_array_equal(mine.nodes, wanted.nodes)
        for matrix, other in (
            (mine.adjacency, wanted.adjacency),
            *((getattr(mine, k).matrix, getattr(wanted, k).matrix) for k in ("propagation", "neighbour_sum")),
        ):
            np.testing.assert_allclose(matrix.data, other.data, rtol=1e-6 if weighted else 0)
            np.testing.assert_array_equal(matrix.indices, other.indices)
        torch.testing.assert_close(mine.neighbour_mean.tensor.values(), wanted.neighbour_mean.tensor.values())
        weight = torch.randn(20, 5, generator=torch.Generator().manual_seed(0))
        assert mine.transform_features(weight).equal(wanted.transform_features(weight))
        constant = torch.arange(graph.num_nodes)
        assert mine.take(constant).equal(wanted.take(constant))


def test_no_step_and_no_look_reads_more_than_its_parts(make_graph, monkeypatch):
    """Once the copy is there, every read is one part of it: also the watch's, after the last epoch."""
    _, store = make_graph(20)
    estimator = NodeJEPA(preset="paper", **SMALL)
    estimator.prepare(store)
    largest = int(np.bincount(partition(store, 8)).max())
    read = []
    for name in ("rows", "in_rows", "feature_rows"):
        method = getattr(StoredGraph, name)

        def recorded(self, low, high, method=method):
            read.append((self.folder, high - low))
            return method(self, low, high)

        monkeypatch.setattr(StoredGraph, name, recorded)
    monkeypatch.setattr(Workspace, "fill", None)
    monkeypatch.setattr(StoredInputs, "operator_rows", None)
    estimator.fit(store)
    assert "mean_std" in estimator.history_[-1]
    assert {size for folder, size in read if folder != store.folder} <= set(range(largest + 1))
    assert all(folder != store.folder for folder, _ in read[-20:])


@pytest.mark.usefixtures("small_blocks")
def test_a_copy_that_was_cut_short_is_finished_and_a_damaged_one_is_made_again(make_graph, monkeypatch):
    graph, store = make_graph(20)
    part = random_parts(graph, 7)

    def content(folder):
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".json"}

    ordered_by_part(store, part)
    (folder,) = store.folder.glob("parts-*")
    wanted = content(folder)
    ordered_by_part(store, random_parts(graph, 3))
    assert not folder.exists(), "a copy for every number of parts would fill the disk"

    put, left = ordered._put_at, iter(range(20))

    def stops(*arguments):
        if next(left, None) is None:
            raise OSError(28, "No space left on device")
        put(*arguments)

    monkeypatch.setattr(ordered, "_put_at", stops)
    with pytest.raises(Exception, match="No space left"):
        ordered_by_part(store, part)
    assert not [*store.folder.glob("parts-*")], "nothing half-written has the name of a whole copy"
    monkeypatch.setattr(ordered, "_put_at", put)
    ordered_by_part(store, part)
    assert content(folder) == wanted
    for name in ("features.f32", "order.i32"):
        (folder / name).write_bytes(wanted[name][:-4])
        ordered_by_part(store, part)
        assert content(folder) == wanted
    (folder / "indptr.i64").unlink()
    ordered_by_part(store, part)
    assert content(folder) == wanted
    for name in ("features.f32", "order.i32", "in_weights.f64", "indices.i32"):
        (folder / name).write_bytes(wanted[name][:-4] + bytes([wanted[name][-4] ^ 1]) + wanted[name][-3:])
        ordered_by_part(store, part)
        assert content(folder) == wanted, "a flipped bit is found by its checksum"
    assert {path.name for path in store.folder.iterdir() if path.is_dir()} == {folder.name}


@pytest.mark.parametrize("columns", [20, "sparse"])
def test_the_linear_start_is_solved_on_disk_as_in_memory_and_as_linear_jepa_is(make_graph, columns):
    graph, store = make_graph(columns)
    ours, theirs = (NodeJEPA(preset="linear-start", epochs=0).fit(given) for given in (store, graph))
    np.testing.assert_array_equal(ours.transform(store)[:], theirs.transform(graph))
    assert bits(ours) == bits(make_method("linear-jepa").fit(store))


@pytest.mark.slow
def test_what_cannot_be_done_on_disk_says_what_can(make_graph):
    _, store = make_graph(20)
    with pytest.raises(ConfigError, match=r"in parts only.*e\.g\. to 42, .*e\.g\. to 21"):
        NodeJEPA(preset="paper").fit(store)
    with pytest.raises(ConfigError, match="too few for 600 parts"):
        NodeJEPA(preset="paper", **SMALL | {"training.parts": 600}).fit(store)


def test_who_reads_a_copy_reads_on_when_another_one_is_made(make_graph):
    graph, store = make_graph(20)
    mine = ordered_by_part(store, random_parts(graph, 9))
    ordered_by_part(store, random_parts(graph, 10))
    x = np.concatenate([mine.features(low, high) for low, high in itertools.pairwise(mine.starts.tolist())])
    np.testing.assert_array_equal(x, graph.features[mine.nodes(0, graph.num_nodes)])
    assert mine.rows(0, graph.num_nodes).nnz == graph.num_edges
