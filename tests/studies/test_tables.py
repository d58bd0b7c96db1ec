"""Tables of hand-made records, word for word; what is missing is shown as missing."""

from __future__ import annotations

import csv
import io
import random

import pytest
from made_up import made_up, record
from studies.render.contents import study_kind, tables_of
from studies.render.selection import borrow_floors, by_split, unfinished_notes, with_preset_names
from studies.render.statistics import contrasts, rank_methods
from studies.render.tables.ablation import ablation_table
from studies.render.tables.accuracy import (
    fewshot_table,
    finetune_table,
    main_table,
    paper_comparison_table,
)
from studies.render.tables.significance import ranks_table, significance_table, wins_table

from nodejepa.report.table import (
    Column,
    ReportTable,
    Summary,
    TableCell,
    escape_latex,
    to_csv,
    to_latex,
    to_markdown,
)

HAND_MADE = [
    record("nodejepa", "photo", 42, 90.0, test_accuracy_paper_probe=88.0),
    record("nodejepa", "photo", 43, 91.0, test_accuracy_paper_probe=88.5),
    record("nodejepa", "photo", 44, 92.0, test_accuracy_paper_probe=89.0),
    record("dgi", "photo", 42, 80.0),
    record("dgi", "photo", 43, 80.5),
    record("dgi", "photo", 44, 83.0),
    record("sgc", "photo", 42, 90.5),
    record("sgc", "photo", 43, 90.5),
    record("nodejepa", "cs", 42, 89.0),
    record("dgi", "cs", 42, status="failed", reason="loss is\nnot finite"),
    record("dgi", "arxiv", 42, status="not run", reason="data not available offline"),
    record("nodejepa", "arxiv", 42, status="not run", reason="data not available offline"),
    record("sgc", "arxiv", 42, status="not run", reason="data not available offline"),
]


def rows_of(table: ReportTable) -> list[list[str]]:
    return [[cell.text + cell.mark for cell in row] for row in table.rows]


def test_main_table_word_for_word():
    assert to_markdown(main_table(HAND_MADE)) == (
        "# Test accuracy (%) under the fair probe\n"
        "\n"
        "| Method | Photo | CS | arxiv |\n"
        "| --- | ---: | ---: | ---: |\n"
        "| DGI | 81.17 ± 1.61 (3)† | - | - |\n"
        "| NodeJEPA | **91.00 ± 1.00 (3)**† | **89.00 (1)** | - |\n"
        "| Raw features | - | - | - |\n"
        "| Propagated (S^2 X) | 90.50 ± 0.00 (2) | - | - |\n"
        "| Random GCN | - | - | - |\n"
        "\n"
        "- Fair probe: logistic regression on frozen embeddings, scaling (standardised columns or rows of "
        "one length) and C chosen on validation labels; test labels are read once.\n"
        "- Mean ± standard deviation (n - 1) over seeds, their number in brackets.\n"
        "- Bold: best of the column, floors included; a mean over fewer seeds than another's does not "
        "compete.\n"
        "- † not above the best floor, which needs no training, on the seeds that both have.\n"
        "- Floors, which need no training: raw features, propagated features (S X, S^2 X, S^3 X; X, S X and "
        "S^2 X equally loud; X after LinearJEPA's walk) and a randomly initialised GCN. LinearJEPA is "
        "learned, but not by gradient descent.\n"
        "- CS, 1 cell failed (DGI): loss is not finite.\n"
        "- arxiv, 3 cells not run (every method): data not available offline.\n"
    )


