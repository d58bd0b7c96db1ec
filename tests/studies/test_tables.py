"""Rules of the tables that the committed records may not show: marks, ties, what is missing or mixed."""

from __future__ import annotations

import json

import pytest
from studies.render.contents import figures_of, render_study, tables_of
from studies.render.figures.panels import house_style
from studies.render.figures.time import epoch_curve_figure
from studies.render.frame import by_split, frame_of, outdated_notes, unfinished_notes, values_by
from studies.render.statistics import contrasts, rank_methods
from studies.render.tables.accuracy import ablation_table, main_table
from studies.render.tables.differences import gains_table, official_table, variants_table, wins_table
from studies.render.tables.shared import best_of

from nodejepa.config import to_dict
from nodejepa.errors import DataError
from nodejepa.methods import make_method
from nodejepa.report.sections import Summary, to_csv, to_markdown

KINDS = ("main", "fewshot", "ablation", "collapse", "efficiency", "finetune", "limits", "recipe")


def record(method, dataset, seed, accuracy=None, **more):
    return {
        "study": "main", "kind": "probe", "method": method, "preset": "paper", "variant": None,
        "dataset": dataset, "split": "20-30", "shots": 20, "seed": seed, "status": "done",
        "test_accuracy": accuracy, "test_accuracy_paper_probe": accuracy, **more,
    }  # fmt: skip


def rows_of(table):
    return [[cell.text + cell.mark for cell in row] for row in table.rows]


# seed 42 is an easy split: everything scores 3 points more on it
SGC = [record("sgc", "computers", seed, 84.0 if seed == 42 else 81.0) for seed in range(42, 47)]
EARLY = record(
    "bgrl", "computers", 42, 83.0
)  # below the untrained baseline of its only seed, above the untrained baseline's mean


def test_the_dagger_compares_shared_seeds_and_a_mean_of_fewer_seeds_is_not_bold():
    rows = {row[0].text: row[1] for row in main_table(frame_of([*SGC, EARLY])).rows}
    assert (rows["BGRL"].text, rows["BGRL"].mark, rows["BGRL"].bold) == ("83.00 (1)", "†", False)
    assert rows["Propagated (S^2 X)"].bold
    assert best_of([Summary(90.0, None, 1), None, Summary(80.0, 1.0, 5)]).n == 5


def test_ranks_compare_the_seeds_that_all_methods_have():
    dgi = [record("dgi", "computers", seed, 84.0 if seed == 42 else 80.0) for seed in range(42, 47)]
    ranking = rank_methods(frame_of([*dgi, EARLY]))  # mean of DGI over five seeds: 80.8
    assert (ranking.average, ranking.seeds) == ({"dgi": 1.0, "bgrl": 2.0}, {"computers": 1})
    assert rank_methods(frame_of([*dgi, record("bgrl", "computers", 7, 99.0)])).datasets == ()


def test_wins_are_counted_under_both_probes_and_holms_family_is_the_table():
    def both(method, fair, like):
        pairs = zip((42, 43, 44), fair, like, strict=True)
        return [record(method, "photo", s, a, test_accuracy_paper_probe=b) for s, a, b in pairs]

    fair = (90.0, 91.0, 92.0)
    rows = [*both("nodejepa", fair, (70.0, 71.5, 73.0)), *both("dgi", fair, (80.0, 81.0, 82.0))]
    frame = frame_of([*rows, *both("sgc", (80.0, 80.5, 82.5), fair)])
    wins = {tuple(row[:2]): row[2:] for row in rows_of(wins_table(frame))}
    assert wins["NodeJEPA", "DGI"] == ["0 / 1 / 0", "0 / 1 / 0", "0 / 0 / 1", "3 / 1 / 1"]
    found = [c for c in contrasts(frame, "nodejepa") if c.holm_p is not None]
    smallest = min(found, key=lambda contrast: contrast.found.p)
    assert smallest.holm_p == pytest.approx(len(found) * smallest.found.p)


def test_the_ablation_knows_letters():
    varied = [
        record("nodejepa", "photo", seed, value + seed, variant=variant)
        for variant, value in (("A: full", 46.0), ("D", 40.0), ("G: no prediction", 30.0))
        for seed in (42, 43)
    ]
    rows = rows_of(ablation_table(frame_of(varied)))
    assert [row[1] for row in rows[:3]] == ["A: full", "D: no VICReg", "G: no prediction"]
    assert rows[1][2:7] == ["84.61 ± 1.67", "82.50 ± 0.71 (2)", "-2.11", "-3.26", "-6.00"]
    assert rows[2][2] == "-"


