"""The plain table of any study, and the command that prints it."""

from __future__ import annotations

import json

import pytest

from nodejepa.cli import main
from nodejepa.study.table import study_table


def record(method="mine", seed=1, accuracy=80.0, **more):
    return {
        "study": "own", "method": method, "preset": "default", "variant": None, "dataset": "digits",
        "split": "20-30", "seed": seed, "status": "done", "test_accuracy": accuracy, **more,
    }  # fmt: skip


RECORDS = [
    record(seed=1, accuracy=80.0),
    record(seed=2, accuracy=82.0),
    record("nodejepa", preset="paper", variant="D: no VICReg", accuracy=70.0, epoch_seconds=0.5),
    record("nodejepa", preset="default", accuracy=75.0),
    record("raw", split="5-30", accuracy=float("nan")),
    record("raw", seed=2, status="failed", reason="out of memory.", accuracy=None),
]


def test_every_method_preset_and_variant_has_a_row_and_every_measure_a_column():
    table = study_table(RECORDS)
    assert [column.title for column in table.columns[3:]] == ["test %", "s per epoch"]
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["digits", "20-30", "NodeJEPA (default)", "75.00 (1)", "-"],
        ["digits", "20-30", "NodeJEPA (paper, D: no VICReg)", "70.00 (1)", "0.500 (1)"],
        ["digits", "20-30", "mine", "81.00 ± 1.41 (2)", "-"],
        ["digits", "20-30", "Raw features", "-", "-"],
        ["digits", "5-30", "Raw features", "-", "-"],
    ]
    assert len(table.groups) == 2
    assert table.notes[1:] == ("Cells without a number: 1 failed.",)
    assert study_table(RECORDS[::-1]) == table


def command(*arguments, capsys):
    with pytest.raises(SystemExit) as left:
        main(["study", *map(str, arguments)])
    return left.value.code, capsys.readouterr()


def test_the_command_prints_it_of_a_folder_or_a_specification(tmp_path, capsys):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "records.jsonl").write_text("".join(json.dumps(r) + "\n" for r in RECORDS[:2]))
    code, said = command("table", tmp_path / "own.toml", capsys=capsys)
    assert code == 0
    assert "| digits | 20-30 | mine | 81.00 ± 1.41 (2) |" in said.out
    _, said = command("table", tmp_path / "own", "--format", "csv", capsys=capsys)
    assert said.out.splitlines() == [
        "dataset,split,method,test % mean,test % std,test % seeds",
        "digits,20-30,mine,81,1.41421,2",
    ]
    code, said = command("table", tmp_path / "none", capsys=capsys)
    assert code == 2
    assert "there are no records" in said.err
