"""The records of how time and memory grow are never lost by measuring again."""

import json
import sys

import pytest
from benchmarks import scale, scale_figure


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Run the benchmark with pretended measurements; returns the records it keeps and those it draws."""
    drawn = []

    def run(*arguments, settings):
        def measure(nodes, _, threads, train, workers):
            record = {"nodes": nodes, "settings": scale.settings_of(train), "threads": threads}
            return record | {"workers": workers, "seconds": 1.0}

        monkeypatch.setattr(scale, "HERE", tmp_path)
        monkeypatch.setattr(scale, "measure", measure)
        monkeypatch.setattr(scale, "settings_of", lambda train: None if train else settings)
        monkeypatch.setattr(scale_figure, "draw", lambda records, _: drawn.append(records))
        monkeypatch.setattr(sys, "argv", ["scale", "--folder", str(tmp_path), "--threads", "2", *arguments])
        scale.main()
        lines = (tmp_path / "scale.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines], drawn[-1]

    return run


def test_no_record_is_removed_and_none_is_measured_twice(measured):
    old, _ = measured("--sizes", "0.2", "0.1", settings={"dim": 1})
    assert [record["nodes"] for record in old] == [200_000, 100_000]
    again, _ = measured("--sizes", "0.2", "0.1", settings={"dim": 1})
    assert again == old
    more, drawn = measured("--sizes", "0.1", settings={"dim": 2})
    assert more[:2] == old
    assert more[2]["settings"] == {"dim": 2}
    assert [(record["nodes"], record["settings"]["dim"]) for record in drawn] == [(100_000, 2), (200_000, 1)]
    shared, drawn_again = measured("--sizes", "0.1", "--workers", "2", settings={"dim": 2})
    assert shared[:3] == more
    assert shared[3]["workers"] == 2
    assert drawn_again == drawn  # the figure is of one process


def test_an_old_record_without_workers_counts_as_one_process(measured, tmp_path):
    before = {"nodes": 100_000, "settings": {"dim": 1}, "threads": 2}
    (tmp_path / "scale.jsonl").write_text(json.dumps(before) + "\n")
    assert measured("--sizes", "0.1", settings={"dim": 1})[0] == [before]
