"""Table 1: accuracy of every method on every graph, ours alone and beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence

from nodejepa.report.summary import summarise
from nodejepa.report.table import (
    Column,
    ReportTable,
    Row,
    difference_cell,
    mean_column,
    score_cell,
    score_column,
    text_cell,
    text_column,
)
from nodejepa.study.render.names import FLOORS, dataset_name, method_name
from nodejepa.study.render.paper import paper_accuracy, paper_source
from nodejepa.study.render.selection import (
    Record,
    Values,
    by_method_and_dataset,
    datasets_of,
    methods_of,
    summaries,
    unfinished_notes,
    values_by,
)
from nodejepa.study.render.tables.columns import NAMES, beside_paper_cells, name_cells
from nodejepa.study.render.tables.marks import best_of, floor_mark, floors_to_beat
from nodejepa.study.render.tables.wording import (
    BOLD,
    DAGGER_NOTE,
    FAIR_PROBE,
    FLOORS_NOTE,
    MOST_SEEDS,
    PAPER_PROBE,
    PAPER_STD,
    SEEDS,
)


def main_table(records: Sequence[Record]) -> ReportTable:
    """Methods down, graphs across, under the fair probe."""
    values, head_values = (
        values_by(records, field, by_method_and_dataset) for field in ("test_accuracy", "head_test_accuracy")
    )
    scores, heads = summaries(values), summaries(head_values)
    datasets = datasets_of(records)
    best = {
        d: best_of(s for place, s in (*scores.items(), *heads.items()) if place[1] == d) for d in datasets
    }

    def row(label: str, found: dict[tuple[str, str], Values], method: str) -> Row:
        cells = []
        for dataset in datasets:
            mine = found.get((method, dataset), {})
            mark = floor_mark(mine, floors_to_beat(values, method, dataset))
            cells.append(score_cell(summarise([*mine.values()]), best=best[dataset], mark=mark))
        return (text_cell(label), *cells)

    trained: list[Row] = []
    floors: list[Row] = []
    for method in methods_of(records):
        (floors if method in FLOORS else trained).append(row(method_name(method), values, method))
        if any(owner == method for owner, _ in heads):
            trained.append(row(f"{method_name(method)}, own head", head_values, method))
    notes = [FAIR_PROBE, SEEDS, BOLD, DAGGER_NOTE, FLOORS_NOTE]
    if heads:
        notes.append("Own head: the classifier that was trained with the encoder, without a probe.")
    return ReportTable(
        "main",
        "Test accuracy (%) under the fair probe",
        (text_column("Method"), *(score_column(dataset_name(d)) for d in datasets)),
        (tuple(trained), tuple(floors)),
        (*notes, *unfinished_notes(records)),
    )


def paper_comparison_table(records: Sequence[Record]) -> ReportTable:
    """The paper's Table 1 beside ours under its probe, and under the fair one."""
    both = [
        values_by(records, field, by_method_and_dataset)
        for field in ("test_accuracy_paper_probe", "test_accuracy")
    ]
    scores, fair = map(summaries, both)
    groups = []
    for dataset in datasets_of(records):
        best, best_fair = (
            best_of(s for (_, d), s in found.items() if d == dataset) for found in (scores, fair)
        )
        rows: list[Row] = []
        for method in methods_of(records):
            printed = paper_accuracy(method, dataset)
            ours, ours_fair = scores.get((method, dataset)), fair.get((method, dataset))
            mark, mark_fair = (
                floor_mark(values.get((method, dataset)), floors_to_beat(values, method, dataset))
                for values in both
            )
            rows.append(
                (
                    *name_cells(dataset, method),
                    *beside_paper_cells(ours, printed, best=best, mark=mark),
                    score_cell(ours_fair, best=best_fair, mark=mark_fair),
                    difference_cell(ours_fair, printed),
                )
            )
        groups.append(tuple(rows))
    columns = (
        *NAMES,
        mean_column("Paper"),
        score_column("Ours, paper probe"),
        Column("Difference"),
        score_column("Ours, fair probe"),
        Column("Difference (fair)"),
    )
    return ReportTable(
        "main-paper-probe",
        "Test accuracy (%): paper, ours and the difference",
        columns,
        tuple(groups),
        (
            f"Paper: {paper_source('main')}, 5 seeds. {PAPER_STD}",
            PAPER_PROBE,
            FAIR_PROBE,
            SEEDS,
            f"Bold: our best on that graph, floors included; {MOST_SEEDS}",
            DAGGER_NOTE,
            *unfinished_notes(records),
        ),
    )
