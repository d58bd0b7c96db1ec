"""The plan: estimates near the truth, limits seen, and proposals that really fit."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from tests.forked import Forked
from workflow_files import QUICK

from nodejepa import machine
from nodejepa.cli.screen import in_options
from nodejepa.data import load_dataset
from nodejepa.errors import ConfigError
from nodejepa.graph import Graph
from nodejepa.methods import METHODS, make_method
from nodejepa.methods.trained import joined_parts
from nodejepa.tables import read_graph
from nodejepa.workflow.plan import Workload, _probe_seconds, budget, make_plan, measured_speed

# estimate, then train and embed; the peak of the process is the truth
MEASURE = """
import json, sys, warnings
warnings.simplefilter("ignore")
from nodejepa.data import load_dataset
from nodejepa.methods import make_method
from nodejepa.machine import resident_bytes
from nodejepa.workflow.plan import make_plan
from nodejepa.machine import peak_memory_mb
name, method, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
graph = load_dataset(name).graph
estimator = make_method(method, preset="paper", settings=settings)
held = resident_bytes()
plan = make_plan(estimator, graph)
estimator.fit(graph).transform(graph)
peak = 2**20 * peak_memory_mb()
print(json.dumps({"estimated": plan.peak_bytes - held, "measured": peak - held}))
"""


@pytest.fixture(scope="module")
def compiled():
    """What numba compiles on first use takes hundreds of megabytes once, and is no part of the estimate.

    Compiled here it lies in numba's cache on disk, where the measured processes find it.
    """
    graph = load_dataset("digits").graph
    for method in ("nodejepa", "patchjepa"):
        estimator = make_method(method, preset="paper", settings={"epochs": 1, "encoder.hidden": 64})
        estimator.fit(graph).transform(graph)


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(
    ("dataset", "method", "settings"),
    [
        ("synthetic:nodes=60000,edges=300000,features=32", "nodejepa", {"epochs": 1, "encoder.hidden": 64}),
        ("synthetic:nodes=30000,edges=150000,features=32", "patchjepa", {"epochs": 1}),
    ],
)
def test_the_memory_estimate_is_within_a_factor_of_three(dataset, method, settings):
    code, said = Forked(MEASURE, dataset, method, json.dumps(settings)).wait()
    assert code == 0, said
    found = json.loads(said)
    assert 1 / 3 < found["estimated"] / found["measured"] < 3, found


def test_more_of_anything_costs_more():
    base = Workload(nodes=10_000, entries=100_000, columns=50, feature_entries=500_000, dense=True)
    paper = make_method("nodejepa", preset="paper")
    least = budget(paper, base, operations_per_second=1e10)
    for changed in (
        Workload(20_000, 100_000, 50, 1_000_000, True),
        Workload(10_000, 10_000_000, 50, 500_000, True),
        Workload(10_000, 100_000, 500, 5_000_000, True),
    ):
        more = budget(paper, changed, operations_per_second=1e10)
        assert more.peak_bytes > least.peak_bytes
        assert more.seconds > least.seconds
    assert budget(paper, base, operations_per_second=2e10).seconds == pytest.approx(least.seconds / 2)
    for change in ({"encoder.hidden": 512}, {"encoder.layers": 5}, {"encoder.kind": "gat"}):
        wide = make_method("nodejepa", preset="paper", settings=change)
        assert budget(wide, base, operations_per_second=1e10).peak_bytes > least.peak_bytes


@pytest.mark.slow
@pytest.mark.parametrize("method", [name for name, entry in METHODS.items() if entry.trained])
def test_every_method_and_preset_can_be_estimated(method):
    work = Workload.of(load_dataset("digits").graph)
    for preset in METHODS[method].presets:
        found = budget(make_method(method, preset=preset), work, operations_per_second=1e10)
        assert 1e8 < found.peak_bytes < 1e10
        assert found.seconds > 0


def test_the_measured_speed_is_a_number_to_divide_by():
    assert 0 < measured_speed(0.001) < float("inf")


@pytest.fixture
def wide_graph():
    rng = np.random.default_rng(0)
    return Graph.from_edges(*rng.integers(0, 50_000, (2, 100_000)), features=rng.normal(size=(50_000, 4)))


def test_what_does_not_fit_is_refused_with_proposals_that_do(wide_graph, monkeypatch):
    monkeypatch.setattr("nodejepa.machine.resident_bytes", lambda: 400_000_000)
    estimator = make_method("nodejepa", preset="paper")
    assert make_plan(estimator, wide_graph, memory_limit=10).proposals == ()
    plan = make_plan(estimator, wide_graph, memory_limit=1.2)
    assert not plan.fits
    assert plan.proposals
    fitting = re.escape("These fit: training.parts=512, training.parts_per_step=64")
    with pytest.raises(ConfigError, match=fitting) as refused:
        plan.require_fit()
    assert 'method="linear-jepa" (about' in refused.value.fix
    assert "--set training.parts=512" in in_options(refused.value.fix)
    for proposal in plan.proposals:
        assert proposal.peak_bytes <= 1.2e9
        assert str(proposal) in refused.value.fix
    parts = make_method("nodejepa", preset="paper", settings=joined_parts(wide_graph.num_nodes, 8))
    assert make_plan(parts, wide_graph, memory_limit=1.2).fits, "the same plan says so"
    hopeless = make_plan(estimator, wide_graph, memory_limit=0.41)
    assert hopeless.proposals == ()
    with pytest.raises(ConfigError, match="No smaller settings fit"):
        hopeless.require_fit()


def test_scoring_is_in_the_estimate_where_there_are_labels(wide_graph):
    estimator = make_method("linear-jepa")
    alone, few, many = (make_plan(estimator, wide_graph, 10, classes=n) for n in (0, 5, 50))
    assert alone.scoring_seconds == 0 < few.scoring_seconds < many.scoring_seconds
    assert alone.seconds == few.seconds
    assert few.to_dict()["estimated_scoring_seconds"] == round(few.scoring_seconds, 1)


@pytest.mark.parametrize(
    ("nodes", "width", "classes", "measured"),
    [
        (72_105, 256, 58, 5.7),
        (72_105, 532, 58, 7.7),
        (8_122, 148, 42, 6.8),
        (8_122, 36, 42, 1.8),
        (5_000, 64, 8, 1),
    ],
)
def test_scoring_takes_about_as_long_as_was_measured(nodes, width, classes, measured):
    """Processor seconds of one thread that does 1.1e11 operations in one of them."""
    assert measured / 3 < _probe_seconds(nodes, width, classes, 1.1e11) < 3 * measured


def test_columns_beyond_the_training_rows_cost_nothing_in_scoring():
    narrow, wide = (_probe_seconds(1000, width, 7, 1e11) for width in (140, 14_000))
    assert narrow <= wide < 1.1 * narrow


def test_the_measured_speed_is_that_of_undisturbed_products(monkeypatch):
    """With all threads a product takes 0.1 seconds, with one 0.001 and, once, 0.5."""
    clock = iter([0.0, 0.0, 0.0, 0.1, 9.0, 10.0, 10.0, 10.0, 10.5, 10.5, 10.5, 10.501, 19.0])
    monkeypatch.setattr("nodejepa.workflow.plan.time.perf_counter", lambda: next(clock))
    assert measured_speed(2.0) == pytest.approx(2 * 2048 * 256 * 256 / 0.001)


def test_the_command_stops_before_it_trains(run, files, monkeypatch):
    monkeypatch.setattr("nodejepa.machine.resident_bytes", lambda: 400_000_000)
    assert "450 MB were allowed" in run.refused(*files.quick("--memory-limit", "0.45"))
    assert not (files.folder / "z.run" / "config.json").exists()
    out, _ = run.ok(*files.quick("--memory-limit", "0.45", "--check"))
    assert "Does not fit" in out


def test_a_file_too_large_to_be_read_is_refused_before_reading_with_the_way_on_disk(
    run, tmp_path, monkeypatch
):
    monkeypatch.setattr("nodejepa.machine.resident_bytes", lambda: 400_000_000)
    edges = tmp_path / "edges.csv"
    edges.write_text("a,b\n" + "1,2\n" * 300_000)
    with pytest.raises(ConfigError, match="reading the file needs"):
        read_graph(edges, memory_limit=0.402)
    assert read_graph(edges, memory_limit=0.5).report.edge_rows == 300_000
    for asked in (("--out", tmp_path / "z.parquet", *QUICK), ("--check",)):
        err = run.refused("embed-graph", "--edges", edges, "--memory-limit", "0.402", *asked)
        assert "reading the file needs" in err
        assert "Try this: keep the graph on disk: `nodejepa prepare`" in err


GROUPS = {
    "v2": ("0::/user/me\n", "sys/fs/cgroup/user/me", "memory.max", "memory.current", "inactive_file 1000\n"),
    "v2 in a container": (
        "0::/../host\n",
        "sys/fs/cgroup",
        "memory.max",
        "memory.current",
        "inactive_file 1000\n",
    ),
    "v1": (
        *("5:cpu:/\n4:memory,hugetlb:/job\n", "sys/fs/cgroup/memory/job"),
        *("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file 1000\ninactive_file 7\n"),
    ),
}


@pytest.mark.parametrize("kind", GROUPS)
def test_limits_of_control_groups_count(tmp_path, kind):
    lines, place, limit, usage, stat = GROUPS[kind]
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(lines)
    folder = tmp_path / place
    folder.mkdir(parents=True)
    (folder / limit).write_text("50000\n")
    (folder / usage).write_text("20000\n")
    (folder / "memory.stat").write_text("anon 5\n" + stat)
    assert machine.available_bytes(tmp_path) == 31000
    (folder / limit).write_text("max\n" if kind != "v1" else "9223372036854771712\n")
    assert machine.available_bytes(tmp_path) > 10**6
    (folder / limit).write_text("10\n")
    assert machine.available_bytes(tmp_path) == 0


def test_without_control_groups_the_machine_decides(tmp_path):
    assert machine.available_bytes(tmp_path) > 10**6
    assert machine.resident_bytes() > 10**6


@pytest.mark.parametrize("nodes", [2, 5, 40, 700, 2_000, 20_479, 1_000_000])
@pytest.mark.parametrize("steps", [None, 2, 8])
def test_proposed_parts_can_be_made(nodes, steps):
    parts, joined = joined_parts(nodes, steps).values()
    assert parts % joined == 0
    assert parts // joined == (steps or max(nodes // 10_000, 2)), "a step has as many nodes as ever"
    assert joined == 1 or (joined <= 64 and parts * 16 <= nodes)


def test_parts_of_a_graph_that_is_clustered_first_are_not_too_small_for_clusters():
    parts, joined = joined_parts(10_000_000, entries=200_000_000).values()
    assert (parts, joined) == (6000, 6)
    assert 10_000_000 // (16 * parts) >= 100, (
        "nodes of a cluster: METIS must see far fewer of them than nodes"
    )