def test_main_table_in_latex_word_for_word():
    text = to_latex(main_table(HAND_MADE))
    assert text.startswith(
        "\\begin{table*}[t]\n"
        "\\centering\n"
        "\\small\n"
        "\\begin{tabular}{lrrr}\n"
        "\\toprule\n"
        "Method & Photo & CS & arxiv \\\\\n"
        "\\midrule\n"
        "DGI & 81.17 $\\pm$ 1.61 (3)$^{\\dagger}$ & - & - \\\\\n"
        "NodeJEPA & \\textbf{91.00 $\\pm$ 1.00 (3)}$^{\\dagger}$ & \\textbf{89.00 (1)} & - \\\\\n"
        "\\midrule\n"
        "Raw features & - & - & - \\\\\n"
        "Propagated (S\\textasciicircum{}2 X) & 90.50 $\\pm$ 0.00 (2) & - & - \\\\\n"
        "Random GCN & - & - & - \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
        "\\caption{Test accuracy (\\%) under the fair probe. Fair probe:"
    )
    assert text.endswith("}\n\\label{tab:main}\n\\end{table*}\n")


def test_main_table_in_csv_has_bare_numbers():
    rows = list(csv.DictReader(io.StringIO(to_csv(main_table(HAND_MADE)))))
    assert rows[0] == {
        "Method": "DGI",
        "Photo mean": "81.1667",
        "Photo std": "1.60728",
        "Photo seeds": "3",
        **{f"{graph} {part}": "" for graph in ("CS", "arxiv") for part in ("mean", "std", "seeds")},
    }


def test_paper_beside_ours():
    rows = rows_of(paper_comparison_table(HAND_MADE))
    nodejepa = next(row for row in rows if row[:2] == ["Photo", "NodeJEPA"])
    fair = ["91.00 ± 1.00 (3)†", "+3.02"]
    assert nodejepa == ["Photo", "NodeJEPA", "87.98 ± 0.58", "88.50 ± 0.50 (3)", "+0.52", *fair]
    assert next(row for row in rows if row[:2] == ["CS", "DGI"])[2:] == ["88.85 ± 0.35", "-", "-", "-", "-"]


def test_own_head_stands_beside_the_probe():
    rows = rows_of(main_table([record("supervised-gcn", "photo", 42, 89.0, head_test_accuracy=90.0)]))
    assert rows[:2] == [["Supervised GCN", "89.00 (1)"], ["Supervised GCN, own head", "90.00 (1)"]]


def test_ranks_count_only_graphs_that_every_method_has():
    ranking = rank_methods(HAND_MADE)
    assert ranking.datasets == ("photo",)
    assert ranking.average == {"dgi": 2.0, "nodejepa": 1.0}
    rows = rows_of(ranks_table(HAND_MADE))
    assert rows[0] == ["DGI", "5.0", "2.00", "2.00", "-", "3.00", "3"]
    assert rows[1] == ["NodeJEPA", "2.4", "1.00", "1.00", "1.00", "1.50", "3"]
    assert rows_of(ranks_table([record("dgi", "photo", 42)]))[0][2:] == ["-", "-", "-", "-", "-"]


def test_significance_names_its_test_and_seeds():
    rows = {tuple(row[:2]): row[2:] for row in rows_of(significance_table(HAND_MADE, "nodejepa"))}
    paired = rows["Photo", "DGI"]
    assert paired[0] == "+9.83"
    assert paired[4:] == [
        "paired",
        "3",
        "-",
        "-",
        "+24.35",
        "0.019",
    ]  # DGI has no score under the paper's probe
    welch = rows["Photo", "Propagated (S^2 X)"]
    assert welch[4:] == ["Welch", "3, 2", "-", "-", "-", "-"]
    assert rows["CS", "DGI"] == ["-", "-", "-", "-", "-", "-", "-", "-", "+1.08", "0.012"]
    assert rows["arxiv", "DGI"][-2:] == ["+1.18", "0.0001"]


def both_probes(method, values, like, **more):
    return [
        record(method, "photo", seed, value, test_accuracy_paper_probe=other, **more)
        for seed, value, other in zip((42, 43, 44), values, like, strict=False)
    ]


