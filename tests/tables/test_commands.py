"""prepare, pretrain and embed of a graph on disk give what embed-graph gives in memory."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from nodejepa.methods import NodeJEPA
from nodejepa.tables import read_embeddings, read_graph
from nodejepa.tables.prepare import prepare_store


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    names = np.array([f"n{i}" for i in range(300)])
    ends = rng.integers(0, 300, (2, 1500))
    pq.write_table(pa.table({"source": names[ends[0]], "target": names[ends[1]]}), tmp_path / "e.parquet")
    x = {f"x{j}": rng.normal(size=300) for j in range(70)}
    pq.write_table(pa.table({"id": names, **x}), tmp_path / "n.parquet")
    return ["--edges", tmp_path / "e.parquet", "--nodes", tmp_path / "n.parquet"]


@pytest.mark.slow
def test_the_road_on_disk_ends_where_the_road_in_memory_does(run, files, tmp_path):
    store, trained, out = tmp_path / "g.store", tmp_path / "run", tmp_path / "z.parquet"
    said, _ = run.ok("prepare", *files, "--out", store)
    assert "300 nodes" in said
    assert run("prepare", "--verify", store)[0] == 0
    said, _ = run.ok("pretrain", store, "--method", "linear-jepa", "--out", trained)
    assert "directions of the features" in said
    said, _ = run.ok("embed", trained, store, "--out", out)
    assert "300 nodes x 140" in said
    run.ok("embed-graph", *files, "--out", tmp_path / "m.parquet", "--no-report")
    ours, theirs = read_embeddings(out), read_embeddings(tmp_path / "m.parquet")
    assert ours.ids.tolist() == theirs.ids.tolist()
    np.testing.assert_array_equal(ours.matrix, theirs.matrix)
    # what learned on disk may see files in memory, and the other way round
    run.ok("embed", trained, *files, "--out", tmp_path / "f.parquet")
    run.ok("embed", tmp_path / "m.run", store, "--out", tmp_path / "s.npy")
    np.testing.assert_array_equal(read_embeddings(tmp_path / "f.parquet").matrix, theirs.matrix)
    np.testing.assert_array_equal(read_embeddings(tmp_path / "s.npy").matrix, theirs.matrix)
    # nothing is replaced without asking, and a model is of one graph
    assert run("embed", trained, store, "--out", out)[0] == 2
    assert run("embed", trained, store, "--out", out, "--force")[0] == 0
    facts = json.loads((trained / "config.json").read_text())
    assert facts["graph"]["hash"] == json.loads((store / "manifest.json").read_text())["content_hash"]


def test_a_model_refuses_a_store_whose_columns_mean_something_else(run, tmp_path):
    rng = np.random.default_rng(0)
    ends, x = rng.integers(0, 60, (2, 300)), rng.normal(size=(3, 60)) * [[1], [5], [9]]
    pq.write_table(pa.table({"source": ends[0], "target": ends[1]}), tmp_path / "e.parquet")

    def prepared(name, scale, **columns):
        pq.write_table(pa.table({"id": np.arange(60), **columns}), tmp_path / "n.parquet")
        files = (tmp_path / "e.parquet", tmp_path / "n.parquet")
        prepare_store(*files, out=tmp_path / name, scale=scale)

    def embedded(name):
        (tmp_path / "z.npy").unlink(missing_ok=True)
        code, _, err = run("embed", trained, tmp_path / name, "--out", tmp_path / "z.npy")
        assert (code == 0) == (tmp_path / "z.npy").exists()
        return " ".join(err.split())

    trained = tmp_path / "run"
    abc = dict(zip("abc", x, strict=True))
    prepared("same", "auto", **abc)
    run.ok("pretrain", tmp_path / "same", "--method", "linear-jepa", "--out", trained)
    assert "not those" not in embedded("same")
    for name, scale, columns, said in (
        ("reversed", "auto", dict([*abc.items()][::-1]), "column 1 is name c, kind numeric"),
        ("renamed", "auto", {"a": x[0], "b": x[1], "d": x[2]}, "column 3 is name d, kind numeric"),
        ("unscaled", "none", abc, "column 1 is name a, kind numeric, mean [0.0]"),
        ("shifted", "auto", abc | {"b": x[1] + 1}, "column 2 is name b, kind numeric"),
        ("words", "auto", {"a": x[0], "b": ["s", "t", "u"] * 20}, "column 2 is name b, kind category"),
    ):
        prepared(name, scale, **columns)
        assert said in embedded(name)
    schema = trained / "schema.json"
    schema.write_text(schema.read_text().replace('"a"', '"d"'))
    assert "schema of the run is damaged" in embedded("same")
    schema.unlink()
    assert "no schema.json" in embedded("same")


IN_PARTS = {
    "epochs": 2,
    "parts": 8,
    "parts_per_step": 4,
    "micro_batches": 2,
    "encoder.hidden": 32,
    "predictor.hidden": 32,
    "descriptors": "pagerank,degree,clustering",
}


@pytest.mark.slow
def test_a_trained_encoder_goes_the_whole_road_on_disk(run, files, tmp_path):
    """prepare, pretrain in parts, embed: the bits of the graph in memory."""
    store, trained, out = tmp_path / "g.store", tmp_path / "run", tmp_path / "z.parquet"
    assert run("prepare", *files, "--out", store)[0] == 0
    settings = [part for name, value in IN_PARTS.items() for part in ("--set", f"{name}={value}")]
    chosen = ["--method", "nodejepa", "--preset", "paper", "--device", "cpu", *settings]
    assert "in parts only" in run.refused("pretrain", store, *chosen[:6], "--out", tmp_path / "no")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        said, _ = run.ok("pretrain", store, *chosen, "--out", trained)
        assert "last loss" in said
        graph = read_graph(files[1], files[3]).graph
        wanted = NodeJEPA(preset="paper", **IN_PARTS, device="cpu").fit(graph).transform(graph)
    finally:
        torch.set_num_threads(threads)
    run.ok("embed", trained, store, "--out", out)
    found = read_embeddings(out)
    assert found.ids.tolist() == graph.node_ids.tolist()
    np.testing.assert_array_equal(found.matrix, wanted)


def test_prepare_says_what_it_needs(run, tmp_path):
    assert "--edges and --out" in run("prepare")[2]
    assert "no graph store" in run.refused("prepare", "--verify", tmp_path)


@pytest.mark.slow
def test_prepare_speaks_in_options(run, tmp_path):
    (tmp_path / "e.csv").write_text("source,target\n" + "".join(f"n{i},n{i + 1}\n" for i in range(40)))
    rows = "".join(f"n{i},{i % 3},{i * i % 7}\n" for i in range(41))
    (tmp_path / "n.csv").write_text(f"id,label,x\n{rows}")
    given = ["--edges", tmp_path / "e.csv", "--nodes", tmp_path / "n.csv"]
    _, err = run.ok("prepare", *given, "--out", tmp_path / "g.store")
    assert "Say --labels label to score by it" in err
    said, _ = run.ok("prepare", *given, "--labels", "label", "--out", tmp_path / "h.store")
    assert "labels of 3 classes" in said
    said, _ = run.ok("prepare", *given[:2], "--structural", "degree", "--out", tmp_path / "d.store")
    assert "1 features" in said
    assert "naming the column of the labels" in run.refused("probe", tmp_path / "g.store")
