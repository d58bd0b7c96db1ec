"""The tables of docs/log.md are the committed records, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "studies" / "log"
LOG = (ROOT / "docs" / "log.md").read_text(encoding="utf-8")


def scores_of(name: str) -> list[dict[str, object]]:
    """Those of a file of the log, or of ``main``, METHOD: that method's on Photo."""
    if name.endswith(".json"):
        return json.loads((RECORDS / name).read_text(encoding="utf-8"))["scores"]
    study, method = name.split(", ")
    lines = (ROOT / "studies" / study / "records.jsonl").read_text(encoding="utf-8").splitlines()
    records = map(json.loads, lines)  # also those of earlier settings, which the log is about
    return [found for found in records if (found["method"], found["dataset"]) == (method, "photo")]


@pytest.mark.parametrize("path", sorted(RECORDS.glob("*.json")), ids=lambda path: path.stem)
def test_records_are_whole(path):
    found = json.loads(path.read_text(encoding="utf-8"))
    assert len(found["scores"]) == len(found["seeds"])
    assert found["config"]["training"]["epochs"] == 300
    assert all(re.fullmatch(r"[0-9a-f]{16}", score["split_hash"]) for score in found["scores"])


def test_every_accuracy_of_the_log_is_in_its_record():
    """Rows end with seed, validation, test and the record they were read from."""
    rows = [
        [cell.strip() for cell in line.strip("|").replace("`", "").split("|")]
        for line in LOG.splitlines()
        if ".json` |" in line or "| `main`, " in line
    ]
    named = {name for *_, name in rows if name.endswith(".json")}
    assert named == {path.name for path in RECORDS.glob("*.json")}
    for *_, seed, val, test, name in rows:
        found = [score for score in scores_of(name) if score["seed"] == int(seed)]
        known = [[f"{score['val_accuracy']:.2f}", f"{score['test_accuracy']:.2f}"] for score in found]
        assert [val, test] in known, (name, seed)