def test_the_papers_probe_stands_beside_the_papers_figures():
    records = [
        *both_probes("nodejepa", (90.0, 91.0, 92.0), (70.0, 71.5, 73.0)),
        *both_probes("dgi", (90.0, 91.0, 92.0), (80.0, 81.0, 82.0)),
    ]
    row = next(row for row in rows_of(significance_table(records, "nodejepa")) if row[1] == "DGI")
    assert row[2] == "+0.00"
    assert row[8] == "-9.50"
    assert float(row[9]) < 0.01
    wins = {tuple(row[:2]): row[2:] for row in rows_of(wins_table(records))}
    assert wins["NodeJEPA", "DGI"] == ["0 / 1 / 0", "0 / 1 / 0", "0 / 0 / 1", "3 / 1 / 1"]


def test_holm_family_is_the_whole_table():
    found = [contrast for contrast in contrasts(HAND_MADE, "nodejepa") if contrast.holm_p is not None]
    smallest = min(found, key=lambda contrast: contrast.found.p)
    assert len(found) == 2
    assert smallest.holm_p == pytest.approx(2 * smallest.found.p)


def test_wins_ties_losses():
    rows = {tuple(row[:2]): row[2:] for row in rows_of(wins_table(HAND_MADE))}
    assert rows["NodeJEPA", "DGI"] == ["1 / 0 / 0", "1 / 0 / 0", "-", "3 / 1 / 1"]
    assert rows["NodeJEPA", "Propagated (S^2 X)"] == ["0 / 1 / 0", "0 / 1 / 0", "-", "-"]
    assert rows["NodeJEPA", "all floors"] == ["0 / 1 / 0", "0 / 1 / 0", "-", "-"]
    assert rows["NodeJEPA", "Random GCN"] == ["-", "-", "-", "-"]


def test_fewshot_table_compares_under_the_papers_probe():
    records = [
        record("nodejepa", "photo", 42, 85.0, shots=5, split="5-30", test_accuracy_paper_probe=84.0),
        record("raw", "photo", 42, 86.0, shots=5, split="5-30", test_accuracy_paper_probe=60.0),
        record("nodejepa", "photo", 42, 89.0, shots=20, test_accuracy_paper_probe=88.0),
    ]
    table = fewshot_table(records)
    assert rows_of(table)[0] == [
        "Photo",
        "NodeJEPA",
        *("83.99 ± 3.02", "84.00 (1)", "+0.01", "85.00 (1)†"),
        *("87.97 ± 0.84", "88.00 (1)", "+0.03", "89.00 (1)"),
    ]
    assert [column.title for column in table.columns[2:6]] == [
        "5 a class: paper",
        "5 a class: ours, paper probe",
        "5 a class: diff.",
        "5 a class: ours, fair probe",
    ]


def test_graphs_that_the_paper_does_not_have_are_shown_under_the_fair_probe_alone():
    records = [
        record("raw", "actor", 42, value, shots=shots, split=f"{shots}-30", test_accuracy_paper_probe=20.0)
        for shots, value in ((5, 24.0), (20, 30.0))
    ]
    table = fewshot_table(records)
    assert [column.title for column in table.columns] == ["Dataset", "Method", "5 a class", "20 a class"]
    assert rows_of(table)[0] == ["actor", "Raw features", "24.00 (1)", "30.00 (1)"]
    assert not any("paper" in note.lower() for note in table.notes)


