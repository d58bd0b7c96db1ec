"""Training in parts on a graph on disk: what it needs is near the truth, and what does not fit is refused."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.scale import case_of, read_records

from nodejepa.cli.screen import in_options
from nodejepa.errors import ConfigError
from nodejepa.methods import make_method
from nodejepa.methods.trained import joined_parts
from nodejepa.tables.prepare import prepare_store
from nodejepa.workflow.plan import OnDisk, Workload, budget, make_plan

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RECORDS, SOLVED = BENCHMARKS / "scale_train.jsonl", BENCHMARKS / "scale.jsonl"
IN_PARTS = {"parts": 200, "parts_per_step": 20, "descriptors": "pagerank,degree,clustering"}


def estimator(method="nodejepa", **settings):
    preset = {"preset": "paper"} if method == "nodejepa" else {}
    return make_method(method, **preset, settings=settings)


def graph(nodes=2_000_000, entries=40_000_000, columns=128):
    """The sizes of a store, which are all that is asked for."""
    return SimpleNamespace(
        num_nodes=nodes,
        num_edges=entries,
        num_features=columns,
        structure_hash=f"{nodes}-{entries}",
        manifest=SimpleNamespace(feature_entries=None),
    )


@pytest.fixture(autouse=True)
def _held(monkeypatch):
    monkeypatch.setattr("nodejepa.machine.resident_bytes", lambda: 400_000_000)


@pytest.mark.parametrize("record", [json.loads(line) for line in RECORDS.read_text().splitlines()])
def test_the_estimate_is_near_what_was_measured(record):
    nodes, columns = record["nodes"], record["columns"]
    parts = nodes // 50_000 * 5
    asked = estimator(parts=parts, parts_per_step=5, descriptors="pagerank,degree,clustering", epochs=2)
    work = Workload(nodes, record["stored_edges"], columns, nodes * columns, True)
    found = budget(asked, work, operations_per_second=1e10, where=OnDisk()).training_bytes
    measured = 2**30 * record["phases"]["train"]["peak_anonymous_gib"]
    assert 0.75 < found / measured < 1.5


def require_room(asked, stored, limit, **processes):
    make_plan(asked, stored, limit, **processes).require_fit()


def refusal(asked, stored, limit, **processes):
    with pytest.raises(ConfigError, match=f"{asked.name} needs about .* of memory") as refused:
        require_room(asked, stored, limit, **processes)
    return in_options(refused.value.fix)


def test_a_step_that_does_not_fit_is_refused_with_steps_that_do():
    stored = graph()
    require_room(estimator(**IN_PARTS), stored, 20.0)
    advice = refusal(estimator(**IN_PARTS), stored, 5.0)
    assert advice.startswith("These fit: --set training.parts="), "the method itself comes first"
    assert "--method linear-jepa (about" in advice
    parts = joined_parts(stored.num_nodes, entries=stored.num_edges)
    require_room(estimator(**IN_PARTS | {name.split(".")[1]: n for name, n in parts.items()}), stored, 5.0)


def test_parts_that_metis_has_no_memory_for_are_drawn():
    asked, stored = estimator(**IN_PARTS | {"parts_per_step": 1}), graph(entries=49_000_000)
    advice = refusal(asked, stored, 3.0)
    assert "--set training.partition=random (about" in advice
    require_room(estimator(**IN_PARTS | {"parts_per_step": 1}, partition="random"), stored, 3.0)


def test_what_fits_in_no_way_is_said_to():
    assert refusal(estimator(**IN_PARTS), graph(), 0.5).startswith("No smaller settings fit either")


def test_processes_share_a_step_and_each_has_its_libraries():
    asked, stored = estimator(**IN_PARTS | {"partition": "random"}, micro_batches=4), graph()
    refusal(asked, stored, 5.0)
    require_room(asked, stored, 5.0, processes=4)  # one of four, on a machine of its own
    refusal(asked, stored, 5.0, processes=4, started=4)  # all of them here
    require_room(asked, stored, 10.0, processes=4, started=4)


def test_what_is_solved_by_rows_needs_room_for_what_is_as_long_as_the_graph():
    started = make_method("nodejepa", preset="linear-start", settings={"epochs": 0})
    for asked in (make_method("linear-jepa"), started):
        refusal(asked, graph(), 0.41)
        refusal(asked, graph(), 0.9)
        require_room(asked, graph(), 1.5)  # in groups of a few columns
        require_room(asked, graph(), 20.0)
        refusal(asked, graph(nodes=100_000_000), 10.0)


def test_what_fit_refuses_for_another_reason_is_not_asked_about():
    require_room(estimator(), graph(), 0.41)
    require_room(make_method("linear-jepa"), graph(columns=0), 20.0)


@pytest.mark.parametrize("record", [r for r in read_records(SOLVED) if case_of(r) == "sizes"])
def test_the_estimate_of_what_is_solved_by_rows_is_near_what_was_measured(record):
    nodes, columns = record["nodes"], record["columns"]
    work = Workload(nodes, record["stored_edges"], columns, nodes * columns, True)
    asked = make_method("linear-jepa")
    found = budget(asked, work, operations_per_second=1e10, where=OnDisk()).peak_bytes
    measured = 2**30 * max(record["phases"][name]["peak_anonymous_gib"] for name in ("fit", "embed"))
    assert 0.75 < found / measured < 1.5


@pytest.mark.parametrize("limit", [None, 1.2])
def test_arrays_of_a_graph_on_disk_take_half_of_what_is_allowed(store, limit, monkeypatch):
    monkeypatch.setattr("nodejepa.machine.available_bytes", lambda: 20_000_000_000)
    asked = make_method("linear-jepa")
    asked.memory_limit = limit
    found = asked._inputs(store, None).workspace.memory
    assert found == (400_000_000 if limit else 4_000_000_000)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("graph"), np.random.default_rng(0)
    source, target = rng.integers(0, 20_000, (2, 60_000))
    pq.write_table(pa.table({"source": source, "target": target}), folder / "e.parquet")
    pq.write_table(pa.table({"id": np.arange(20_000), "x": rng.random(20_000)}), folder / "n.parquet")
    return prepare_store(folder / "e.parquet", folder / "n.parquet", out=folder / "g.store")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "more"),
    [("1.0", ()), ("1.6", ("--set", "micro_batches=2", "--workers", "2"))],
    ids=["one", "two"],
)
def test_the_command_stops_before_the_first_part_is_read(run, store, tmp_path, limit, more):
    settings = [part for name, value in IN_PARTS.items() for part in ("--set", f"{name}={value}")]
    settings += ["--set", "parts=4", "--set", "parts_per_step=4", "--set", "epochs=1"]
    asked = ["pretrain", store.folder, "--method", "nodejepa", "--preset", "paper", *settings, *more]
    err = run.refused(*asked, "--memory-limit", limit, "--out", tmp_path / "run")
    assert f"{limit} GB were allowed" in err
    assert "--set training.parts=" in err
    assert not (tmp_path / "run").exists()
    assert not [*store.folder.glob("parts-*")]
