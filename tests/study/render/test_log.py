"""The tables of docs/log.md are the committed records, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RECORDS = ROOT / "studies" / "log"
LOG = (ROOT / "docs" / "log.md").read_text(encoding="utf-8")


def record(name: str) -> dict[str, object]:
    return json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8"))


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
    assert {name.strip("`") for *_, name in rows} == {path.name for path in RECORDS.glob("*.json")}
    for *_, seed, val, test, name in rows:
        scores = {score["seed"]: score for score in record(name.strip("`").removesuffix(".json"))["scores"]}
        score = scores[int(seed)]
        assert [val, test] == [f"{score['val_accuracy']:.2f}", f"{score['test_accuracy']:.2f}"], (name, seed)
