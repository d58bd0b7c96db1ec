"""Table 1: accuracy of every method on every graph, ours alone and beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence

from nodejepa.study.names import FLOORS, dataset_name, method_name
from nodejepa.study.paper import paper_accuracy, paper_source
from nodejepa.study.selection import (
    Record,
    best_floor,
    by_method_and_dataset,
    datasets_of,
    methods_of,
    scores_by,
    unfinished_notes,
)
from nodejepa.study.statistics import Summary
from nodejepa.study.table import (
    Column,
    Row,
    Table,
    best_mean,
    difference_cell,
    floor_mark,
    paper_cell,
    paper_column,
    score_cell,
    score_column,
    text_cell,
    text_column,
)
from nodejepa.study.tables.wording import (
    BOLD,
    DAGGER_NOTE,
    FAIR_PROBE,
    FLOORS_NOTE,
    PAPER_PROBE,
    PAPER_STD,
    SEEDS,
)

Scores = dict[tuple[str, str], Summary]


def floor_to_beat(scores: Scores, method: str, dataset: str) -> float | None:
    """The best floor; floors themselves have none to beat."""
    return None if method in FLOORS else best_floor(scores, dataset)


def main_table(records: Sequence[Record]) -> Table:
    """Methods down, graphs across, under the fair probe."""
    scores = scores_by(records, "test_accuracy", by_method_and_dataset)
    heads = scores_by(records, "head_test_accuracy", by_method_and_dataset)
    datasets = datasets_of(records)
    best = {
        d: best_mean([s for place, s in (*scores.items(), *heads.items()) if place[1] == d]) for d in datasets
    }

    def row(label: str, found: Scores, method: str) -> Row:
        cells = []
        for dataset in datasets:
            score = found.get((method, dataset))
            mark = floor_mark(score, floor_to_beat(scores, method, dataset))
            cells.append(score_cell(score, best=best[dataset], mark=mark))
        return (text_cell(label), *cells)

    trained: list[Row] = []
    floors: list[Row] = []
    for method in methods_of(records):
        (floors if method in FLOORS else trained).append(row(method_name(method), scores, method))
        if any(owner == method for owner, _ in heads):
            trained.append(row(f"{method_name(method)}, own head", heads, method))
    notes = [FAIR_PROBE, SEEDS, BOLD, DAGGER_NOTE, FLOORS_NOTE]
    if heads:
        notes.append("Own head: the classifier that was trained with the encoder, without a probe.")
    return Table(
        "main",
        "Test accuracy (%) under the fair probe",
        (text_column("Method"), *(score_column(dataset_name(d)) for d in datasets)),
        (tuple(trained), tuple(floors)),
        (*notes, *unfinished_notes(records)),
    )


def paper_comparison_table(records: Sequence[Record]) -> Table:
    """The paper's Table 1 beside ours under its probe, and under the fair one."""
    scores = scores_by(records, "test_accuracy_paper_probe", by_method_and_dataset)
    fair = scores_by(records, "test_accuracy", by_method_and_dataset)
    groups = []
    for dataset in datasets_of(records):
        best, best_fair = (
            best_mean([s for (_, d), s in found.items() if d == dataset]) for found in (scores, fair)
        )
        rows: list[Row] = []
        for method in methods_of(records):
            printed = paper_accuracy(method, dataset)
            ours, ours_fair = scores.get((method, dataset)), fair.get((method, dataset))
            mark, mark_fair = (
                floor_mark(score, floor_to_beat(found, method, dataset))
                for score, found in ((ours, scores), (ours_fair, fair))
            )
            rows.append(
                (
                    text_cell(dataset_name(dataset)),
                    text_cell(method_name(method)),
                    paper_cell(printed),
                    score_cell(ours, best=best, mark=mark),
                    difference_cell(ours, printed),
                    score_cell(ours_fair, best=best_fair, mark=mark_fair),
                    difference_cell(ours_fair, printed),
                )
            )
        groups.append(tuple(rows))
    columns: tuple[Column, ...] = (
        text_column("Dataset"),
        text_column("Method"),
        paper_column(),
        score_column("Ours, paper probe"),
        Column("Difference"),
        score_column("Ours, fair probe"),
        Column("Difference (fair)"),
    )
    return Table(
        "main-paper-probe",
        "Test accuracy (%): paper, ours and the difference",
        columns,
        tuple(groups),
        (
            f"Paper: {paper_source('main')}, 5 seeds. {PAPER_STD}",
            PAPER_PROBE,
            FAIR_PROBE,
            SEEDS,
            "Bold: our best on that graph, floors included.",
            DAGGER_NOTE,
            *unfinished_notes(records),
        ),
    )
