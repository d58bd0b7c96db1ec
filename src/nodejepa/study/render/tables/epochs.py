"""Time against epoch: NodeJEPA before and after its masks reach farther, and PatchJEPA beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from nodejepa.masking.curriculum import Curriculum
from nodejepa.report.summary import summarise
from nodejepa.report.table import (
    Column,
    ReportTable,
    Row,
    TableCell,
    number_cell,
    score_cell,
    score_column,
)
from nodejepa.study.render.names import JEPA
from nodejepa.study.render.paper import paper
from nodejepa.study.render.selection import Record, datasets_of
from nodejepa.study.render.tables.columns import NAMES, name_cells
from nodejepa.study.render.tables.wording import SEEDS


@dataclass(frozen=True)
class Curve:
    """Seconds of epochs 2, 3, ... in one pass, and from which epoch (counted from 1) masks reach farthest."""

    seconds: tuple[float, ...]
    jump: int
    total: float

    @property
    def first(self) -> tuple[float, ...]:
        """Epochs before the jump."""
        return self.seconds[: self.jump - 2]

    @property
    def later(self) -> tuple[float, ...]:
        """Epochs from the jump on."""
        return self.seconds[self.jump - 2 :]

    @property
    def first_total(self) -> float:
        """Seconds of all epochs before the jump; the first is taken to be like the second."""
        return math.fsum((*self.first[:1], *self.first))


def curves_of(records: Sequence[Record]) -> dict[tuple[str, str], list[Curve]]:
    """Every pass that timed its epochs one by one, by method and graph, in the order of the seeds."""
    found: dict[tuple[str, str], list[Curve]] = {}
    for record in sorted(records, key=lambda r: int(r["seed"])):
        seconds = record.get("seconds_by_epoch")
        if record.get("status") == "done" and isinstance(seconds, list) and record["method"] in JEPA:
            curve = Curve(tuple(map(float, seconds)), _jump(record), float(record["total_seconds"]))
            if curve.first and curve.later:
                found.setdefault((str(record["method"]), str(record["dataset"])), []).append(curve)
    return found


def epoch_time_table(records: Sequence[Record]) -> ReportTable | None:
    """Both phases of both variants; none where no record has single epochs."""
    curves = curves_of(records)
    if not curves:
        return None
    groups = tuple(
        tuple(
            _row(dataset, method, curves[method, dataset]) for method in JEPA if (method, dataset) in curves
        )
        for dataset in datasets_of(records)
        if any(place[1] == dataset for place in curves)
    )
    jumps = sorted({curve.jump for passes in curves.values() for curve in passes})
    when = " or ".join(str(jump) for jump in jumps)
    printed = paper()["efficiency"]["epoch_seconds"]
    slow, fast = printed["nodejepa"], printed["patchjepa"]
    return ReportTable(
        "epoch-time",
        "Seconds of an epoch before and after NodeJEPA's masks reach farther (no probe)",
        (
            *NAMES,
            score_column("First phase: epoch (s)"),
            Column("First phase: range (s)", ("low", "high")),
            score_column("Second phase: epoch (s)"),
            Column("Second phase: range (s)", ("low", "high")),
            Column("Second / first"),
            score_column("First phase: total (s)"),
            score_column("Second phase: total (s)"),
            score_column("Total (s)"),
        ),
        groups,
        (
            f"The second phase begins with epoch {when}, where the curriculum goes from its fewest to its "
            "most hops; PatchJEPA has no curriculum and is cut at the same epoch. The share of hidden nodes "
            "grows through both phases.",
            "Epoch: the median of a pass; range: the fastest and the slowest epoch of all passes. The second "
            "phase's total takes all epochs behind the curriculum to last as long as the median of those "
            "timed.",
            f"Paper, Section 6, on arxiv and {paper()['efficiency']['hardware']}: NodeJEPA {slow[0]:g} s in "
            f"the first 25 epochs and {slow[1]:g} s later, PatchJEPA {fast[0]:g} s. Its jump is the search "
            "for neighbourhoods.",
            SEEDS,
        ),
    )


def _row(dataset: str, method: str, passes: Sequence[Curve]) -> Row:
    first, later = ([median(side) for side in sides] for sides in _sides(passes))
    totals = (
        [curve.first_total for curve in passes],
        [curve.total - curve.first_total for curve in passes],
        [curve.total for curve in passes],
    )
    ranges = [_range([s for side in sides for s in side]) for sides in _sides(passes)]
    before, after = summarise(first), summarise(later)
    return (
        *name_cells(dataset, method),
        score_cell(before, decimals=3),
        ranges[0],
        score_cell(after, decimals=3),
        ranges[1],
        number_cell(None if before is None or after is None else after.mean / before.mean),
        *(score_cell(summarise(values), decimals=1) for values in totals),
    )


def _sides(passes: Sequence[Curve]) -> tuple[list[tuple[float, ...]], list[tuple[float, ...]]]:
    return [curve.first for curve in passes], [curve.later for curve in passes]


def _range(seconds: Sequence[float]) -> TableCell:
    low, high = (number_cell(value, decimals=3) for value in (min(seconds), max(seconds)))
    return TableCell(f"{low.text} to {high.text}", (*low.values, *high.values))


def _jump(record: Record) -> int:
    """The first epoch, counted from 1, with the most hops."""
    masking: object = (record.get("config") or {}).get("masking")
    schedule = Curriculum()
    if isinstance(masking, dict):
        schedule = Curriculum(
            hops_start=masking["hops_start"], hops_end=masking["hops"], epochs=masking["curriculum_epochs"]
        )
    most = schedule.at(schedule.epochs)[1]
    return 1 + next(epoch for epoch in range(schedule.epochs + 1) if schedule.at(epoch)[1] == most)
