"""How much of their space the embeddings use: the paper's two tables on collapse, ours beside them."""

from collections.abc import Sequence
from functools import partial

from nodejepa.diagnostics import MAX_DIMENSIONS
from nodejepa.report.table import Column, ReportTable, Row, TableCell
from studies.render.paper import dataset_name, method_name, paper_geometry, paper_source
from studies.render.selection import Record, datasets_of, methods_of, scores_of, unfinished_notes
from studies.render.tables.shared import Cells, Note, best_on, by_graph, score_cell

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
    scores = scores_of(records, "effective_rank")
    datasets = datasets_of(records)
    columns = [Column.name("Method")]
    for title in map(dataset_name, datasets):
        columns += [Column.mean(f"{title}: paper"), Column.score(f"{title}: ours"), Column(f"{title}: diff.")]

    def cells(method: str, dataset: str) -> Row:
        ours, printed = scores.get((method, dataset)), paper_geometry("effective_rank", method, dataset)
        return (
            TableCell.mean(printed, decimals=1),
            TableCell.score(ours, decimals=1, best=best_on(dataset, scores)),
            TableCell.difference(ours, printed, decimals=1),
        )

    rows = tuple(
        (
            TableCell.name(method_name(method)),
            *(cell for dataset in datasets for cell in cells(method, dataset)),
        )
        for method in methods_of(records)
    )
    return ReportTable(
        "collapse",
        "Effective rank of frozen embeddings (no probe)",
        tuple(columns),
        (rows,),
        (
            f"Paper: {paper_source('collapse')}.",
            _NO_PROBE,
            Note.SEEDS,
            f"Bold: our highest on that graph, floors included; {Note.MOST_SEEDS} {_HIGH_IS_NOT_GOOD}",
            Note.FLOORS,
            *_wide_note(records),
            *unfinished_notes(records),
        ),
    )


def geometry_table(records: Sequence[Record]) -> ReportTable:
    """Effective rank, mean standard deviation and both participation ratios."""
    cells: Cells = {}
    for field, title, printed, decimals in _FIELDS:
        if printed:
            cells[Column.mean(f"{title}: paper")] = partial(_printed, printed, decimals)
        ours = Column.score(f"{title}: ours" if printed else title)
        cells[ours] = score_cell(scores_of(records, field), decimals)
    return by_graph(
        "collapse-full",
        "Geometry of frozen embeddings (no probe)",
        records,
        cells,
        (
            f"Paper: {paper_source('collapse_full')}; effective ranks without a spread from "
            f"{paper_source('collapse')}.",
            "The paper's participation ratios fit second moments that are not centred; ours stand both ways.",
            _NO_PROBE,
            Note.SEEDS,
            _HIGH_IS_NOT_GOOD,
            Note.FLOORS,
            *_wide_note(records),
            *unfinished_notes(records),
        ),
    )


def _printed(field: str, decimals: int, method: str, dataset: str) -> TableCell:
    return TableCell.mean(paper_geometry(field, method, dataset), decimals=decimals)


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
