"""The tables of docs/reproduction.md are the committed records, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "studies" / "reproduction"
PAGE = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
LOG = (ROOT / "docs" / "log.md").read_text(encoding="utf-8")


def record(name: str) -> dict[str, object]:
    return json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8"))


def shown(score: dict[str, object]) -> str:
    mean, std = score["test_accuracy_mean"], score["test_accuracy_std"]
    return f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"


def test_every_cell_of_the_accuracy_table_is_a_record():
    header, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.splitlines()
        if line.startswith("| ") and not line.startswith("| --")
    ]
    datasets = header[1:]
    assert len(rows) >= 5
    for method, *cells in (row for row in rows if not row[0].startswith("paper")):
        for dataset, cell in zip(datasets, cells, strict=True):
            found = record(f"{dataset}-{method}")
            seeds = found["seeds"]
            assert cell == f"{shown(found)} ({len(seeds)})", (method, dataset)
            assert (found["dataset"], found["method"], found["probe"]) == (dataset, method, "fair")


@pytest.mark.parametrize("path", sorted(RECORDS.glob("*.json")), ids=lambda path: path.stem)
def test_records_are_whole(path):
    found = json.loads(path.read_text(encoding="utf-8"))
    assert len(found["scores"]) == len(found["seeds"])
    assert all(re.fullmatch(r"[0-9a-f]{16}", score["split_hash"]) for score in found["scores"])


def test_every_accuracy_of_the_log_is_in_its_record():
    """Rows end with seed, validation, test and the record they were read from."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in LOG.splitlines()
        if ".json` |" in line
    ]
    assert rows
    for *_, seed, val, test, name in rows:
        scores = {score["seed"]: score for score in record(name.strip("`").removesuffix(".json"))["scores"]}
        score = scores[int(seed)]
        assert [val, test] == [f"{score['val_accuracy']:.2f}", f"{score['test_accuracy']:.2f}"], (name, seed)
