"""Average ranks, ours beside the paper's."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from nodejepa.report.table import (
    MISSING,
    Column,
    ReportTable,
    Row,
    TableCell,
    number_cell,
    text_cell,
    text_column,
)
from nodejepa.study.render.contrasts import rank_methods
from nodejepa.study.render.names import FLOORS, SELF_SUPERVISED, dataset_name, method_name
from nodejepa.study.render.paper import paper_accuracy, paper_average_rank, paper_source
from nodejepa.study.render.selection import Record, methods_of, on_paper_splits
from nodejepa.study.render.statistics import average_ranks
from nodejepa.study.render.tables.wording import FAIR_PROBE


def paper_ranks(datasets: Sequence[str], methods: Collection[str] = SELF_SUPERVISED) -> dict[str, float]:
    """Average ranks of ``methods`` in the paper's Table 1 over the graphs given."""
    tables = []
    for dataset in datasets:
        printed = {name: paper_accuracy(name, dataset) for name in methods}
        means = {name: score.mean for name, score in printed.items() if score is not None}
        if len(means) == len(methods):
            tables.append(means)
    return average_ranks(tables)


def ranks_table(records: Sequence[Record]) -> ReportTable:
    """Rank among self-supervised methods; a second column lets the floors take part."""
    ours = rank_methods(records)
    ours_paper_probe = rank_methods(records, field="test_accuracy_paper_probe")
    floors = [method for method in methods_of(records) if method in FLOORS]
    with_floors = rank_methods(records, (*SELF_SUPERVISED, *floors))
    printed = paper_ranks(ours.datasets, ours.average) if on_paper_splits(records) else {}
    rows: list[Row] = []
    for method in methods_of(records):
        if method not in (*SELF_SUPERVISED, *floors):
            continue
        ranking = with_floors if method in floors else ours
        seeds = [*ranking.seeds.values()] if method in ranking.average else []
        rows.append(
            (
                text_cell(method_name(method)),
                number_cell(paper_average_rank(method), decimals=1),
                number_cell(printed.get(method)),
                *(_rank(found.average, method) for found in (ours, ours_paper_probe, with_floors)),
                text_cell(_span(seeds)),
            )
        )
    split = next((i for i, row in enumerate(rows) if row[0].text == method_name(floors[0])), len(rows))
    where = ", ".join(dataset_name(d) for d in ours.datasets) or "no graph yet"
    return ReportTable(
        "ranks",
        "Average rank among self-supervised methods (1 is best)",
        (
            text_column("Method"),
            Column("Paper"),
            Column("Paper, ranked as ours"),
            Column("Ours, fair probe"),
            Column("Ours, paper probe"),
            Column("Ours, floors included"),
            Column("Seeds a graph"),
        ),
        (tuple(rows[:split]), tuple(rows[split:])),
        (
            f"Ours: {len(ours.average)} methods ranked by their means over the seeds that all of them "
            f"have, on the graphs where there are such seeds ({where}). Ties share their places.",
            f"Paper: {paper_source('main')}, six methods on five graphs; ranked as ours: its accuracies of "
            "the methods and graphs that ours ranks.",
            "Ours, floors included: fair probe, floors ranked with the methods. Last column: how many seeds.",
            FAIR_PROBE,
        ),
    )


def _rank(average: dict[str, float], method: str) -> TableCell:
    rank = average.get(method)
    return number_cell(rank, bold=rank is not None and rank == min(average.values()))


def _span(counts: Sequence[int]) -> str:
    if not counts:
        return MISSING
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low}-{high}"
