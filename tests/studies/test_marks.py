"""A mean of one seed never wins or loses against a mean of five because of the seed."""

from __future__ import annotations

import pytest
from made_up import record
from studies.render.contents import figures_of, tables_of
from studies.render.selection import by_split, values_by
from studies.render.statistics import rank_methods
from studies.render.tables.ablation import ablation_table
from studies.render.tables.accuracy import (
    fewshot_table,
    finetune_table,
    main_table,
    paper_comparison_table,
)
from studies.render.tables.shared import best_of, floor_mark

from nodejepa.errors import DataError
from nodejepa.report.table import ReportTable, Summary, to_latex

# seed 42 is an easy split: everything scores 3 points more on it
SGC = [record("sgc", "computers", seed, 84.0 if seed == 42 else 81.0) for seed in range(42, 47)]
EARLY = record("bgrl", "computers", 42, 83.0)  # below the floor of its only seed, above the floor's mean


def cells(table: ReportTable) -> dict[str, str]:
    """The first cell of each row that holds an accuracy of ours, as shown."""
    return {
        " ".join(c.text for c in row if c.text and not c.text[0].isdigit() and c.text[0] not in "+-"): next(
            f"{c.text}{c.mark}{'*' if c.bold else ''}" for c in row if "(" in c.text and c.text[0].isdigit()
        )
        for row in table.rows
        if any("(" in c.text and c.text[0].isdigit() for c in row)
    }


def test_the_dagger_compares_the_seeds_that_both_have():
    assert cells(main_table([*SGC, EARLY]))["BGRL"] == "83.00 (1)†"


def test_a_mean_of_fewer_seeds_is_not_bold():
    shown = cells(main_table([*SGC, EARLY]))
    assert shown["Propagated (S^2 X)"].endswith("*")
    assert "*" not in shown["BGRL"]


@pytest.mark.parametrize("table", [main_table, paper_comparison_table, fewshot_table, finetune_table])
def test_every_accuracy_table_marks_alike(table):
    records = [r | {"test_accuracy_paper_probe": r["test_accuracy"]} for r in (*SGC, EARLY)]
    marked = [cell for row in table(records).rows for cell in row if cell.mark]
    assert marked
    assert all(cell.text == "83.00 (1)" and not cell.bold for cell in marked)


def test_the_ablation_marks_alike():
    varied = record("nodejepa", "computers", 42, 83.0, variant="A: full")
    shown = cells(ablation_table([*SGC, varied]))
    assert next(text for name, text in shown.items() if "A: full" in name) == "83.00 (1)†"


def test_without_a_common_seed_all_seeds_are_compared():
    assert floor_mark({1: 80.0}, [{2: 81.0}])
    assert not floor_mark({1: 82.0}, [{2: 81.0}])
    assert not floor_mark({}, [{2: 81.0}])


def test_the_best_has_the_most_seeds():
    one, five = Summary(90.0, None, 1), Summary(80.0, 1.0, 5)
    assert best_of([one, None, five]) == five
    assert best_of([]) is None


def test_ranks_compare_the_seeds_that_all_methods_have():
    records = [record("dgi", "computers", seed, 84.0 if seed == 42 else 80.0) for seed in range(42, 47)]
    ranking = rank_methods([*records, EARLY])  # mean of DGI over five seeds: 80.8
    assert ranking.average == {"dgi": 1.0, "bgrl": 2.0}
    assert ranking.seeds == {"computers": 1}
    assert rank_methods([*records, record("bgrl", "computers", 7, 99.0)]).datasets == ()


def test_two_records_never_stand_in_one_place():
    twice = [record("dgi", "photo", 42, 80.0), record("dgi", "photo", 42, 70.0, variant="mine")]
    with pytest.raises(DataError, match=r"one place of a table.*variant mine"):
        values_by(twice, "test_accuracy", lambda r: r["method"])


@pytest.mark.parametrize("kind", ["main", "collapse", "ablation", "efficiency", "finetune"])
def test_every_split_has_tables_of_its_own(kind):
    more = {"variant": "A"} if kind == "ablation" else {"total_seconds": 5.0, "effective_rank": 3.0}
    records = [
        record("nodejepa", "photo", 42, accuracy, split=split, **more)
        for split, accuracy in (("20-30", 90.0), ("random-10-10-80", 93.0))
    ]
    names = {table.name for table in tables_of(kind, records)}
    assert {f"{name}-random-10-10-80" for name in names if "random" not in name} - {
        "main-paper-probe-random-10-10-80"
    } <= names


def test_the_paper_splits_are_those_of_each_graph():
    records = [record("dgi", "arxiv", 1, 70.0), record("dgi", "arxiv", 1, 50.0, split="20-30", shots=20)]
    assert {name: len(part) for name, part in by_split(records).items()} == {"": 1, "20-30": 1}


def test_a_split_cannot_name_a_file_elsewhere():
    records = [record("dgi", "photo", 1, 70.0, split=split) for split in ("20-30", "../../x")]
    assert all("/" not in table.name for table in tables_of("main", records))


def test_figures_name_a_preset_once():
    records = [record("dgi", "photo", seed, 90.0 + seed, preset="official") for seed in (1, 2)]
    figure = figures_of("main", records)["accuracy"]()
    assert figure is not None
    names = {label.get_text() for axes in figure.axes for label in axes.get_yticklabels()}
    assert any("DGI (official)" in name for name in names)
    assert not any("(official) (official)" in name for name in names)


def test_a_mean_over_different_settings_is_said():
    records = [record("dgi", "photo", seed, 90.0, config_hash=text) for seed, text in ((1, "a"), (2, "b"))]
    warning = "Photo, DGI: seeds were measured with different settings; run the study again."
    assert warning in main_table(records).notes
    assert warning not in main_table([r | {"config_hash": "a"} for r in records]).notes


def test_a_name_in_brackets_does_not_end_a_latex_row():
    text = to_latex(main_table([record("[2pt] x", "photo", 1, 90.0)]))
    assert "{[}2pt{]} x & " in text
