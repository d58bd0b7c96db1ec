"""How much of their space the embeddings use: the paper's two tables on collapse, ours beside them."""

from __future__ import annotations

from collections.abc import Sequence

from nodejepa.diagnostics import MAX_DIMENSIONS
from nodejepa.report.table import (
    ReportTable,
    Row,
    mean_cell,
    mean_column,
    score_cell,
    score_column,
    text_cell,
    text_column,
)
from nodejepa.study.render.names import dataset_name, method_name
from nodejepa.study.render.paper import paper_geometry, paper_source
from nodejepa.study.render.selection import (
    Record,
    by_method_and_dataset,
    datasets_of,
    methods_of,
    scores_by,
    unfinished_notes,
)
from nodejepa.study.render.tables.columns import NAMES, beside_paper, beside_paper_cells, name_cells
from nodejepa.study.render.tables.marks import best_of
from nodejepa.study.render.tables.wording import FLOORS_NOTE, MOST_SEEDS, SEEDS

_NO_PROBE = "No probe: measured on the frozen embeddings of all nodes, without any label."
_HIGH_IS_NOT_GOOD = "A high effective rank means less collapse, not more accuracy."

# our field, its heading, the paper's field, digits
_FIELDS = (
    ("effective_rank", "Effective rank", "effective_rank", 1),
    ("mean_std", "Mean std", "mean_std", 3),
    ("participation_ratio_uncentred", "Participation ratio, uncentred", "participation_ratio", 2),
    ("participation_ratio", "Participation ratio, centred", None, 2),
)


def effective_rank_table(records: Sequence[Record]) -> ReportTable:
    """Methods down, graphs across: paper, ours, difference."""
    scores = scores_by(records, "effective_rank", by_method_and_dataset)
    datasets = datasets_of(records)
    columns = [text_column("Method"), *(c for name in datasets for c in beside_paper(dataset_name(name)))]
    rows: list[Row] = []
    for method in methods_of(records):
        cells = [text_cell(method_name(method))]
        for dataset in datasets:
            ours, printed = scores.get((method, dataset)), paper_geometry("effective_rank", method, dataset)
            best = best_of(score for (_, d), score in scores.items() if d == dataset)
            cells += beside_paper_cells(ours, printed, best=best, decimals=1)
        rows.append(tuple(cells))
    return ReportTable(
        "collapse",
        "Effective rank of frozen embeddings (no probe)",
        tuple(columns),
        (tuple(rows),),
        (
            f"Paper: {paper_source('collapse')}.",
            _NO_PROBE,
            SEEDS,
            f"Bold: our highest on that graph, floors included; {MOST_SEEDS} {_HIGH_IS_NOT_GOOD}",
            FLOORS_NOTE,
            *_wide_note(records),
            *unfinished_notes(records),
        ),
    )


def geometry_table(records: Sequence[Record]) -> ReportTable:
    """Effective rank, mean standard deviation and both participation ratios."""
    found = {field: scores_by(records, field, by_method_and_dataset) for field, *_ in _FIELDS}
    columns = [*NAMES]
    for _, title, printed_field, _ in _FIELDS:
        columns += [mean_column(f"{title}: paper")] if printed_field else []
        columns.append(score_column(f"{title}: ours" if printed_field else title))
    groups = []
    for dataset in datasets_of(records):
        rows: list[Row] = []
        for method in methods_of(records):
            cells = [*name_cells(dataset, method)]
            for field, _, printed_field, decimals in _FIELDS:
                if printed_field:
                    cells.append(mean_cell(paper_geometry(printed_field, method, dataset), decimals=decimals))
                cells.append(score_cell(found[field].get((method, dataset)), decimals=decimals))
            rows.append(tuple(cells))
        groups.append(tuple(rows))
    return ReportTable(
        "collapse-full",
        "Geometry of frozen embeddings (no probe)",
        tuple(columns),
        tuple(groups),
        (
            f"Paper: {paper_source('collapse_full')}; effective ranks without a spread from "
            f"{paper_source('collapse')}.",
            "The paper's participation ratios fit second moments that are not centred; ours stand both ways.",
            _NO_PROBE,
            SEEDS,
            _HIGH_IS_NOT_GOOD,
            FLOORS_NOTE,
            *_wide_note(records),
            *unfinished_notes(records),
        ),
    )


def _wide_note(records: Sequence[Record]) -> list[str]:
    """Why a floor that was measured has no rank."""
    wide = {
        f"{method_name(r['method'])} on {dataset_name(r['dataset'])}"
        for r in records
        if r.get("status") == "done" and r.get("mean_std") is not None and r.get("effective_rank") is None
    }
    if not wide:
        return []
    return [f"Ranks are not computed above {MAX_DIMENSIONS:,} dimensions: {', '.join(sorted(wide))}."]
