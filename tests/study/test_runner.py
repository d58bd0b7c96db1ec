"""Studies resume cell by cell, survive failures, kills and second runners, and train each encoder once."""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import signal
import statistics
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.forked import Forked

from nodejepa.cli import main
from nodejepa.data import Dataset
from nodejepa.errors import ConfigError, DataError, EvaluationError, NodeJEPAError
from nodejepa.evaluation.scoring import score_method, score_run
from nodejepa.files import lock_file, source_hash
from nodejepa.study.measure import TIMED_EPOCHS, encoder_folder, timed_epochs
from nodejepa.study.measure import measure as measure_cell
from nodejepa.study.records import Record, append_record, read_records
from nodejepa.study.runner import (
    FAILED,
    MEASURED,
    NO_DATA,
    TAKEN,
    Folders,
    _environment,
    cell_record,
    claim_path,
    make_worklist,
    run_study,
    work,
)
from nodejepa.study.spec import Cell, Kind, StudySpec, identified, load_spec

ROOT = Path(__file__).parents[2]
MAIN = str(ROOT / "studies" / "main.toml")
RAW = Cell("mine", "probe", "raw", "default", "digits", "20-30", 1)
SMALL = {"training.epochs": 2, "encoder.hidden": 16}
TRAINED = Cell("mine", "probe", "patchjepa", "paper", "digits", "20-30", 1, settings=SMALL)

SPEC = """
summary = "one"
kind = "probe"
[[grid]]
methods = ["{method}"]
preset = "paper"
datasets = ["digits"]
splits = ["20-30"]
seeds = "{seeds}"
"""
STUDY = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
STUDY += "from nodejepa.__main__ import main; main()"
# whose cells are not measured in new processes, but in forked ones that have the libraries loaded
FORKING = "import multiprocessing as m, nodejepa.study.runner as r; r._PROCESSES = m.get_context('fork')\n"


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "out", tmp_path / "runs")


