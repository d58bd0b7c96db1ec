"""Wide features of mostly zeros on disk: kept as CSR, with the bits and the embeddings of those in memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import torch

from nodejepa.errors import DataError, GraphError
from nodejepa.graph_checks import read_features
from nodejepa.methods import UNTRAINED, LinearJEPA, NodeJEPA, make_method
from nodejepa.methods.closed_form import Sums
from nodejepa.nn.encoders import make_encoder
from nodejepa.nn.inputs import WholeGraph
from nodejepa.nn.stored_inputs import StoredInputs
from nodejepa.structure.partition import random_parts
from nodejepa.tables import StoredGraph, read_graph
from nodejepa.tables import table as io_table
from nodejepa.tables.ordered import ordered_by_part
from nodejepa.tables.prepare import prepare_store
from nodejepa.tables.store import DENSE, SPARSE

NODES = 700


def write(folder, *, numbers=0, categories=60, filled="all"):
    """Two columns of categories and some of numbers, of neighbours that are alike."""
    rng = np.random.default_rng(categories)
    ends = rng.integers(0, NODES, (2, 5 * NODES))
    ends[1] = (ends[0] + rng.integers(1, 9, ends.shape[1])) % NODES
    places = np.arange(NODES) * categories // NODES
    table = {"id": np.arange(NODES)}
    for name, spread in (("c", 3), ("d", 9)):
        drawn = (places + rng.integers(0, spread, NODES)) % categories
        table[name] = [f"{value:03d}" for value in drawn]
    for i in range(numbers):
        seen = {"all": slice(None), "first": slice(50), "last": slice(50, None)}[filled]
        table[f"x{i}"] = np.zeros(NODES)
        table[f"x{i}"][seen] = rng.normal(size=NODES)[seen]
    pq.write_table(pa.table({"source": ends[0], "target": ends[1]}), folder / "e.parquet")
    pq.write_table(pa.table(table), folder / "n.parquet", row_group_size=50)
    return folder / "e.parquet", folder / "n.parquet"


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The same graph in memory and on disk, 120 columns, 1 in 60 of them filled."""
    folder = tmp_path_factory.mktemp("sparse")
    files = write(folder)
    graph, store = read_graph(*files).graph, prepare_store(*files, out=folder / "g.store")
    assert sp.issparse(graph.features)
    assert store.content_hash == graph.content_hash
    assert store.sparse_features
    return graph, store


@pytest.mark.parametrize(
    ("numbers", "categories", "filled"),
    [(0, 60, "all"), (3, 30, "all"), (40, 60, "all"), (60, 60, "first"), (60, 60, "last")],
    ids=["sparse", "some-numbers", "dense", "dense-at-first", "sparse-at-first"],
)
def test_the_form_is_that_in_memory_whatever_the_first_rows_look_like(
    tmp_path, monkeypatch, numbers, categories, filled
):
    monkeypatch.setattr(io_table, "_BATCH_CELLS", 1024)
    files = write(tmp_path, numbers=numbers, categories=categories, filled=filled)
    options = {"scale": "none"}  # so that one batch or many make no difference
    graph = read_graph(*files, **options).graph
    store = prepare_store(*files, out=tmp_path / "g.store", **options)
    assert store.content_hash == graph.content_hash
    assert (store.manifest.feature_entries is not None) == sp.issparse(graph.features)
    names = {path.name for path in store.folder.iterdir()}
    assert names & {DENSE, *SPARSE} == (set(SPARSE) if sp.issparse(graph.features) else {DENSE})


def test_linear_jepa_of_one_block_has_the_bits_of_the_graph_in_memory(both):
    graph, store = both
    ours, theirs = LinearJEPA().fit(store), LinearJEPA().fit(graph)
    assert ours.findings_ == theirs.findings_
    np.testing.assert_array_equal(ours.transform(store)[:], theirs.transform(graph))


