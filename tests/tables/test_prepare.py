"""A store of files equals the graph that the reader in memory makes of them."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from nodejepa.errors import ConfigError, DataError, GraphError, NodeJEPAError
from nodejepa.tables import StoredGraph, read_graph, text
from nodejepa.tables import edges as store_edges
from nodejepa.tables import table as io_table
from nodejepa.tables.prepare import prepare_store


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Batches, pieces and buckets so small that a few edges take several of each."""
    monkeypatch.setattr(io_table, "_BATCH_CELLS", 1024)
    monkeypatch.setattr(text, "_BLOCK", 300)
    monkeypatch.setattr(store_edges, "_ROWS", 7)
    monkeypatch.setattr(store_edges, "_BUCKET", 16)


def write_tables(folder, rng, *, ids, weights=False, nodes=23, edges=90, kind="parquet", missing=False):
    """An edge list with loops, repetitions and both directions, and a table that has most of its nodes."""
    names = [name_of(ids, i) for i in range(nodes)]
    ends = rng.integers(0, nodes, (2, edges))
    ends[:, : edges // 4] = ends[::-1, edges // 4 : 2 * (edges // 4)]
    table = {"source": [names[i] for i in ends[0]], "target": [names[i] for i in ends[1]]}
    if weights:
        table["weight"] = rng.integers(0, 4, edges) / 4
    kept = nodes - 3 if missing else nodes
    order = rng.permutation(nodes)[:kept]
    described = {
        "id": [names[i] for i in order],
        "a": rng.normal(size=kept) * 3 + 1,
        "b": rng.integers(0, 2, kept),
        "c": rng.choice(["x", "y", "z"], kept).tolist(),
        "d": [None if i % 5 == 0 else float(i) for i in range(kept)],
    }
    out = []
    for name, content in (("edges", table), ("nodes", described)):
        path = folder / f"{name}.{kind}"
        if kind == "parquet":
            pq.write_table(pa.table(content), path, row_group_size=11)
        else:
            pacsv.write_csv(pa.table(content), path)
        out.append(path)
    return out


def name_of(kind, i):
    return {"integer": 7 * i - 20, "text": f"node-{i * i}", "float": float(i), "mixed": str(i)}[kind]


def assert_same(store, graph):
    assert store.structure_hash == graph.structure_hash
    assert (store.num_nodes, store.num_edges, store.num_features) == (
        graph.num_nodes,
        graph.num_edges,
        graph.num_features,
    )
    size = graph.num_nodes
    adjacency = sp.vstack([store.rows(lo, hi) for lo, hi in store.spans(5, 8)], format="csr")
    assert (adjacency != graph.adjacency).nnz == 0
    assert (sp.vstack([store.in_rows(lo, hi) for lo, hi in store.spans(5, 8)]) != graph.adjacency.T).nnz == 0
    dense = graph.features if isinstance(graph.features, np.ndarray) else graph.features.toarray()
    rows = [store.feature_rows(lo, hi) for lo, hi in store.spans(5, 8)]
    assert {type(part) for part in rows} == {np.ndarray if graph.features is dense else sp.csr_array}
    x = np.concatenate([part if isinstance(part, np.ndarray) else part.toarray() for part in rows])
    np.testing.assert_allclose(x, dense, rtol=1e-6, atol=1e-6)
    ids = [value for lo in range(0, size, 6) for value in store.ids(lo, min(lo + 6, size)).to_pylist()]
    assert ids == graph.node_ids.tolist()
    np.testing.assert_array_equal(store.degrees, graph.degrees)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_a_store_of_tables_is_the_graph_of_the_tables(tmp_path, seed, weights, directed):
    rng = np.random.default_rng(seed)
    ids, missing = ("integer", "text", "float")[seed], seed > 0
    edges, nodes = write_tables(tmp_path, rng, ids=ids, weights=weights, missing=missing)
    options = {"directed": directed}
    loaded = read_graph(edges, nodes, **options)
    store = prepare_store(edges, nodes, out=tmp_path / "g.store", **options)
    assert_same(store, loaded.graph)
    told, report = store.manifest.report, loaded.report.to_dict()
    for name in report:
        if name not in ("seconds", "notes"):
            assert told[name] == report[name], name
    # which of the strange ids is shown as an example is the one thing that may differ
    assert {re.sub("such as [^:]*", "", note) for note in told["notes"]} == {
        re.sub("such as [^:]*", "", note) for note in report["notes"]
    }


@pytest.mark.parametrize("ids", ["integer", "text", "mixed"])
def test_text_files_become_the_same_store(tmp_path, ids):
    rng = np.random.default_rng(3)
    edges, nodes = write_tables(tmp_path, rng, ids=ids, weights=True, kind="csv")
    loaded = read_graph(edges, nodes)
    assert_same(prepare_store(edges, nodes, out=tmp_path / "g.store"), loaded.graph)


def test_one_batch_gives_the_bits_of_the_graph_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(io_table, "_BATCH_CELLS", 1 << 20)
    edges, nodes = write_tables(tmp_path, np.random.default_rng(0), ids="text")
    graph = read_graph(edges, nodes).graph
    store = prepare_store(edges, nodes, out=tmp_path / "g.store")
    assert isinstance(graph.features, np.ndarray)
    assert store.content_hash == graph.content_hash


def test_ids_written_as_floats_are_merged(tmp_path):
    (tmp_path / "e.csv").write_text("source,target\n1.0,2\n2,3.0\n3,1\n")
    (tmp_path / "n.csv").write_text("id,a\n1,0.5\n2,0.25\n3,7\n")
    graph = read_graph(tmp_path / "e.csv", tmp_path / "n.csv").graph
    store = prepare_store(tmp_path / "e.csv", tmp_path / "n.csv", out=tmp_path / "g.store")
    assert_same(store, graph)


def test_what_a_store_cannot_hold_is_said(tmp_path):
    (tmp_path / "e.csv").write_text("source,target\na,b\nb,c\n")
    (tmp_path / "n.csv").write_text("id,a\na,1\nb,2\na,3\n")
    with pytest.raises(GraphError, match=r"more than once: 'a' \(rows 1 and 3\)"):
        prepare_store(tmp_path / "e.csv", tmp_path / "n.csv", out=tmp_path / "g.store")
    with pytest.raises(GraphError, match="no column that can be a feature"):
        prepare_store(tmp_path / "e.csv", out=tmp_path / "g.store", structural=())
    assert not (tmp_path / "g.store").exists()


def test_what_is_there_is_replaced_only_when_asked(tmp_path):
    edges, nodes = write_tables(tmp_path, np.random.default_rng(0), ids="integer")
    out = tmp_path / "g.store"
    prepare_store(edges, nodes, out=out)
    with pytest.raises(NodeJEPAError, match="exists"):
        prepare_store(edges, nodes, out=out)
    again = prepare_store(edges, nodes, out=out, force=True, directed=True)
    assert again.directed
    (tmp_path / "other").mkdir()
    with pytest.raises(NodeJEPAError, match="no graph store"):
        prepare_store(edges, nodes, out=tmp_path / "other", force=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "edges.parquet",
        "g.store",
        "nodes.parquet",
        "other",
    ]


def test_opened_again_it_answers_the_same(tmp_path):
    edges, nodes = write_tables(tmp_path, np.random.default_rng(0), ids="text")
    made = prepare_store(edges, nodes, out=tmp_path / "g.store")
    opened = StoredGraph(tmp_path / "g.store")
    opened.verify()
    assert repr(opened) == repr(made)
    assert [*opened.spans(5, 8)][-1][1] == opened.num_nodes


@pytest.mark.parametrize("words", [4, 40])
def test_what_a_column_is_depends_on_all_of_its_rows(tmp_path, words):
    """Batches of its rows look like numbers, others like words: as in memory it is text, or a mistake."""
    names = [f"n{i}" for i in range(100)]
    (tmp_path / "e.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in pairwise(names)))
    cells = [str(i % 7) if i < 100 - words else f"w{i % 5}" for i in range(100)]
    rows = "".join(f"{name},{cell},{i}.5\n" for i, (name, cell) in enumerate(zip(names, cells, strict=True)))
    (tmp_path / "n.csv").write_text("id,zip,x\n" + rows)
    files = (tmp_path / "e.csv", tmp_path / "n.csv")
    if words == 40:
        assert_same(prepare_store(*files, out=tmp_path / "g.store"), read_graph(*files).graph)
        return
    said = "row 97 is 'w1' in a column of numbers \\(4 such\\)"
    for read in (read_graph, lambda *given: prepare_store(*given, out=tmp_path / "g.store")):
        with pytest.raises(GraphError, match=said):
            read(*files)


def test_memory_is_limited(tmp_path, monkeypatch):
    monkeypatch.setattr("nodejepa.machine.resident_bytes", lambda: 0)
    edges, nodes = write_tables(tmp_path, np.random.default_rng(0), ids="text")
    with pytest.raises(ConfigError, match=r"numbering 0 ids and more needs about .* 1 MB were allowed"):
        prepare_store(edges, nodes, out=tmp_path / "g.store", memory_limit=0.001)
    store = prepare_store(edges, nodes, out=tmp_path / "g.store", memory_limit=0.1)
    assert_same(store, read_graph(edges, nodes).graph)
    assert not [*store.folder.glob("listed*")]


# ---------------------------------------------------------------- parts that are numbered and sorted already


def write_parts(folder, graph, table, *, change=lambda edges: edges):
    """The parts that another program would write of a graph: several of each."""
    sides = {"edges": graph.adjacency, "in_edges": graph.adjacency.T} if graph.directed else {}
    for name, matrix in (sides or {"edges": graph.adjacency}).items():
        coo = sp.csr_array(matrix).tocoo()
        row, column = (coo.row, coo.col) if name == "edges" else (coo.col, coo.row)
        edges = change(pa.table({"source": row, "target": column, "weight": coo.data}))
        write_in_two(edges, folder / name)
    write_in_two(table, folder / "nodes")
    return folder


def write_in_two(table, folder):
    folder.mkdir(parents=True)
    half = table.num_rows // 2
    for i, part in enumerate((table.slice(0, half), table.slice(half))):
        pq.write_table(part, folder / f"part-{i}.parquet", row_group_size=7)


@pytest.mark.parametrize("ids", ["integer", "text", None])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_sorted_parts_are_taken_as_they_are(tmp_path, ids, weights, directed):
    edges, nodes = write_tables(tmp_path, np.random.default_rng(1), ids=ids or "integer", weights=weights)
    graph = read_graph(edges, nodes, directed=directed, labels="c").graph
    table = pq.read_table(nodes) if ids else pq.read_table(nodes).drop_columns(["id"])
    parts = write_parts(tmp_path / "parts", graph, table)
    store = prepare_store(parts, out=tmp_path / "g.store", directed=directed, labels="c")
    wanted = prepare_store(edges, nodes, out=tmp_path / "h.store", directed=directed, labels="c")
    assert store.content_hash == wanted.content_hash
    assert store.manifest.classes == wanted.manifest.classes
    assert (store.is_weighted, store.manifest.report["edges"]) == (weights, wanted.manifest.report["edges"])
    assert store.ids(0, 23).to_pylist() == (graph.node_ids.tolist() if ids else list(range(23)))
    store.verify()


def test_more_nodes_than_positions_have_numbers_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("nodejepa.tables.sorted_parts._MOST", 22)
    edges, nodes = write_tables(tmp_path, np.random.default_rng(1), ids="integer")
    parts = write_parts(tmp_path / "parts", read_graph(edges, nodes).graph, pq.read_table(nodes))
    with pytest.raises(GraphError, match="there are 23 nodes, and positions are 32-bit numbers"):
        prepare_store(parts, out=tmp_path / "g.store")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.take(pa.array([1, 0, *range(2, len(t))])), "row 2 .* out of order"),
        (lambda t: pa.concat_tables([t.slice(0, 3), t.slice(2)]), "row 4 .* repeats another"),
        (lambda t: t.slice(1), "some edges lack their reverse"),
        (lambda t: t.set_column(0, "source", pc.add(t["source"], 1)), "node 23 of 23|itself|reverse|order"),
        (lambda t: t.set_column(2, "weight", pa.array(np.arange(1.0, len(t) + 1))), "lack their reverse"),
        (lambda t: t.set_column(2, "weight", pa.array([-1.0] * len(t))), "a weight is missing, not above 0"),
        (lambda t: t.set_column(1, "target", pc.cast(t["target"], pa.string())), "are whole numbers"),
        (lambda t: t.drop_columns(["target"]), "no column 'target'"),
    ],
)
def test_parts_that_are_not_as_they_should_be(tmp_path, change, said):
    edges, nodes = write_tables(tmp_path, np.random.default_rng(1), ids="integer")
    parts = write_parts(
        tmp_path / "parts", read_graph(edges, nodes).graph, pq.read_table(nodes), change=change
    )
    with pytest.raises(NodeJEPAError, match=said):
        prepare_store(parts, out=tmp_path / "g.store")
    assert not (tmp_path / "g.store").exists()
    with pytest.raises(DataError, match="no parquet files"):
        prepare_store(tmp_path, out=tmp_path / "g.store")
