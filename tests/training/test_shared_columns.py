"""LinearJEPA in several processes: the embeddings of one, also after a kill."""

import json
from itertools import chain

import numpy as np
import pytest
from fleet import fleet, forked_launch, make_store
from typer.testing import CliRunner

from nodejepa.cli import app
from nodejepa.errors import ConfigError
from nodejepa.methods import make_method
from nodejepa.methods.linear_jepa import LinearJEPA
from nodejepa.tables import StoredGraph, read_embeddings

BUSY = pytest.mark.timeout(1800)
SMALL = 0.001  # gigabytes: less than a process holds, so that columns are made one after the other


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What groups of processes end with, one group after another, all from one process."""
    folder = tmp_path_factory.mktemp("columns")
    store = str(make_store(folder))

    def order(size, **more):
        return {
            "method": "linear-jepa",
            "settings": {},
            "size": size,
            "joined": size > 1,
            "store": store,
            **more,
        }

    def lost(rank, apart=""):
        """A place for what rank leaves in a group that is killed and started again."""
        return {"memory_limit": SMALL, "scratch": str(folder / f"lost{apart}-{rank}")}

    together = {"local": 2, "rows": 40}
    orders = {
        "memory": [order(size, store=None) for size in (1, 2, 2, 3)],
        "stored": [order(size) for size in (1, 2, 2, 3)],
        "together": [order(size, **(together if size > 1 else {})) for size in (1, 2, 2, 4)],
        "small": [order(2, memory_limit=SMALL)],
        "small together": [order(2, memory_limit=SMALL, **together)],
        "lost": [order(2, die_rank=rank, die_at=4, **lost(rank)) for rank in (0, 1)],
        "lost together": [order(2, die_rank=r, die_at=60, **together, **lost(r, "-t")) for r in (0, 1)],
        "again": [order(2, **lost(rank)) for rank in (0, 1)],
        "again together": [order(2, **together, **lost(rank, "-t")) for rank in (0, 1)],
    }
    found = {}
    for names in (list(orders)[:-2], list(orders)[-2:]):
        ends = iter(fleet(folder, [*chain(*(orders[name] for name in names))]))
        found |= {name: [next(ends) for _ in orders[name]] for name in names}
        columns = [sorted(path.glob(".columns-*/*.f32")) for path in sorted(folder.glob("lost*"))]
        found["left" if "lost" in names else "cleared"] = columns
    return found


@pytest.mark.slow
@BUSY
@pytest.mark.parametrize("kind", ["memory", "stored", "together"])
def test_another_number_of_processes_changes_rounding_only(results, kind):
    (alone,), *groups = results[kind]
    for group in groups:
        leader, *others = group
        np.testing.assert_allclose(leader["z"], alone["z"], rtol=1e-5, atol=1e-5)
        assert all(other["z"] == [] for other in others)
    assert groups[0] == groups[1]  # as many, the same bits


@pytest.mark.slow
@BUSY
@pytest.mark.parametrize("kind", ["", " together"])
def test_killed_and_started_again_they_go_on_to_the_same_bits(results, kind):
    """The first of two dies, or the second, in the middle of the columns; what was done is kept."""
    (wanted, *_), *_ = results[f"small{kind}"]
    np.testing.assert_allclose(wanted["z"], results["stored"][0][0]["z"], rtol=1e-5, atol=1e-5)
    for lost, again in zip(results[f"lost{kind}"], results[f"again{kind}"], strict=True):
        assert {"code": 9} in lost
        assert again[0]["sha"] == wanted["sha"]
    assert all(results["left"])
    assert results["cleared"] == [[]] * 4


@pytest.mark.slow
@BUSY
def test_the_command_starts_workers_which_share_the_columns(tmp_path, monkeypatch):
    monkeypatch.setattr("nodejepa.training.distributed.launch", forked_launch)
    monkeypatch.setenv("NODEJEPA_CACHE", str(tmp_path / "cache"))
    store, run, out = (str(tmp_path / name) for name in ("graph.store", "run", "z.npy"))
    make_store(tmp_path)
    for command in (
        ["pretrain", store, "--out", run],
        ["embed", run, store, "--workers", "2", "--out", out],
    ):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output[-3000:]
    graph_on_disk = StoredGraph(store)
    alone = LinearJEPA().fit(graph_on_disk).transform(graph_on_disk)
    np.testing.assert_allclose(np.load(out), alone[: alone.shape[0]], rtol=1e-5, atol=1e-5)
    assert not [*tmp_path.glob(".columns-*")]


@pytest.mark.slow
@BUSY
def test_workers_make_all_outputs_of_embed_graph(tmp_path, monkeypatch):
    """Scores and all, to rounding those of one worker; what is there is not replaced, and nothing starts."""
    monkeypatch.setattr("nodejepa.training.distributed.launch", forked_launch)
    monkeypatch.setenv("NODEJEPA_CACHE", str(tmp_path / "cache"))
    store = str(make_store(tmp_path, labels=True))
    tables, means = [], []
    for workers in ("1", "2"):
        out = tmp_path / workers / "z.parquet"
        command = ["embed-graph", "--edges", store, "--workers", workers, "--out", str(out)]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output[-3000:]
        tables.append(read_embeddings(out).matrix)
        means.append(json.loads(out.with_suffix(".json").read_text())["scores"]["means"])
        assert out.with_suffix(".html").exists()
        assert not [*out.parent.glob(".columns-*")]
    np.testing.assert_allclose(tables[1], tables[0], rtol=1e-5, atol=1e-5)
    assert means[0].keys() == means[1].keys()
    for name, one in means[0].items():  # each worker embeds some of the untrained baselines
        assert means[1][name]["test_accuracy"] == pytest.approx(one["test_accuracy"], abs=1), name
    done = CliRunner().invoke(app, command)
    assert isinstance(done.exception, ConfigError)
    assert "exist" in str(done.exception)


def test_workers_share_stores_only(tmp_path):
    for command in (["embed-graph", "--edges", "edges.csv"], ["embed", "run", "digits"]):
        done = CliRunner().invoke(app, [*command, "--workers", "2", "--out", str(tmp_path / "z.npy")])
        assert done.exit_code == 2
        assert "a graph store" in done.output


def test_what_has_nothing_to_share_says_so():
    LinearJEPA().check_processes(64)
    with pytest.raises(ConfigError, match="no work that processes could share"):
        make_method("raw").check_processes(2)
