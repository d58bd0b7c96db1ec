"""What a method gains over the floor that validation picks."""

from statistics import fmean

import pytest
from studies.render.tables.accuracy import measures_table
from studies.render.tables.gains import gains, gains_table

VALIDATION = {"raw": 70.0, "sgc": 80.0, "linear-jepa": 90.0}
TEST = {"raw": 85.0, "sgc": 75.0, "linear-jepa": 82.0}  # validation picks sgc, the test would pick raw


def record(method, seed, dataset="photo", split="20-30", shift=0.0):
    return {
        "status": "done",
        "method": method,
        "dataset": dataset,
        "split": split,
        "seed": seed,
        "val_accuracy": VALIDATION[method] + seed,
        "test_accuracy": TEST[method] + seed * (2 if method == "linear-jepa" else 1) + shift,
        "balanced_accuracy": TEST[method] - 10,
    }


RECORDS = [
    record(m, s, d, p) for m in TEST for s in (1, 2, 3) for d in ("photo", "cs") for p in ("20-30", "5-30")
]


def test_the_best_floor_is_the_one_that_validation_picks():
    found = gains(RECORDS, "linear-jepa")
    assert {gain.floor for gain in found} == {"sgc"}
    assert [(gain.split, gain.dataset) for gain in found] == [
        ("20-30", "photo"),
        ("20-30", "cs"),
        ("5-30", "photo"),
        ("5-30", "cs"),
    ]
    assert found[0].found.difference == pytest.approx(fmean([7 + s for s in (1, 2, 3)]))
    assert found[0].found.test == "paired"
    assert found[0].balanced == pytest.approx(7.0)


def test_the_last_row_of_a_split_is_the_mean_over_its_graphs():
    records = [
        record(m, s, d, shift=4.0 * (m == "linear-jepa") * (d == "cs"))
        for m in TEST
        for s in (1, 2)
        for d in ("photo", "cs")
    ]
    table = gains_table(records, "linear-jepa")
    (group,) = table.groups
    shown = [row[5].text for row in group]
    assert shown == ["+8.50", "+12.50", "+10.50"]
    assert group[-1][1].text == "mean of 2"


def test_a_method_without_floors_beside_it_has_no_gain():
    assert gains([record("linear-jepa", 1)], "linear-jepa") == []


def test_where_the_walk_is_the_best_floor_the_mean_without_it_stands_below():
    walk = [
        {**record("sgc", s), "method": "walk", "val_accuracy": 99.0, "test_accuracy": 80.0} for s in (1, 2)
    ]
    records = [record(m, s) for m in TEST for s in (1, 2)]
    (group,) = gains_table([*records, *walk], "linear-jepa").groups
    assert [(row[1].text, row[5].text) for row in group] == [
        ("Photo", "+5.00"),
        ("mean of 1", "+5.00"),
        ("mean of 1, walk left out", "+8.50"),
    ]


def test_where_the_walk_is_the_only_floor_there_is_no_mean_without_it():
    walk = [{**record("sgc", s), "method": "walk"} for s in (1, 2)]
    (group,) = gains_table([*walk, *(record("linear-jepa", s) for s in (1, 2))], "linear-jepa").groups
    assert [row[1].text for row in group] == ["Photo", "mean of 1"]


def test_measures_beside_accuracy_have_columns_where_some_record_has_them():
    records = [{**record(m, s, d), "shots": 20} for m in TEST for s in (1, 2) for d in ("photo", "cs")]
    for one in records:
        one["roc_auc"] = 60.0 + one["seed"] if one["dataset"] == "cs" else None
    table = measures_table(records)
    assert [column.title for column in table.columns[2:]] == ["20 a class: balanced", "20 a class: ROC-AUC"]
    rows = [row for group in table.groups for row in group if row[1].text == "Raw features"]
    assert [(row[0].text, row[3].text.partition(" ")[0]) for row in rows] == [("Photo", "-"), ("CS", "61.50")]
    plain = measures_table([{**one, "roc_auc": None} for one in records])
    assert [column.title for column in plain.columns[2:]] == ["20 a class: balanced"]


def test_the_table_of_a_preset_has_a_name_for_a_file():
    ours = [{**record("linear-jepa", s), "method": "cca-ssg (official)"} for s in (1, 2)]
    records = [*ours, *(record("sgc", s) for s in (1, 2))]
    assert gains_table(records, "cca-ssg (official)").name == "gains-cca-ssg-official"
