"""The records of how time and memory grow are never lost by measuring again; the table is made of them."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks import scale, scale_figure, scale_table


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Run the benchmark with pretended measurements; returns the records it keeps and those it draws."""
    drawn = []

    def run(*arguments, settings):
        monkeypatch.setattr(scale, "HERE", tmp_path)
        monkeypatch.setattr(scale, "measure", lambda asked, _: asked | {"seconds": 1.0})
        monkeypatch.setattr(scale, "settings_of", lambda case: None if case == "train" else settings)
        monkeypatch.setattr(scale_figure, "draw", lambda records, *_: drawn.append(records))
        monkeypatch.setattr(sys, "argv", ["scale", "--folder", str(tmp_path), "--threads", "2", *arguments])
        scale.main()
        lines = (tmp_path / "scale.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines], drawn[-1]

    return run


def test_no_record_is_removed_and_none_is_measured_twice(measured):
    old, _ = measured("--nodes", "0.2", "0.1", settings={"dim": 1})
    assert [record["nodes"] for record in old] == [200_000, 100_000]
    again, _ = measured("--nodes", "0.2", "0.1", settings={"dim": 1})
    assert again == old
    more, drawn = measured("--nodes", "0.1", settings={"dim": 2})
    assert more[:2] == old
    assert more[2]["settings"] == {"dim": 2}
    assert [(record["nodes"], record["settings"]["dim"]) for record in drawn] == [(100_000, 2), (200_000, 1)]
    shared, drawn_again = measured("workers", "--nodes", "0.1", settings={"dim": 2})
    assert shared[:3] == more
    assert (shared[3]["case"], shared[3]["workers"], shared[3]["threads"]) == ("workers", 2, 1)
    assert drawn_again == drawn  # the figure is of one process
    repeated, _ = measured("workers", "--nodes", "0.1", "--again", settings={"dim": 2})
    assert repeated == [*shared, shared[3]]


def test_an_old_record_without_a_case_counts_as_sizes_by_one_process(measured, tmp_path):
    before = {"nodes": 100_000, "settings": {"dim": 1}, "threads": 2}
    (tmp_path / "scale.jsonl").write_text(json.dumps(before) + "\n")
    assert measured("--nodes", "0.1", settings={"dim": 1})[0] == [before]


def pair(alone, apart, columns=128):
    """Records of one worker and of two machines; the seconds of fit, embed and write of each."""
    common = {"workers": 2, "threads": 1, "nodes": 1_000_000, "load_average": 0.1}
    common |= {"stored_edges": 20_000_000, "columns": columns}
    steps = ("training", "embedding", "writing")
    return [
        common | {"case": case, "inside": {name: dict(zip(steps, seconds, strict=True))}, "phases": phases}
        for case, name, seconds, phases in (
            ("workers", "alone", alone, {}),
            ("agents", "agents", apart, {"agents": {"moved_gb": 0.2}}),
        )
    ]


def test_constants_share_what_two_machines_made_faster():
    records = pair((20.0, 40.0, 4.0), (10.0, 30.0, 4.0))
    assert scale_table.constants(records[:1]) == []
    fit, embed, write = scale_table.constants(records)
    assert (fit["shared"], fit["alone"]) == (1.0, 0.0)
    assert (embed["shared"], embed["alone"], embed["moved"]) == (1.0, 1.0, 10.0)
    assert (write["shared"], write["alone"]) == (0.0, 0.2)
    text = scale_table.render(records)
    assert "| embed | 1.000 | 1.000 | 10 | 33 min | 19 min | 19 min |" in text  # 64 have 2 columns each
    assert "There is no record of these steps yet: prepare." in text


def test_constants_take_the_shortest_of_all_records_with_the_newest_settings():
    slow, fast = (pair((10.0 + i, 40.0, 4.0), (7.0 + i, 30.0, 4.0)) for i in (1, 0))
    other = [record | {"settings": {"dim": 1}} for record in pair((1.0, 1.0, 1.0), (1.0, 1.0, 1.0))]
    fit = scale_table.constants([*other, *slow, *fast])[0]
    assert (fit["shared"], fit["alone"], fit["records"]) == (pytest.approx(0.3), pytest.approx(0.2), 4)


def test_the_committed_tables_are_made_of_the_committed_records():
    records = scale.read_records(scale.HERE / "scale.jsonl")
    assert scale_table.PLACE.read_text() == scale_table.render(records)
    assert scale_table.CASES_PLACE.read_text() == scale_table.render_cases(records)


def test_embeddings_of_two_files_are_compared(tmp_path):
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path, last in zip(files, (1.0, 1.5), strict=True):
        z = np.array([0.0, last], dtype=np.float32)
        pq.write_table(pa.table({"id": ["x", "y"], "z0": z, "z1": np.zeros(2, np.float32)}), path)
    assert scale.largest_difference(*files) == 0.5