def test_validation_picks_the_baseline_and_the_walk_is_also_left_out():
    scores = {"raw": (70.0, 85.0), "sgc": (80.0, 75.0), "walk": (99.0, 80.0), "linear-jepa": (90.0, 82.0)}
    frame = frame_of(
        [record(m, "photo", s, t + s, val_accuracy=v) for m, (v, t) in scores.items() for s in (1, 2)]
    )
    (group,) = gains_table(frame, "linear-jepa").groups
    assert [(row[1].text, row[5].text) for row in group] == [
        ("Photo", "+2.00"),
        ("mean of 1", "+2.00"),
        ("mean of 1, without APPNP features", "+7.00"),
    ]


def test_variants_are_compared_on_shared_seeds_and_over_graphs():
    def scores(variant, dataset, base, seeds):
        return [record("linear-jepa", dataset, seed, base + seed, variant=variant) for seed in seeds]

    frame = frame_of(
        [
            *scores("0: full", "photo", 90.0, (1, 2, 3)),
            *scores("0: full", "cs", 80.0, (1, 2)),
            *scores("1: less", "photo", 88.0, (1, 2)),
            *scores("1: less", "cs", 79.0, (1, 2)),
            *scores("2: other", "physics", 50.0, (1,)),
        ]
    )
    assert [row[-2] for row in rows_of(variants_table(frame))] == ["-", "-1.50", "-"]


def test_scores_meet_their_published_figures():
    def official(method, seed, split="random-10-10-80", **more):
        config = {"training": {"epochs": 50}}
        return record(method, "photo", seed, preset="official", split=split, config=config) | more

    frame = frame_of(
        [
            official("cca-ssg", 0, test_accuracy=92.0),
            official("cca-ssg", 1, test_accuracy=93.0),
            official("cca-ssg", 1, split="20-30", test_accuracy=10.0),
            official("supervised-gcn", 42, split="20-30", test_accuracy=50.0, head_test_accuracy=90.0),
            official("sgc", 0, test_accuracy=91.5),
            official("sgc", 7, test_accuracy=99.0),  # no seed of ours
        ]
    )
    lines = to_markdown(official_table(frame)).splitlines()
    assert (
        "| CCA-SSG | Photo | random-10-10-80 | 92.50 ± 0.71 (2) | 93.1 | -0.60 | yes (1.5) | 91.50 |" in lines
    )
    assert "| Supervised GCN | Photo | 20-30 | 90.00 (1) | 91.2 | -1.20 | yes (1.2) | - |" in lines
    assert "| BGRL | Photo | random-10-10-80 | - | 93.2 | - | - (1.5) | - |" in lines


def test_presets_and_splits_stand_apart_and_two_records_never_in_one_place():
    records = [
        record("dgi", "photo", 42, 80.0),
        record("dgi", "photo", 42, 85.0, preset="official"),
        record("dgi", "photo", 42, 90.0, split="../../x"),
        record("dgi", "arxiv", 42, 70.0, split="official"),
    ]
    frame = frame_of(records)
    assert sorted(by_split(frame)) == ["", "../../x"]
    tables = {table.name: table for table in tables_of("main", frame, frame)}
    assert [row[0] for row in rows_of(tables["main"])[:2]] == ["DGI", "DGI (official)"]
    assert all("/" not in name for name in tables)
    assert "main-..-..-x" in tables
    with pytest.raises(DataError, match="one place of a table"):
        values_by(frame, "test_accuracy")


def test_notes_say_what_is_missing_mixed_trained_once_or_outdated():
    failed = frame_of([record("dgi", "photo", 42, status="failed", reason="x" * 500)])
    (note,) = unfinished_notes(failed)
    assert note.startswith("Photo, 1 cell failed (DGI): x")
    assert len(note) < 220
    mixed = [record("dgi", "photo", seed, 90.0, config_hash=text) for seed, text in ((1, "a"), (2, "b"))]
    assert unfinished_notes(frame_of(mixed)) == [
        "Photo, DGI: seeds were measured with different settings; run the study again."
    ]
    once = frame_of([record("linear-jepa", "photo", seed, 90.0, training_seed=7) for seed in (1, 2)])
    assert "trained once on each graph, with seed 7: their spread" in unfinished_notes(once)[0]
    old = {"loss.sigreg_times_n": True}
    config = to_dict(make_method("nodejepa", preset="paper", dataset="photo", settings=old).config)
    assert outdated_notes(frame_of([record("nodejepa", "photo", 1, 90.0, config=config)])) == [
        "NodeJEPA on Photo: measured with loss.sigreg_times_n = True; preset paper has False."
    ]


