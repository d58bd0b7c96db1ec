"""Accuracy with few labels per class, ours beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence

from nodejepa.report.table import ReportTable, Row
from nodejepa.study.render.paper import paper_fewshot, paper_source
from nodejepa.study.render.selection import (
    Record,
    Values,
    datasets_of,
    methods_of,
    summaries,
    unfinished_notes,
    values_by,
)
from nodejepa.study.render.tables.columns import NAMES, beside_paper, beside_paper_cells, name_cells
from nodejepa.study.render.tables.marks import best_of, floor_mark, floors_to_beat
from nodejepa.study.render.tables.wording import DAGGER_NOTE, FAIR_PROBE, FLOORS_NOTE, MOST_SEEDS, SEEDS

Place = tuple[str, str, int]  # method, dataset, labels per class


def fewshot_values(records: Sequence[Record]) -> dict[Place, Values]:
    """Accuracies by method, graph and labels per class."""
    shots = [record for record in records if record.get("shots") is not None]
    return values_by(shots, "test_accuracy", lambda r: (str(r["method"]), str(r["dataset"]), int(r["shots"])))


def fewshot_table(records: Sequence[Record]) -> ReportTable:
    """For each graph and method: paper, ours and the difference at every number of labels."""
    values = fewshot_values(records)
    budgets = sorted({int(record["shots"]) for record in records if record.get("shots") is not None})
    columns = [*NAMES, *(column for shots in budgets for column in beside_paper(f"{shots} a class"))]
    groups = [
        tuple(_row(values, method, dataset, budgets) for method in methods_of(records))
        for dataset in datasets_of(records)
    ]
    return ReportTable(
        "fewshot",
        "Test accuracy (%) with few labels per class under the fair probe",
        tuple(columns),
        tuple(groups),
        (
            f"Paper: {paper_source('fewshot')}, under its own probe; its supervised GCN must have seen more "
            "labels than the probe. Ours learns from the labels of its row only; validation labels "
            "(30 a class) tell it when to stop, as they choose scaling and C of every probe.",
            FAIR_PROBE,
            SEEDS,
            f"Bold: our best on that graph with that many labels, floors included; {MOST_SEEDS}",
            DAGGER_NOTE,
            FLOORS_NOTE,
            *unfinished_notes(records),
        ),
    )


def _row(values: dict[Place, Values], method: str, dataset: str, budgets: Sequence[int]) -> Row:
    cells = [*name_cells(dataset, method)]
    for shots in budgets:
        here = {(m, d): found for (m, d, k), found in values.items() if d == dataset and k == shots}
        scores = summaries(here)
        ours, printed = scores.get((method, dataset)), paper_fewshot(method, dataset, shots)
        mark = floor_mark(here.get((method, dataset)), floors_to_beat(here, method, dataset))
        cells += beside_paper_cells(ours, printed, best=best_of(scores.values()), mark=mark)
    return tuple(cells)