def test_ablation_table_knows_letters_and_borrows_floors():
    main = [*both_probes("sgc", (91.0, 91.0, 91.0), (85.0, 85.0, 85.0)), record("sgc", "cs", 42, 99.0)]
    varied = [
        *both_probes("nodejepa", (88.0, 89.0), (86.0, 87.0), variant="A: full"),
        *both_probes("nodejepa", (84.0, 86.0), (86.0, 88.0), variant="D"),
        *both_probes("nodejepa", (80.0, 80.0), (70.0, 71.0), variant="G: no prediction"),
    ]
    rows = rows_of(ablation_table(borrow_floors(varied, main)))
    none = ["-", "-", "-"]
    assert rows[0] == [
        *("Photo", "A: full", "87.87 ± 0.69", "86.50 ± 0.71 (2)", "-1.37", "-"),
        *(*none, "88.50 ± 0.71 (2)†", *none),
    ]
    assert rows[1][1:7] == ["D: no VICReg", "84.61 ± 1.67", "87.00 ± 1.41 (2)", "+2.39", "-3.26", "+0.50"]
    assert rows[1][9:11] == ["85.00 ± 1.41 (2)†", "-3.50"]
    assert rows[2][1:6] == ["G: no prediction", "-", "70.50 ± 0.71 (2)†", "-", "-"]
    assert rows[4][1:] == [
        *("Propagated (S^2 X)", "-", "85.00 ± 0.00 (2)", "-", "-"),
        *(*none, "91.00 ± 0.00 (2)", *none),
    ]
    p, holm = float(rows[2][11]), float(rows[2][12])
    assert holm == pytest.approx(2 * p, abs=2e-4)  # of two tests


def test_the_share_of_prediction_is_shown_where_records_tell_it():
    shares = {"1": 0.5, "10": 0.25, "100": 0.125, "300": 0.0625}
    told = record("nodejepa", "photo", 42, 88.0, variant="A: full", prediction_share=shares)
    older = record("nodejepa", "photo", 42, 88.0, variant="D")
    assert [table.name for table in tables_of("ablation", [older])] == ["ablation"]
    table = tables_of("ablation", [told, older])[1]
    assert table.name == "prediction-share"
    assert rows_of(table) == [
        ["Photo", "A: full", "50.00 (1)", "25.00 (1)", "12.50 (1)", "6.25 (1)"],
        ["Photo", "D: no VICReg", "-", "-", "-", "-"],
    ]
    short = {**told, "prediction_share": {"1": 0.5, "20": 0.4}}
    assert rows_of(tables_of("ablation", [short])[1])[0][2:] == ["50.00 (1)", "-", "-", "40.00 (1)"]
    main = [record("raw", "photo", 42, 70.0), {**told, "variant": None}, record("nodejepa", "cs", 42, 80.0)]
    found = {table.name: table for table in tables_of("main", main)}
    assert rows_of(found["prediction-share"]) == [
        ["Photo", "NodeJEPA", "50.00 (1)", "25.00 (1)", "12.50 (1)", "6.25 (1)"]
    ]
    assert "prediction-share" not in {table.name for table in tables_of("main", main[::2])}


def test_epochs_before_and_after_the_jump():
    curve = [1.0] * 23 + [2.0] + [5.0] * 35  # epochs 2 to 60; the 26th is the first with two hops
    timed = [
        record("nodejepa", "photo", 42, epochs=300, seconds_by_epoch=curve, total_seconds=1400.0),
        record(
            "nodejepa", "photo", 43, epochs=300, seconds_by_epoch=[3 * s for s in curve], total_seconds=4200.0
        ),
    ]
    assert [table.name for table in tables_of("efficiency", timed)] == ["efficiency", "epoch-time"]
    (row,) = rows_of(tables_of("efficiency", timed)[1])
    assert row == [
        *("Photo", "NodeJEPA", "2.000 ± 1.414 (2)", "1.000 to 6.000"),
        *("10.000 ± 7.071 (2)", "5.000 to 15.000", "5.00"),
        *("52.0 ± 36.8 (2)", "2,748.0 ± 1943.1 (2)", "2,800.0 ± 1979.9 (2)"),
    ]
    early = {"masking": {"hops_start": 1, "hops": 3, "curriculum_epochs": 4}}
    other = record(
        "nodejepa", "photo", 42, seconds_by_epoch=[1.0, 2.0, 3.0, 9.0, 9.0], total_seconds=30.0, config=early
    )
    (row,) = rows_of(tables_of("efficiency", [other])[1])
    assert row[2:6] == ["1.500 (1)", "1.000 to 2.000", "9.000 (1)", "3.000 to 9.000"]
    assert [t.name for t in tables_of("efficiency", [record("nodejepa", "photo", 42)])] == ["efficiency"]


