"""records.jsonl survives kills, second writers and re-measured cells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.forked import Forked

from nodejepa.errors import DataError, NodeJEPAError
from nodejepa.methods import SupervisedGCN
from nodejepa.methods.migrations import config_of_today
from nodejepa.study.records import append_record, finished, read_records


def record(method: str, seed: int, **more: object) -> dict[str, object]:
    key = f"{method}{seed}"
    return {"method": method, "dataset": "photo", "seed": seed, "status": "done", "key": key, **more}


def test_no_file_is_no_records(tmp_path: Path) -> None:
    assert read_records(tmp_path) == []


def test_order_does_not_depend_on_when_they_came(tmp_path: Path) -> None:
    for name, order in (("a", (3, 1, 2)), ("b", (2, 3, 1))):
        for seed in order:
            append_record(tmp_path / name, record("raw", seed))
    assert read_records(tmp_path / "a") == read_records(tmp_path / "b")
    assert [r["seed"] for r in read_records(tmp_path / "a")] == [1, 2, 3]


def test_the_newest_record_of_a_cell_counts(tmp_path: Path) -> None:
    append_record(tmp_path, record("raw", 1, test_accuracy=1.0))
    append_record(tmp_path, record("raw", 1, test_accuracy=2.0))
    assert [r["test_accuracy"] for r in read_records(tmp_path)] == [2.0]


def test_a_torn_last_line_is_no_record_and_is_cut_by_the_next_writer(tmp_path: Path) -> None:
    append_record(tmp_path, record("raw", 1))
    path = tmp_path / "records.jsonl"
    whole = path.read_bytes()
    for length in range(1, len(whole), 7):
        path.write_bytes(whole + whole[:length].rstrip(b"\n"))
        assert [r["seed"] for r in read_records(tmp_path)] == [1]
        append_record(tmp_path, record("raw", 2))
        assert [r["seed"] for r in read_records(tmp_path)] == [1, 2]
    path.write_bytes(b'{"method": "r' + b"x" * 10_000)  # nothing but a torn line
    append_record(tmp_path, record("raw", 3))
    assert [r["seed"] for r in read_records(tmp_path)] == [3]


def test_a_whole_last_line_that_lacks_only_its_end_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(
        "\n".join(json.dumps(record("raw", seed)) for seed in (1, 2))
    )  # as an editor may leave it
    assert [r["seed"] for r in read_records(tmp_path)] == [1, 2]
    append_record(tmp_path, record("raw", 3))
    assert [r["seed"] for r in read_records(tmp_path)] == [1, 2, 3]
    assert len(path.read_text().splitlines()) == 3


@pytest.mark.parametrize(
    "wrong", [{"method": 1}, {"dataset": None}, {"seed": "abc"}, {"seed": None}, {"shots": "x"}]
)
def test_records_that_fit_no_table_are_refused(tmp_path: Path, wrong: dict[str, object]) -> None:
    append_record(tmp_path, record("raw", 1))
    append_record(tmp_path, record("raw", 2) | wrong)
    with pytest.raises(DataError, match="line 2 is no record of a study"):
        read_records(tmp_path)


@pytest.mark.parametrize("line", ["", "{", "[]", "nonsense", '{"a": 1', '{"a": "\\ud800"}'])
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    append_record(tmp_path, record("raw", 1))
    with (tmp_path / "records.jsonl").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(DataError, match="line 2 is no record"):
        read_records(tmp_path)


def test_nan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        append_record(tmp_path, record("raw", 1, test_accuracy=float("nan")))
    assert read_records(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NodeJEPAError, match="File exists"):
        append_record(tmp_path / "file", record("raw", 1))


@pytest.mark.slow
def test_many_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; from nodejepa.study.records import append_record\n"
        "for i in range(50):\n"
        "    append_record(sys.argv[1], {'method': sys.argv[2], 'seed': i, 'pad': 'x' * 3000})"
    )
    writers = [Forked(code, tmp_path, name) for name in ("a", "b", "c")]
    assert [writer.wait() for writer in writers] == [(0, "")] * 3
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    seen = {(r["method"], r["seed"]) for r in map(json.loads, lines)}
    assert len(lines) == len(seen) == 150


def test_what_is_finished() -> None:
    records = [
        record("raw", 1),
        record("sgc", 1) | {"status": "failed"},
        record("dgi", 1) | {"status": "not run"},
    ]
    assert finished(records) == {"raw1", "sgc1"}
    assert finished(records, retry_failed=True) == {"raw1"}


def test_a_failure_does_not_undo_the_same_measurement(tmp_path: Path) -> None:
    append_record(tmp_path, record("raw", 1, test_accuracy=1.0))
    append_record(tmp_path, record("raw", 1, status="failed"))  # a crash while the interpreter ended
    assert [r["status"] for r in read_records(tmp_path)] == ["done"]
    append_record(tmp_path, record("raw", 1, status="failed", key="other settings"))
    assert [r["status"] for r in read_records(tmp_path)] == ["failed"]


# ---------------------------------------------------------------- records of the supervised GCN


ROOT = Path(__file__).parents[2]
LOG = (ROOT / "docs" / "log.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("dataset", ["photo", "computers"])
def test_the_supervised_row_is_its_record(dataset):
    path = ROOT / "studies" / "official" / f"supervised-gcn-{dataset}.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    head = found["head"]
    val = f"{head['val_accuracy_mean']:.2f} ± {head['val_accuracy_std']:.2f}"
    test = f"{head['test_accuracy_mean']:.2f} ± {head['test_accuracy_std']:.2f}"
    assert f"| {dataset} | {val} | {test} | {head['test_accuracy_connected_mean']:.2f} |" in LOG
    assert [score["seed"] for score in head["scores"]] == found["seeds"] == [42, 43, 44, 45, 46]
    today = config_of_today("supervised-gcn", SupervisedGCN.config_class, found["config"])
    assert today == SupervisedGCN.preset("official", dataset)
    measured_again = {
        record["seed"]: record["head_test_accuracy"]
        for record in read_records(path.parent)
        if (record["method"], record["dataset"]) == ("supervised-gcn", dataset)
    }
    assert measured_again == {score["seed"]: score["test_accuracy"] for score in head["scores"]}
