"""How much of their space the embeddings use: the paper's two tables on collapse, ours beside them."""

from collections.abc import Sequence
from functools import partial
from statistics import fmean

from nodejepa.diagnostics import MAX_DIMENSIONS
from nodejepa.report.table import MISSING, Column, ReportTable, Row, Summary, TableCell
from studies.render.paper import (
    JEPA,
    dataset_name,
    in_method_order,
    method_name,
    paper_geometry,
    paper_source,
)
from studies.render.selection import (
    Record,
    datasets_of,
    methods_of,
    scores_of,
    summaries,
    unfinished_notes,
    values_by,
)
from studies.render.tables.shared import Cells, Note, best_on, by_graph, score_cell

_NO_PROBE = "No probe: measured on the frozen embeddings of all nodes, without any label."
_BOTH_WAYS = (
    "The paper's numbers fit embeddings that are not centred, as ours beside them; centred ones stand apart. "
    "A dash under a method that was measured: its record is older than this number."
)
_HIGH_IS_NOT_GOOD = "A high effective rank means less collapse, not more accuracy."

# our field, its heading, the paper's field, digits
_FIELDS = (
    ("effective_rank_uncentred", "Effective rank, uncentred", "effective_rank", 1),
    ("effective_rank", "Effective rank, centred", None, 1),
    ("mean_std", "Mean std", "mean_std", 3),
    ("participation_ratio_uncentred", "Participation ratio, uncentred", "participation_ratio", 2),
    ("participation_ratio", "Participation ratio, centred", None, 2),
)


def effective_rank_table(records: Sequence[Record]) -> ReportTable:
    """Methods down, graphs across: paper, ours, difference, and ours of centred embeddings."""
    scores, centred = (scores_of(records, f) for f in ("effective_rank_uncentred", "effective_rank"))
    datasets = datasets_of(records)
    columns = [Column.name("Method")]
    for title in map(dataset_name, datasets):
        columns += [Column.mean(f"{title}: paper"), Column.score(f"{title}: ours"), Column(f"{title}: diff.")]
        columns.append(Column.score(f"{title}: centred"))

    def cells(method: str, dataset: str) -> Row:
        ours, printed = scores.get((method, dataset)), paper_geometry("effective_rank", method, dataset)
        return (
            TableCell.mean(printed, decimals=1),
            TableCell.score(ours, decimals=1, best=best_on(dataset, scores)),
            TableCell.difference(ours, printed, decimals=1),
            TableCell.score(centred.get((method, dataset)), decimals=1),
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
            _BOTH_WAYS,
            _NO_PROBE,
            Note.SEEDS,
            f"Bold: our highest on that graph, floors included; {Note.MOST_SEEDS} {_HIGH_IS_NOT_GOOD}",
            Note.FLOORS,
            *_wide_note(records),
            *unfinished_notes(records),
        ),
    )


def geometry_table(records: Sequence[Record]) -> ReportTable:
    """Mean standard deviation, and effective rank and participation ratio both ways."""
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
            _BOTH_WAYS,
            _NO_PROBE,
            Note.SEEDS,
            _HIGH_IS_NOT_GOOD,
            Note.FLOORS,
            *_wide_note(records),
            *unfinished_notes(records),
        ),
    )


def fingerprint_table(records: Sequence[Record]) -> ReportTable:
    """How far each variant of a method is from the three label-free numbers that the paper prints of it."""
    quantities = [(field, title, printed, d) for field, title, printed, d in _FIELDS if printed]
    values = {
        field: summaries(values_by(records, field, lambda r: (_reading(r), str(r["dataset"]))))
        for field, *_ in quantities
    }
    graphs = [d for d in datasets_of(records) if any(paper_geometry("mean_std", m, d) for m in JEPA)]
    groups = []
    for method in in_method_order(str(record["method"]) for record in records):
        rows: dict[str, tuple[list[TableCell], list[float]]] = {}
        for reading in sorted({_reading(r) for r in records if r["method"] == method}):
            cells, distances = rows.setdefault(reading, ([], []))
            for dataset in graphs:
                for field, _, printed, decimals in quantities:
                    ours, theirs = (
                        values[field].get((reading, dataset)),
                        paper_geometry(printed, method, dataset),
                    )
                    distance = None
                    if ours is not None and theirs is not None and theirs.std is not None:
                        spread = max(
                            theirs.std, 0.5 * 10.0**-decimals
                        )  # 0.00 is printed of what is below 0.005
                        distance = (ours.mean - theirs.mean) / spread
                        distances.append(abs(distance))
                    cells.append(_beside(ours, distance, decimals))
        means = {reading: (-len(found), fmean(found)) for reading, (_, found) in rows.items() if found}
        printed_row = [
            TableCell.mean(paper_geometry(printed, method, dataset), decimals=decimals)
            for dataset in graphs
            for _, _, printed, decimals in quantities
        ]
        names = map(TableCell.name, (method_name(method), "printed in the paper"))
        nearest = min(means.values(), default=None)
        groups.append(
            (
                (*names, *printed_row, TableCell(MISSING, ("", ""))),
                *(
                    (
                        TableCell.name(method_name(method)),
                        TableCell.name(reading.partition(": ")[2]),
                        *cells,
                        _mean_distance(found, bold=bool(found) and means[reading] == nearest),
                    )
                    for reading, (cells, found) in rows.items()
                ),
            )
        )
    return ReportTable(
        "fingerprint",
        "Distance to the printed fingerprint: label-free numbers of frozen embeddings (no probe)",
        (
            *map(Column.name, ("Method", "Variant")),
            *(
                Column(f"{dataset_name(dataset)}: {title[0].lower()}{title[1:]}", ("mean", "distance"))
                for dataset in graphs
                for _, title, *_ in quantities
            ),
            Column("Mean distance", ("mean", "numbers")),
        ),
        tuple(groups),
        (
            f"Paper: {paper_source('collapse_full')}, mean ± standard deviation.",
            "Ours: the mean over seeds; in brackets how far it is from the printed mean, in printed standard "
            "deviations. A standard deviation that is printed as zero counts as half of its last digit.",
            "Mean distance: of the absolute distances, their number in brackets; bold: the nearest of a "
            "method among those with the most of them. No label and no accuracy takes part.",
            *unfinished_notes(records),
        ),
    )


def _reading(record: Record) -> str:
    return f"{record['method']}: {record.get('variant') or 'preset ' + str(record.get('preset'))}"


def _beside(ours: Summary | None, distance: float | None, decimals: int) -> TableCell:
    mean = TableCell.number(None if ours is None else ours.mean, decimals=decimals)
    gap = TableCell.number(distance, decimals=1, signed=True)
    text = mean.text if distance is None else f"{mean.text} ({gap.text})"
    return TableCell(text, (*mean.values, *gap.values))


def _mean_distance(distances: Sequence[float], *, bold: bool) -> TableCell:
    if not distances:
        return TableCell(MISSING, ("", ""))
    mean = TableCell.number(fmean(distances))
    return TableCell(f"{mean.text} ({len(distances)})", (*mean.values, str(len(distances))), bold)


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