def test_floors_are_not_borrowed_where_there_are_own_ones():
    own = [record("raw", "photo", 42, 70.0)]
    assert borrow_floors(own, [record("sgc", "photo", 42, 91.0)]) == own


def test_finetune_table_gives_the_worth_of_pretraining():
    records = [
        record("nodejepa", "photo", s, 88.0, finetune_test_accuracy=f, scratch_test_accuracy=g)
        for s, f, g in ((42, 90.0, 88.0), (43, 91.0, 88.0))
    ] + [record("raw", "photo", 42, 75.0)]
    rows = rows_of(finetune_table(records))
    assert rows[0][:6] == [
        "Photo",
        "NodeJEPA",
        "88.00 ± 0.00 (2)",
        "90.50 ± 0.71 (2)",
        "88.00 ± 0.00 (2)",
        "+2.50",
    ]
    assert rows[1] == ["Photo", "Raw features", "75.00 (1)", "-", "-", "-", "-", "-"]


@pytest.mark.parametrize("kind", ["main", "fewshot", "ablation", "collapse", "efficiency", "finetune"])
def test_order_of_records_does_not_matter(kind):
    records = made_up(kind, ("photo", "physics"), 3)
    main = made_up("main", ("photo", "physics"), 3)
    written = [to_markdown(t) + to_latex(t) + to_csv(t) for t in tables_of(kind, records, main)]
    random.Random(1).shuffle(records)
    random.Random(2).shuffle(main)
    assert [to_markdown(t) + to_latex(t) + to_csv(t) for t in tables_of(kind, records, main)] == written
    assert written


@pytest.mark.parametrize("kind", ["main", "fewshot", "ablation", "collapse", "efficiency", "finetune"])
def test_tables_name_probe_and_seeds_and_show_floors(kind):
    for table in tables_of(kind, made_up(kind, ("photo",), 2)):
        words = " ".join((table.title, *table.notes)).lower()
        assert "probe" in words
        assert "seeds" in words
        if kind != "efficiency" and table.name not in ("wins", "prediction-share"):
            assert any("Propagated (S^2 X)" in (row[0].text, row[1].text) for row in table.rows)


@pytest.mark.parametrize("kind", ["main", "fewshot", "ablation", "collapse", "efficiency", "finetune"])
def test_a_study_without_any_score_still_has_tables(kind):
    records = [
        {k: r[k] for k in ("study", "method", "preset", "variant", "dataset", "split", "seed", "shots")}
        | {"status": "not run", "reason": None}
        for r in made_up(kind, ("photo",), 1)
    ]
    for table in tables_of(kind, records):
        assert "nan" not in to_markdown(table).lower()
        assert table.rows
        assert to_csv(table).count("\n") == len(table.rows) + 1


def test_latex_and_markdown_escape_what_records_say():
    nasty = record("a_b & <c>|*", "50%_{x}", 42, 80.0) | {"preset": "default"}
    failed = record("a_b & <c>|*", "50%_{x}", 43, status="failed", reason=r"C:\tmp $HOME #1 ~^ [x](y)")
    table = main_table([nasty, failed])
    assert r"a\_b \& \textless{}c\textgreater{}|*" in to_latex(table)
    assert r"50\%\_\{x\}" in to_latex(table)
    assert r"C:\textbackslash{}tmp \$HOME \#1 \textasciitilde{}\textasciicircum{}" in to_latex(table)
    assert r"| a\_b & \<c\>\|\* | **80.00 (1)** |" in to_markdown(table)
    assert r"\[x\](y)" in to_markdown(table)
    assert escape_latex("a\nb") == "a b"