def efficiency_tables(records):
    frame = frame_of(records)
    return tables_of("efficiency", frame, frame)


def test_epochs_before_and_after_the_jump():
    curve = [1.0] * 23 + [2.0] + [5.0] * 35  # epochs 2 to 60; the 26th is the first with two hops
    timed = [
        record("nodejepa", "photo", 42, epochs=300, seconds_by_epoch=curve, total_seconds=1400.0),
        record(
            "nodejepa", "photo", 43, epochs=300, seconds_by_epoch=[3 * s for s in curve], total_seconds=4200.0
        ),
    ]
    assert [table.name for table in efficiency_tables(timed)] == ["efficiency", "epoch-time"]
    (row,) = rows_of(efficiency_tables(timed)[1])
    assert row == [
        *("Photo", "NodeJEPA", "2.000 ± 1.414 (2)", "1.000 to 6.000"),
        *("10.000 ± 7.071 (2)", "5.000 to 15.000", "5.00"),
        *("52.0 ± 36.8 (2)", "2,748.0 ± 1943.1 (2)", "2,800.0 ± 1979.9 (2)"),
    ]
    early = {"masking": {"hops_start": 1, "hops": 3, "curriculum_epochs": 4}}
    other = record(
        "nodejepa", "photo", 42, seconds_by_epoch=[1.0, 2.0, 3.0, 9.0, 9.0], total_seconds=30.0, config=early
    )
    (row,) = rows_of(efficiency_tables([other])[1])
    assert row[2:6] == ["1.500 (1)", "1.000 to 2.000", "9.000 (1)", "3.000 to 9.000"]
    assert [t.name for t in efficiency_tables([record("nodejepa", "photo", 42)])] == ["efficiency"]


def test_the_curve_of_epochs_is_the_median_of_the_passes_with_their_range():
    curve = [1.0] * 24 + [5.0] * 35  # epochs 2 to 60; the 26th is the first with two hops
    passes = [
        record("nodejepa", "synthetic-arxiv", 42 + i, seconds_by_epoch=[(2 + i) * s for s in curve])
        | {"total_seconds": 1.0}
        for i in range(3)
    ]
    (panel,) = epoch_curve_figure(frame_of(passes)).axes
    drawn, jump = panel.lines
    assert list(drawn.get_xdata()) == [*range(2, 61)]
    assert list(drawn.get_ydata()) == [3 * s for s in curve]
    assert jump.get_xdata()[0] == 25.5
    ((area,),) = (shape.get_paths() for shape in panel.collections)
    assert {tuple(point) for point in area.vertices} >= {(2, 2), (2, 4), (60, 10), (60, 20)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_study_without_any_score_still_has_tables_and_no_figure(kind):
    variant = "A: full" if kind == "ablation" else None
    frame = frame_of([record("nodejepa", "photo", 1, status="not run", reason=None, variant=variant)])
    for table in tables_of(kind, frame, frame):
        assert "nan" not in to_markdown(table).lower()
        assert to_csv(table).count("\n") == len(table.rows) + 1
    with house_style():
        assert all(make() is None for make in figures_of(kind, frame, frame).values())


@pytest.mark.slow
def test_the_order_of_records_does_not_matter_and_an_old_figure_goes_with_its_records(tmp_path):
    records = [record(m, "photo", s, 80.0 + s, mean_std=0.5) for m in ("dgi", "sgc") for s in (1, 2)]

    def rendered(name, records):
        (tmp_path / name / "collapse").mkdir(parents=True, exist_ok=True)
        lines = "".join(json.dumps(one) + "\n" for one in records)
        (tmp_path / name / "collapse" / "records.jsonl").write_text(lines)
        return {path.name: path.read_bytes() for path in render_study(tmp_path / name / "collapse")}

    first = rendered("a", records)
    assert rendered("b", records[::-1]) == first
    assert {"mean-std.png", "mean-std.svg", "collapse.md"} <= first.keys()
    assert not any(
        text in content for content in first.values() for text in (b"dc:date", b"tIME", b"Matplotlib")
    )
    rendered("a", [{**one, "mean_std": None} for one in records])
    assert not (tmp_path / "a" / "collapse" / "figures" / "mean-std.png").exists()
    with pytest.raises(DataError, match="no records"):
        render_study(tmp_path / "none")
