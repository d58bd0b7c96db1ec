"""Accuracy with few labels per class, ours beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence

from nodejepa.study.names import dataset_name, method_name
from nodejepa.study.paper import paper_fewshot, paper_source
from nodejepa.study.selection import Record, datasets_of, methods_of, scores_by, unfinished_notes
from nodejepa.study.statistics import Summary
from nodejepa.study.table import (
    Cell,
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
from nodejepa.study.tables.accuracy import floor_to_beat
from nodejepa.study.tables.wording import DAGGER_NOTE, FAIR_PROBE, FLOORS_NOTE, SEEDS

Place = tuple[str, str, int]  # method, dataset, labels per class


def fewshot_scores(records: Sequence[Record]) -> dict[Place, Summary]:
    """Scores by method, graph and labels per class."""
    shots = [record for record in records if record.get("shots") is not None]
    return scores_by(shots, "test_accuracy", lambda r: (str(r["method"]), str(r["dataset"]), int(r["shots"])))


def fewshot_table(records: Sequence[Record]) -> Table:
    """For each graph and method: paper, ours and the difference at every number of labels."""
    scores = fewshot_scores(records)
    budgets = sorted({int(record["shots"]) for record in records if record.get("shots") is not None})
    columns: list[Column] = [text_column("Dataset"), text_column("Method")]
    for shots in budgets:
        label = f"{shots} a class"
        columns += [
            paper_column(f"{label}: paper"),
            score_column(f"{label}: ours"),
            Column(f"{label}: diff."),
        ]
    groups = [
        tuple(_row(scores, method, dataset, budgets) for method in methods_of(records))
        for dataset in datasets_of(records)
    ]
    return Table(
        "fewshot",
        "Test accuracy (%) with few labels per class under the fair probe",
        tuple(columns),
        tuple(groups),
        (
            f"Paper: {paper_source('fewshot')}, under its own probe; its supervised GCN must have seen more "
            "labels than the probe. Ours sees only the labels of its row.",
            FAIR_PROBE,
            SEEDS,
            "Bold: our best on that graph with that many labels, floors included.",
            DAGGER_NOTE,
            FLOORS_NOTE,
            *unfinished_notes(records),
        ),
    )


def _row(scores: dict[Place, Summary], method: str, dataset: str, budgets: Sequence[int]) -> Row:
    cells: list[Cell] = [text_cell(dataset_name(dataset)), text_cell(method_name(method))]
    for shots in budgets:
        here = {(m, d): score for (m, d, k), score in scores.items() if d == dataset and k == shots}
        ours, printed = here.get((method, dataset)), paper_fewshot(method, dataset, shots)
        mark = floor_mark(ours, floor_to_beat(here, method, dataset))
        cells += [
            paper_cell(printed),
            score_cell(ours, best=best_mean([*here.values()]), mark=mark),
            difference_cell(ours, printed),
        ]
    return tuple(cells)