@pytest.fixture
def digits(small_digits: Dataset, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """What is measured as ``digits``, in a size that takes no time."""
    monkeypatch.setattr("nodejepa.study.measure.load_dataset", lambda *_: small_digits)
    return small_digits


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells of raw features are not really measured, in processes that have the libraries loaded."""

    def quick(cell: Cell, *places: Any) -> Record:
        if cell.method != "raw":
            return measure_cell(cell, *places)
        if cell.split == "nonsense":
            raise EvaluationError("split 'nonsense' is unknown", where="/home/me")
        return {"test_accuracy": 10.0 * cell.seed}

    monkeypatch.setattr("nodejepa.study.runner.measure", quick)
    monkeypatch.setattr("nodejepa.study.runner._PROCESSES", multiprocessing.get_context("fork"))


def study(*cells: Cell) -> StudySpec:
    return StudySpec("mine", "a test", "probe", cells)


def measure(cell: Cell, folders: Folders, **options: bool) -> int:
    return work(cell, folders, **options)


@pytest.mark.slow
def test_a_record_has_the_scores_of_a_direct_call(folders: Folders, digits: Dataset) -> None:
    assert measure(TRAINED, folders) == MEASURED
    (record,) = read_records(folders.out)
    for probe, field in (("fair", "test_accuracy"), ("paper", "test_accuracy_paper_probe")):
        direct = score_method(digits, "patchjepa", [1], preset="paper", settings=SMALL, probe=probe)
        assert record[field] == direct.result.scores[0].test_accuracy
    for field in ("effective_rank", "effective_rank_uncentred"):
        assert record[field] == getattr(direct.diagnostics, field)
    split = digits.split("20-30", seed=1)
    assert record["split_sizes"] == [len(split.train), len(split.val), len(split.test)]
    assert record["split_hash"] == split.hash
    named = {"method", "preset", "dataset", "split", "seed", "status", "val_accuracy", "train_seconds"}
    named |= {"epoch_seconds", "peak_memory_mb", "mean_std", "participation_ratio", "config", "config_hash"}
    assert named | {"versions", "threads", "shots", "source_hash"} <= record.keys()
    assert record["status"] == "done"
    assert record["epochs"] == 2
    assert record["trained_source_hash"] == source_hash()


def test_a_change_of_code_shows_in_the_source_hash(tmp_path: Path) -> None:
    (tmp_path / "nn").mkdir()
    code = tmp_path / "nn" / "gcn.py"
    of = source_hash.__wrapped__  # the code of one process does not change: its hash is computed once
    code.write_text("x = 1\n")
    before = of(tmp_path)
    assert of(tmp_path) == before
    code.write_text("x = 2\n")
    changed = of(tmp_path)
    code.rename(tmp_path / "nn" / "sage.py")
    assert len({before, changed, of(tmp_path)}) == 3


@pytest.mark.usefixtures("_quick")
def test_only_what_is_missing_is_measured_again(folders: Folders) -> None:
    spec = study(*(replace(RAW, seed=seed) for seed in range(3)))
    assert [measure(cell, folders) for cell in spec.cells] == [MEASURED] * 3
    path = folders.out / "records.jsonl"
    lines = path.read_text().splitlines()
    before = read_records(folders.out)
    path.write_text(lines[0] + "\n")
    worklist = make_worklist(spec, folders)
    assert (len(worklist.cells), worklist.measured) == (2, 1)
    outcome = run_study(worklist, folders, jobs=2)
    assert outcome == Counter({"done": 2})
    assert path.read_text().splitlines()[0] == lines[0]
    assert read_records(folders.out) == before
    assert make_worklist(spec, folders).cells == ()


@pytest.mark.slow
@pytest.mark.usefixtures("digits")
def test_all_splits_of_a_seed_share_one_encoder(folders: Folders) -> None:
    assert measure(TRAINED, folders) == MEASURED
    model = encoder_folder(TRAINED, folders.runs) / "model.safetensors"
    written = model.stat().st_mtime_ns
    assert measure(replace(TRAINED, split="5-30"), folders) == MEASURED
    assert measure(replace(TRAINED, study="other", variant="A"), folders) == MEASURED
    assert model.stat().st_mtime_ns == written
    assert len(list(folders.runs.glob("digits/patchjepa*"))) == 1
    accuracies = {(r["split"], r["variant"]): r["test_accuracy"] for r in read_records(folders.out)}
    assert accuracies["20-30", None] == accuracies["20-30", "A"] != accuracies["5-30", None]


@pytest.mark.slow
def test_one_training_may_serve_the_splits_of_all_seeds(folders: Folders, digits: Dataset) -> None:
    first, second = (replace(TRAINED, seed=seed, training_seed=7) for seed in (1, 2))
    assert measure(first, folders) == measure(second, folders) == MEASURED
    assert len(list(folders.runs.glob("digits/patchjepa-*"))) == 1
    one, other = read_records(folders.out)
    for record in (one, other):
        direct = score_run(digits, encoder_folder(first, folders.runs), [record["seed"]], split="20-30")
        assert record["test_accuracy"] == direct.result.scores[0].test_accuracy
        assert record["training_seed"] == direct.training_seed == 7
    own = replace(first, training_seed=None)
    assert len({own.key, first.key, second.key, replace(first, training_seed=8).key}) == 4
    assert [identified(record)["key"] for record in (one, other)] == [first.key, second.key]


@pytest.mark.usefixtures("_quick")
def test_a_failure_is_recorded_kept_apart_and_retried_on_demand(folders: Folders) -> None:
    bad = replace(RAW, split="nonsense")
    outcome = run_study(make_worklist(study(bad, RAW), folders), folders)
    assert outcome == Counter({"done": 1, "FAILED": 1})
    by_status = {r["status"]: r for r in read_records(folders.out)}
    assert by_status["failed"]["reason"] == "split 'nonsense' is unknown"  # and no path of this machine
    assert "nonsense" in (folders.runs / "failures" / f"{bad.key}.txt").read_text()
    assert make_worklist(study(bad, RAW), folders).cells == ()
    assert make_worklist(study(bad, RAW), folders, retry_failed=True).cells == (bad,)
    assert measure(bad, folders, retry_failed=True) == FAILED


@pytest.mark.usefixtures("_quick")
def test_cells_that_stay_failed_are_told_of_and_the_command_does_not_end_well(tmp_path, capsys) -> None:
    spec = tmp_path / "mine.toml"
    spec.write_text(SPEC.format(method="raw", seeds="1"))
    (cell,) = load_spec(spec).cells
    append_record(tmp_path / "mine", cell_record(cell, "failed", reason="ValueError: it always does"))
    for options, code, said in (([], 2, "0 failed, 1 had failed before"), (["--retry-failed"], 0, "1 cell")):
        with pytest.raises(SystemExit) as left:
            main(["study", "run", str(spec), *options])
        assert left.value.code == code
        assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
@pytest.mark.usefixtures("digits")
def test_a_bug_in_a_cell_is_a_failed_cell(folders: Folders) -> None:
    floor = replace(RAW, kind="finetune")
    assert measure(floor, folders) == FAILED
    assert "only a fitted method whose encoder is trained" in read_records(folders.out)[0]["reason"]


@pytest.mark.usefixtures("_quick")
def test_a_cell_that_another_process_holds_is_left_alone(folders: Folders) -> None:
    (folders.runs / "claims").mkdir(parents=True)
    held = lock_file(claim_path(RAW, folders), wait=False)
    assert held is not None
    with held:
        assert measure(RAW, folders) == TAKEN
        other = Folders(folders.out.with_name("other"), folders.runs)
        assert measure(replace(RAW, study="other"), other) == MEASURED  # the same cell of another study
        assert measure(RAW, Folders(folders.out.with_name("again"), folders.runs)) == MEASURED  # or folder
    assert measure(RAW, folders) == MEASURED
    assert measure(RAW, folders) == TAKEN  # done meanwhile
    assert len(read_records(folders.out)) == 1


@pytest.mark.slow
def test_two_runners_at_once_measure_every_cell_once(folders: Folders, tmp_path: Path) -> None:
    spec = tmp_path / "mine.toml"
    spec.write_text(SPEC.format(method="raw", seeds="1-2"))
    runners = [Forked(FORKING + STUDY, "study", "run", spec, "--out", folders.out) for _ in range(2)]
    assert [runner.wait()[0] for runner in runners] == [0, 0]
    lines = [json.loads(line) for line in (folders.out / "records.jsonl").read_text().splitlines()]
    assert sorted((line["method"], line["seed"]) for line in lines) == [("raw", 1), ("raw", 2)]


@pytest.mark.slow
@pytest.mark.usefixtures("_quick")
def test_a_killed_worker_leaves_its_cell_to_the_next_run(folders: Folders) -> None:
    slow = replace(TRAINED, settings={"training.epochs": 100_000})
    killed: list[int] = []

    def kill_the_trainer(_: str) -> None:  # called when RAW, the other job, has finished
        while not (encoder_folder(slow, folders.runs) / "history.jsonl").exists():
            time.sleep(0.05)
        if not killed:
            (process,) = multiprocessing.active_children()
            killed.append(process.pid)
            os.kill(process.pid, signal.SIGKILL)

    outcome = run_study(make_worklist(study(RAW, slow), folders), folders, jobs=2, say=kill_the_trainer)
    assert len(killed) == 1
    assert outcome == Counter({"done": 1, "killed": 1})
    assert make_worklist(study(RAW, slow), folders).cells == (slow,)


@pytest.mark.slow
def test_a_runner_that_is_ended_ends_its_workers(folders: Folders, tmp_path: Path) -> None:
    spec = tmp_path / "mine.toml"
    endless = 'settings = {"training.epochs" = 100000}'
    spec.write_text(SPEC.format(method="patchjepa", seeds="1") + endless)
    runner = Forked(FORKING + STUDY, "study", "run", spec, "--out", folders.out)
    history: list[Path] = []
    while not history:
        history = list(tmp_path.glob("runs/digits/patchjepa*/history.jsonl"))
        time.sleep(0.05)
        assert runner.runs()
    runner.send_signal(signal.SIGTERM)
    assert runner.wait()[0] == 130
    assert read_records(folders.out) == []
    size = history[0].stat().st_size
    time.sleep(1)
    assert history[0].stat().st_size == size  # nobody trains on


@pytest.mark.usefixtures("_quick")
def test_cells_without_data_are_marked_once_and_never_hold_up_others(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodejepa.data.download._open", _no_network)
    absent = Folders(folders.out, folders.runs, folders.runs / "no-data")
    assert absent.data_root is not None
    absent.data_root.mkdir(parents=True)
    spec = study(replace(RAW, dataset="arxiv", split="official"), RAW)
    for _ in range(2):
        outcome = run_study(make_worklist(spec, absent), absent)
        assert outcome["not run"] == 1
    lines = (absent.out / "records.jsonl").read_text().splitlines()
    assert len(lines) == 2
    assert {r["dataset"]: r.get("reason") for r in read_records(absent.out)} == {
        "arxiv": NO_DATA,
        "digits": None,
    }


def _no_network(url: str) -> None:
    raise OSError(f"no network for {url}")


@pytest.mark.slow
@pytest.mark.usefixtures("digits")
@pytest.mark.parametrize(("seconds", "timed"), [(0.0, 5), (1e6, 29)])
def test_efficiency_cells_time_a_few_epochs_and_extrapolate(
    folders: Folders, monkeypatch: pytest.MonkeyPatch, seconds: float, timed: int
) -> None:
    monkeypatch.setattr("nodejepa.study.measure.TIMED_SECONDS", seconds)  # long epochs, and short ones
    settings = {"encoder.hidden": 8, "training.epochs": 30}
    assert measure(replace(TRAINED, method="dgi", kind="efficiency", settings=settings), folders) == MEASURED
    (record,) = read_records(folders.out)
    assert (record["epochs"], record["timed_epochs"]) == (30, timed)
    low, high = record["epoch_seconds_range"]
    assert 0 < low <= record["epoch_seconds"] <= high
    rounding = 0.05 + 30 * 0.00005  # of the total to a tenth, of the epoch to 0.1 ms
    assert record["total_seconds"] == pytest.approx(30 * record["epoch_seconds"], abs=rounding + 1e-6)
    assert record["peak_memory_mb"] > 50
    assert not list(folders.runs.glob("digits/*"))


@pytest.mark.slow
@pytest.mark.usefixtures("digits")
def test_a_curriculum_is_timed_to_behind_its_end(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodejepa.study.measure.TIMED_SECONDS", 0.0)
    settings = {"encoder.hidden": 8, "predictor.hidden": 8, "masking.curriculum_epochs": 4}
    cell = replace(TRAINED, method="nodejepa", preset="paper", kind="efficiency", settings=settings)
    assert timed_epochs(cell) == 14
    assert timed_epochs(replace(cell, settings=settings | {"masking.curriculum_epochs": 0})) == TIMED_EPOCHS
    assert timed_epochs(replace(cell, method="patchjepa", settings={})) == 60
    assert measure(cell, folders) == MEASURED
    (record,) = read_records(folders.out)
    curve = record["seconds_by_epoch"]
    assert len(curve) == record["timed_epochs"] == 13  # the first also warms up
    assert record["epoch_seconds"] == pytest.approx(statistics.median(curve[3:]), abs=1e-4)
    expected = curve[0] + sum(curve[:3]) + 296 * statistics.median(curve[3:])
    assert record["total_seconds"] == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize(("kind", "kept"), [("probe", str(2**30)), ("efficiency", None)])
def test_processes_have_their_threads_and_keep_memory_unless_it_is_measured(
    monkeypatch: pytest.MonkeyPatch, kind: Kind, kept: str | None
) -> None:
    name = "MALLOC_MMAP_THRESHOLD_"
    for mine in (None, "5"):  # who has said so decides
        monkeypatch.delenv(name, raising=False) if mine is None else monkeypatch.setenv(name, mine)
        before = dict(os.environ)
        with _environment(replace(RAW, kind=kind), "3"):
            assert os.environ.get(name) == (mine or kept)
            assert os.environ["OMP_NUM_THREADS"] == "3"
        assert dict(os.environ) == before


def test_what_would_fail_every_cell_is_found_before_the_first(folders: Folders, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    worklist = make_worklist(study(RAW), folders)
    for wrong in (
        replace(folders, runs=tmp_path / "file"),
        replace(folders, out=tmp_path / "file" / "deep"),
    ):
        with pytest.raises(NodeJEPAError, match=r"File exists|Not a directory"):
            run_study(worklist, wrong)
    with pytest.raises(DataError, match="no such folder of data"):
        run_study(worklist, replace(folders, data_root=tmp_path / "mistyped"))
    timed = make_worklist(study(replace(TRAINED, kind="efficiency", settings={})), folders)
    for jobs, message in ((0, "jobs is 0"), (2, "slow each other down")):
        with pytest.raises(ConfigError, match=message):
            run_study(timed, folders, jobs=jobs)
    assert read_records(folders.out) == []


def test_dry_run_measures_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["study", "run", MAIN, "--dry-run", "--quick", "--out", str(tmp_path), "--seeds", "42"])
    assert left.value.code == 0
    shown = capfd.readouterr().out
    assert "cells left, 0 measured" in shown
    assert "nodejepa" in shown
    assert list(tmp_path.iterdir()) == []
    assert np.all([word in shown for word in ("raw", "bgrl", "digits")])


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--method=nodejpea", "no method 'nodejpea'"),
        ("--dataset=foto", "no dataset 'foto'"),
        ("--seeds=42,99", "no seed 99"),
        ("--jobs=0", "greater than or equal to 1"),
        ("--threads=-1", "greater than or equal to 1"),
        ("--data-root=nowhere", "no such folder of data"),
    ],
)
def test_a_misspelt_choice_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], option: str, message: str
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["study", "run", MAIN, "--out", str(tmp_path), "--dry-run", option])
    assert left.value.code == 2
    assert message in capfd.readouterr().err


# ---------------------------------------------------------------- graphs without features


def test_the_table_is_rebuilt_byte_for_byte() -> None:
    spec = importlib.util.spec_from_file_location("measured", ROOT / "benchmarks" / "without_features.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    committed = module.RECORDS.with_name("gains.md").read_text(encoding="utf-8")
    assert module.render(module.read()) == committed
