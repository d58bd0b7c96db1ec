"""How much of their space the embeddings use: the paper's two tables on collapse, ours beside them."""

from collections.abc import Sequence
from functools import partial
from statistics import fmean

import pandas as pd

from nodejepa.diagnostics import MAX_DIMENSIONS
from nodejepa.report.sections import MISSING, Column, ReportTable, Row, Summary, TableCell
from studies.render.frame import datasets_of, methods_of, scores_by, unfinished_notes
from studies.render.paper import (
    JEPA,
    dataset_name,
    in_method_order,
    method_name,
    paper_geometry,
    paper_source,
)
from studies.render.tables.shared import Cells, Note, best_on, by_graph, difference_cell, score_cell

_NO_PROBE = "No probe: measured on the frozen embeddings of all nodes, without any label."
_BOTH_WAYS = (
    "The paper's numbers fit embeddings that are not centred, as ours beside them; centred ones stand apart. "
    "A dash under a method that was measured: its record is older than this number."
)
_HIGH_IS_NOT_GOOD = "A high effective rank means less collapse, not more accuracy."

# when a reading meets a printed number: within so many printed standard deviations, or this share of it
_SPREADS, _SHARE = 2, 0.1
# our field, its heading, the paper's field, digits
_FIELDS = (
    ("effective_rank_uncentred", "Effective rank, uncentred", "effective_rank", 1),
    ("effective_rank", "Effective rank, centred", None, 1),
    ("mean_std", "Mean std", "mean_std", 3),
    ("participation_ratio_uncentred", "Participation ratio, uncentred", "participation_ratio", 2),
    ("participation_ratio", "Participation ratio, centred", None, 2),
)


def effective_rank_table(frame: pd.DataFrame) -> ReportTable:
    """Methods down, graphs across: paper, ours, difference, and ours of centred embeddings."""
    scores, centred = (scores_by(frame, f) for f in ("effective_rank_uncentred", "effective_rank"))
    datasets = datasets_of(frame)
    columns = [Column.name("Method")]
    for title in map(dataset_name, datasets):
        columns += [Column.mean(f"{title}: paper"), Column.score(f"{title}: ours"), Column(f"{title}: diff.")]
        columns.append(Column.score(f"{title}: centred"))

    def cells(method: str, dataset: str) -> Row:
        ours, printed = scores.get((method, dataset)), paper_geometry("effective_rank", method, dataset)
        return (
            TableCell.mean(printed, decimals=1),
            TableCell.score(ours, decimals=1, best=best_on(dataset, scores)),
            difference_cell(ours, printed, decimals=1),
            TableCell.score(centred.get((method, dataset)), decimals=1),
        )

    rows = tuple(
        (
            TableCell.name(method_name(method)),
            *(cell for dataset in datasets for cell in cells(method, dataset)),
        )
        for method in methods_of(frame)
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
            f"Bold: our highest on that graph, untrained baselines included; {Note.MOST_SEEDS} "
            f"{_HIGH_IS_NOT_GOOD}",
            Note.UNTRAINED,
            *_wide_note(frame),
            *unfinished_notes(frame),
        ),
    )


def geometry_table(frame: pd.DataFrame) -> ReportTable:
    """Mean standard deviation, and effective rank and participation ratio both ways."""
    cells: Cells = {}
    for field, title, printed, decimals in _FIELDS:
        if printed:
            cells[Column.mean(f"{title}: paper")] = partial(_printed, printed, decimals)
        ours = Column.score(f"{title}: ours" if printed else title)
        cells[ours] = score_cell(scores_by(frame, field), decimals)
    return by_graph(
        "collapse-full",
        "Geometry of frozen embeddings (no probe)",
        frame,
        cells,
        (
            f"Paper: {paper_source('collapse_full')}; effective ranks without a spread from "
            f"{paper_source('collapse')}.",
            _BOTH_WAYS,
            _NO_PROBE,
            Note.SEEDS,
            _HIGH_IS_NOT_GOOD,
            Note.UNTRAINED,
            *_wide_note(frame),
            *unfinished_notes(frame),
        ),
    )


