"""Accuracy with few labels per class, ours beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence

from nodejepa.report.summary import Summary
from nodejepa.report.table import ReportTable, Row, score_cell, score_column
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
from nodejepa.study.render.tables.columns import NAMES, beside_paper_cells, name_cells, under_both_probes
from nodejepa.study.render.tables.marks import best_of, floor_mark, floors_to_beat
from nodejepa.study.render.tables.wording import (
    DAGGER_NOTE,
    FAIR_PROBE,
    FLOORS_NOTE,
    LIKE_WITH_LIKE,
    MOST_SEEDS,
    PAPER_PROBE,
    SEEDS,
)

Place = tuple[str, str, int]  # method, dataset, labels per class

_SUPERVISED = (
    "The paper's supervised GCN must have seen more labels than the probe. Ours learns from the labels of "
    "its row only; validation labels (30 a class) tell it when to stop, as they choose scaling and C of "
    "every fair probe."
)


def fewshot_values(records: Sequence[Record], field: str = "test_accuracy") -> dict[Place, Values]:
    """Accuracies by method, graph and labels per class."""
    shots = [record for record in records if record.get("shots") is not None]
    return values_by(shots, field, lambda r: (str(r["method"]), str(r["dataset"]), int(r["shots"])))


def fewshot_table(records: Sequence[Record]) -> ReportTable:
    """For each graph and method: paper and ours under both probes at every number of labels.

    Graphs that the paper does not have are shown under the fair probe alone.
    """
    fair, like = (fewshot_values(records, field) for field in ("test_accuracy", "test_accuracy_paper_probe"))
    budgets = sorted({int(record["shots"]) for record in records if record.get("shots") is not None})
    methods, datasets = methods_of(records), datasets_of(records)
    comparable = any(paper_fewshot(m, d, k) for m in methods for d in datasets for k in budgets)
    probes = "both probes" if comparable else "the fair probe"
    titles = [f"{shots} a class" for shots in budgets]
    columns = [
        *NAMES,
        *(c for title in titles for c in (under_both_probes(title) if comparable else [score_column(title)])),
    ]

    def row(method: str, dataset: str) -> Row:
        cells = [*name_cells(dataset, method)]
        for shots in budgets:
            if comparable:
                ours, best, mark = _at(like, method, dataset, shots)
                cells += beside_paper_cells(ours, paper_fewshot(method, dataset, shots), best=best, mark=mark)
            ours, best, mark = _at(fair, method, dataset, shots)
            cells.append(score_cell(ours, best=best, mark=mark))
        return tuple(cells)

    return ReportTable(
        "fewshot",
        f"Test accuracy (%) with few labels per class under {probes}",
        tuple(columns),
        tuple(tuple(row(method, dataset) for method in methods) for dataset in datasets),
        (
            *([f"Paper: {paper_source('fewshot')}. {LIKE_WITH_LIKE}", PAPER_PROBE] if comparable else []),
            *([_SUPERVISED] if "supervised-gcn" in methods else []),
            FAIR_PROBE,
            SEEDS,
            f"Bold: our best on that graph with that many labels, floors included; {MOST_SEEDS}",
            DAGGER_NOTE,
            FLOORS_NOTE,
            *unfinished_notes(records),
        ),
    )


def _at(
    values: dict[Place, Values], method: str, dataset: str, shots: int
) -> tuple[Summary | None, Summary | None, str]:
    """Ours, the best of all methods, and the mark of a method that is not above the floors."""
    here = {(m, d): found for (m, d, k), found in values.items() if d == dataset and k == shots}
    scores = summaries(here)
    mark = floor_mark(here.get((method, dataset)), floors_to_beat(here, method, dataset))
    return scores.get((method, dataset)), best_of(scores.values()), mark