def test_numbers_in_cells():
    assert TableCell.number(-0.004, signed=True).text == "-0.00"
    assert TableCell.number(1234.5, decimals=1).text == "1,234.5"
    assert TableCell.number(None).text == "-"
    assert TableCell.p(0.00001).text == "< 0.0001"
    assert TableCell.p(0.04999).bold
    assert not TableCell.p(0.05).bold
    assert TableCell.score(Summary(80.0, None, 1)).values == ("80", "", "1")
    minus = ReportTable(
        "t",
        "T",
        (Column.name("a"), Column.name("b")),
        (((TableCell.number(-1.5), TableCell.name("3-5")),),),
        (),
    )
    assert "$-$1.50 & 3-5" in to_latex(minus)


def test_a_table_refuses_rows_that_do_not_fit():
    with pytest.raises(ValueError, match="does not fit"):
        ReportTable("t", "T", (Column.name("a"),), (((TableCell.name("x"), TableCell.name("y")),),), ())


def test_values_that_are_no_numbers_are_missing():
    records = [record("raw", "photo", 42, value) for value in (None, float("nan"), "88", True)]
    assert all(rows_of(main_table([one]))[0][1] == "-" for one in records)


def test_presets_and_splits_stand_apart():
    records = [
        record("dgi", "photo", 42, 80.0),
        record("dgi", "photo", 42, 85.0) | {"preset": "official"},
        record("bgrl", "photo", 42, 86.0) | {"preset": "official"},
        record("dgi", "photo", 42, 90.0) | {"split": "random-10-10-80"},
    ]
    renamed = [r["method"] for r in with_preset_names(records)]
    assert renamed == ["dgi", "dgi (official)", "bgrl (official)", "dgi"]
    assert with_preset_names([{**records[0], "preset": "default"}])[0]["method"] == "dgi"
    assert sorted(by_split(records)) == ["", "random-10-10-80"]
    tables = {table.name: table for table in tables_of("main", records)}
    assert rows_of(tables["main"])[:3] == [
        ["DGI", "80.00 (1)"],
        ["BGRL (official)", "86.00 (1)"],
        ["DGI (official)", "85.00 (1)"],
    ]
    assert rows_of(tables["main-random-10-10-80"])[0] == ["DGI", "90.00 (1)"]
    assert "main-paper-probe-random-10-10-80" not in tables


def test_other_splits_do_not_stand_beside_the_papers_figures():
    records = [
        record(method, "photo", seed, 80.0 + seed) | {"split": "random-10-10-80"}
        for method in ("nodejepa", "dgi")
        for seed in (42, 43)
    ]
    tables = {table.name: table for table in tables_of("main", records)}
    assert "main-paper-probe" not in tables
    assert tables["main"].title == "Test accuracy (%) under the fair probe, split random-10-10-80"
    assert all(row[-2:] == ["-", "-"] for row in rows_of(tables["significance-nodejepa"]))
    assert all(row[-1] == "-" for row in rows_of(tables["wins"]))
    assert all(row[2] == "-" for row in rows_of(tables["ranks"]))


def test_kind_of_a_study():
    probe = [record("dgi", "photo", 42, 80.0) | {"study": "mine"}]
    assert study_kind(probe, "main-quick") == "main"
    assert study_kind([{**probe[0], "study": "collapse"}], "elsewhere") == "collapse"
    assert study_kind(probe, "mine") == "main"
    assert study_kind([{**probe[0], "kind": "finetune"}], "mine") == "finetune"
    assert study_kind([{**probe[0], "variant": "B"}], "mine") == "ablation"
    assert study_kind([*probe, {**probe[0], "shots": 5}], "mine") == "fewshot"


def test_long_reasons_are_cut():
    (note,) = unfinished_notes([record("dgi", "photo", 42, status="failed", reason="x" * 500)])
    assert len(note) < 220
    assert "…" in note