def fingerprint_table(frame: pd.DataFrame) -> ReportTable:
    """How far each variant of a method is from the three label-free numbers that the paper prints of it."""
    readings = frame.variant.where(frame.variant.notna(), "preset " + frame.preset.astype(str))
    frame = frame.assign(reading=readings)
    graphs = [d for d in datasets_of(frame) if any(paper_geometry("mean_std", m, d) for m in JEPA)]
    columns = [(d, *quantity) for d in graphs for quantity in _FIELDS if quantity[2]]
    values = {field: scores_by(frame, field, ("method", "reading", "dataset")) for field, *_ in _FIELDS}
    groups = []
    for method in in_method_order(frame.method):
        printed = [paper_geometry(name, method, dataset) for dataset, _, _, name, _ in columns]
        pairs = zip(printed, columns, strict=True)
        cells = [TableCell.mean(mean, decimals=decimals) for mean, (*_, decimals) in pairs]
        rows = [[*map(TableCell.name, (method_name(method), "printed in the paper")), *cells]]
        found: list[list[tuple[float, bool]]] = [[]]  # of every number: its distance, and whether it is met
        for reading in sorted(set(readings[frame.method.eq(method)])):
            names = method_name(method), reading
            rows.append([*map(TableCell.name, names)])
            found.append([])
            for theirs, (dataset, field, _, _, decimals) in zip(printed, columns, strict=True):
                ours = values[field].get((method, reading, dataset))
                distance = _distance(ours, theirs, decimals)
                if ours is not None and theirs is not None and distance is not None:
                    met = abs(distance) <= _SPREADS or abs(ours.mean / theirs.mean - 1) <= _SHARE
                    found[-1].append((abs(distance), met))
                rows[-1].append(_beside(ours, distance, decimals))
        best = min(map(_order, filter(None, found)), default=None)
        groups.append(
            tuple(
                (*row, *_summary(f, bold=bool(f) and _order(f) == best))
                for row, f in zip(rows, found, strict=True)
            )
        )
    return ReportTable(
        "fingerprint",
        "Distance to the printed fingerprint: label-free numbers of frozen embeddings (no probe)",
        (
            *map(Column.name, ("Method", "Variant")),
            *(
                Column(f"{dataset_name(dataset)}: {title[0].lower()}{title[1:]}", ("mean", "distance"))
                for dataset, _, title, *_ in columns
            ),
            Column("Met", ("met", "numbers")),
            Column("Mean distance"),
        ),
        tuple(groups),
        (
            f"Paper: {paper_source('collapse_full')}, mean ± standard deviation.",
            "Ours: the mean over seeds; in brackets how far it is from the printed mean, in printed standard "
            "deviations. A standard deviation that is printed as zero counts as half of its last digit.",
            f"Met: numbers within {_SPREADS} printed standard deviations or {100 * _SHARE:.0f} % of the "
            "printed mean. Bold: the reading of a method that meets most, and of those the one with the "
            "smallest mean of absolute distances. No label and no accuracy takes part.",
            *unfinished_notes(frame),
        ),
    )


def _distance(ours: Summary | None, printed: Summary | None, decimals: int) -> float | None:
    if ours is None or printed is None or printed.std is None:
        return None
    return (ours.mean - printed.mean) / max(printed.std, 0.5 * 10.0**-decimals)


def _beside(ours: Summary | None, distance: float | None, decimals: int) -> TableCell:
    mean = TableCell.number(None if ours is None else ours.mean, decimals=decimals)
    gap = TableCell.number(distance, decimals=1, signed=True)
    text = mean.text if distance is None else f"{mean.text} ({gap.text})"
    return TableCell(text, (*mean.values, *gap.values))


def _order(found: Sequence[tuple[float, bool]]) -> tuple[int, float]:
    """The nearest reading comes first."""
    return -sum(met for _, met in found), fmean(distance for distance, _ in found)


def _summary(found: Sequence[tuple[float, bool]], *, bold: bool) -> tuple[TableCell, TableCell]:
    if not found:
        return TableCell(MISSING, ("", "")), TableCell(MISSING, ("",))
    met = str(sum(met for _, met in found))
    distance = TableCell.number(fmean(distance for distance, _ in found))
    return TableCell(f"{met} of {len(found)}", (met, str(len(found))), bold), distance


def _printed(field: str, decimals: int, method: str, dataset: str) -> TableCell:
    return TableCell.mean(paper_geometry(field, method, dataset), decimals=decimals)


def _wide_note(frame: pd.DataFrame) -> list[str]:
    """Why a untrained baseline that was measured has no rank."""
    if "mean_std" not in frame or "effective_rank" not in frame:
        return []
    wide = frame[frame.status.eq("done") & frame.mean_std.notna() & frame.effective_rank.isna()]
    if wide.empty:
        return []
    names = sorted(set(wide.method.map(method_name) + " on " + wide.dataset.map(dataset_name)))
    return [f"Ranks are not computed above {MAX_DIMENSIONS:,} dimensions: {', '.join(names)}."]