@pytest.mark.usefixtures("small_blocks")
def test_sums_over_blocks_are_those_over_all_rows(both):
    graph, store = both
    ours, theirs = Sums(StoredInputs(store)), Sums(WholeGraph(graph))
    assert len(ours.spans) > 3
    v = torch.eye(120)
    for name in ("second", "cross"):
        wanted = getattr(theirs, name)(v)
        torch.testing.assert_close(getattr(ours, name)(v).float(), wanted, rtol=1e-5, atol=1e-4)
    for mine, wanted in zip(ours.means(), theirs.means(), strict=True):
        torch.testing.assert_close(mine.float(), wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", UNTRAINED)
@pytest.mark.usefixtures("small_blocks")
def test_floors_by_blocks_are_those_of_the_whole_graph(both, tmp_path, name):
    graph, store = both
    z = make_method(name, seed=3).fit(graph).transform(graph)
    z = z if isinstance(z, np.ndarray) else z.toarray()
    ours = make_method(name, seed=3).fit(store).transform(store, scratch=tmp_path)
    if name == "equal-hops":  # how loud a hop is, is summed in another order
        np.testing.assert_allclose(ours[:], z, rtol=1e-6)
    else:
        np.testing.assert_array_equal(ours[:], z)
    some = np.array([0, 3, 149, 150, 600, 699])
    rows = ours[some]
    assert sp.issparse(rows) == (name == "raw"), "wide rows that are scored stay sparse"
    np.testing.assert_array_equal(rows.toarray() if sp.issparse(rows) else rows, ours[:][some])


@pytest.mark.parametrize("kind", ["gcn", "sage", "gin", "gat", "mlp"])
@pytest.mark.parametrize("row_normalise", [False, True])
@pytest.mark.usefixtures("small_blocks")
def test_layers_by_blocks_are_those_of_the_whole_graph(both, tmp_path, kind, row_normalise):
    graph, store = both
    torch.manual_seed(0)
    encoder = make_encoder(kind, 120, hidden=64, layers=2, row_normalise=row_normalise).eval()
    with torch.no_grad():
        ours = encoder.embed(StoredInputs(store, tmp_path)).numpy()
        z = encoder.embed(WholeGraph(graph)).numpy()
    if kind == "gcn":
        np.testing.assert_array_equal(ours, z)
    np.testing.assert_allclose(ours, z, rtol=1e-4, atol=1e-6 * abs(z).max())


@pytest.mark.usefixtures("small_blocks")
def test_a_part_is_one_stretch_of_the_copy(both):
    graph, store = both
    part = random_parts(graph, 5)
    mine, wanted = ordered_by_part(store, part), np.argsort(part, kind="stable")
    assert mine.sparse_features
    assert (mine.features(0, graph.num_nodes) != graph.features[wanted]).nnz == 0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["nodejepa", "graphmae"])
@pytest.mark.usefixtures("small_blocks")
def test_training_on_disk_has_the_bits_of_training_in_memory(both, method):
    graph, store = both
    settings = {"training.epochs": 2, "training.parts": 6, "training.parts_per_step": 3, "encoder.hidden": 32}
    if method == "nodejepa":
        settings |= {"predictor.hidden": 32, "predictor.descriptors": ("degree",), "start": "random"}
    ours, theirs = (make_method(method, settings=settings).fit(given) for given in (store, graph))
    for name, value in theirs.encoder_.state_dict().items():
        assert torch.equal(ours.encoder_.state_dict()[name], value), name


def test_nodejepa_at_its_linear_start_is_solved(both):
    graph, store = both
    method = NodeJEPA(preset="linear-start", epochs=0)
    ours = method.fit(store).transform(store)[:]
    np.testing.assert_array_equal(ours, method.fit(graph).transform(graph))


def test_nobody_reads_all_of_it(both, monkeypatch, small_blocks):  # noqa: ARG001
    _, store = both
    read = StoredGraph.feature_rows

    def some(self, low, high):
        assert high - low <= 200
        return read(self, low, high)

    monkeypatch.setattr(StoredGraph, "feature_rows", some)
    model = LinearJEPA().fit(store)
    assert model.transform(store).shape == (NODES, model.encoder_.out_dim)


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
def test_rows_of_a_batch_are_counted_from_the_first_of_all(form):
    with pytest.raises(GraphError, match="row 11, column 1 is inf"):
        read_features(form([[1.0, 0.0], [0.0, np.inf]]), 10)


def test_flipped_columns_are_found(tmp_path):
    store = prepare_store(*write(tmp_path), out=tmp_path / "g.store")
    path = store.folder / SPARSE[1]
    columns = np.fromfile(path, dtype=np.int32)
    columns[100] = 1 << 30
    columns.tofile(path)
    with pytest.raises(DataError, match="of no column"):
        StoredGraph(store.folder).feature_rows(0, NODES)
    pointers = np.fromfile(store.folder / SPARSE[0], dtype=np.int64)
    pointers[5] = 0
    pointers.tofile(store.folder / SPARSE[0])
    with pytest.raises(DataError, match="where the next begins"):
        StoredGraph(store.folder)
