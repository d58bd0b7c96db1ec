"""Time and memory of training, and time against epoch: what NodeJEPA's farther masks cost."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import pandas as pd

from nodejepa.methods.nodejepa import MaskingConfig
from nodejepa.report.sections import Column, ReportTable, Row, Summary, TableCell, summarise
from studies.render.frame import (
    Place,
    best_baseline,
    datasets_of,
    methods_of,
    outdated_methods,
    scores_by,
    unfinished_notes,
)
from studies.render.paper import (
    JEPA,
    SOLVED,
    UNTRAINED,
    dataset_name,
    method_name,
    paper,
    paper_accuracy,
    paper_source,
    paper_total_seconds,
)
from studies.render.tables.shared import NAMES, Note, by_graph, name_cells, score_cell

_SUMMARY = "Test accuracy (%) under the fair probe, the paper's in brackets; seconds of training"


def efficiency_table(frame: pd.DataFrame) -> ReportTable:
    """Seconds of the whole training in the paper and here, seconds an epoch, epochs and memory."""
    fields = ("total_seconds", "epoch_seconds", "epochs", "peak_memory_mb")
    total, epoch, epochs, memory = (scores_by(frame, field) for field in fields)

    def against_paper(method: str, dataset: str) -> TableCell:
        ours, printed = total.get((method, dataset)), paper_total_seconds(method, dataset)
        return TableCell.number(None if ours is None or printed is None else ours.mean / printed)

    def number_of_epochs(method: str, dataset: str) -> TableCell:
        found = epochs.get((method, dataset))
        return TableCell.number(None if found is None else found.mean, decimals=0)

    threads = sorted(set(frame.threads[frame.status.eq("done")].dropna()))
    count = " or ".join(map(str, threads)) or "an unknown number of"
    hardware = paper()["efficiency"]["hardware"]
    return by_graph(
        "efficiency",
        "Time and memory of training (no probe)",
        frame,
        {
            Column("Paper: total (s)"): lambda m, d: TableCell.number(paper_total_seconds(m, d), decimals=1),
            Column.score("Ours: total (s)"): score_cell(total, 1),
            Column("Ours / paper"): against_paper,
            Column.score("Ours: epoch (s)"): score_cell(epoch, 3),
            Column("Epochs"): number_of_epochs,
            Column.score("Ours: peak memory (MB)"): score_cell(memory, 0),
        },
        (
            f"Different hardware: the paper ({paper_source('efficiency')}) used {hardware}; ours is a CPU, "
            f"{count} thread{'s' if threads != [1] else ''}. Compare methods within a column, not columns.",
            "Ours: total is the median of a few epochs times their number (those of NodeJEPA's curriculum as "
            "they were): without what is computed once before the first, without the look for collapse after "
            "every tenth (PatchJEPA, whose epochs are "
            "short, feels it), and without early stopping, by which the supervised GCN may need fewer. Peak "
            "memory is that of the whole process, loading included. Untrained baselines are left out.",
            Note.SEEDS,
            *unfinished_notes(frame),
        ),
        {name: method_name(name) for name in methods_of(frame, baselines=False) if name not in UNTRAINED},
    )


@dataclass(frozen=True)
class Curve:
    """Seconds of epochs 2, 3, ... in one pass, and from which epoch (counted from 1) masks reach farthest."""

    seconds: tuple[float, ...]
    jump: int
    total: float

    @property
    def phases(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Epochs before the jump and from it on."""
        return self.seconds[: self.jump - 2], self.seconds[self.jump - 2 :]

    @property
    def first_total(self) -> float:
        """Seconds of all epochs before the jump; the first is taken to be like the second."""
        first = self.phases[0]
        return math.fsum((*first[:1], *first))


def curves_of(frame: pd.DataFrame) -> dict[tuple[str, str], list[Curve]]:
    """Every pass that timed its epochs one by one, by method and graph, in the order of the seeds."""
    found: dict[tuple[str, str], list[Curve]] = {}
    if "seconds_by_epoch" in frame:
        timed = frame[frame.status.eq("done") & frame.seconds_by_epoch.notna() & frame.method.isin(JEPA)]
        for row in timed.itertuples():
            curve = Curve(tuple(row.seconds_by_epoch), _jump(row.config), float(row.total_seconds))
            if all(curve.phases):
                found.setdefault((row.method, row.dataset), []).append(curve)
    return found


def epoch_time_table(frame: pd.DataFrame) -> ReportTable | None:
    """Both phases of both variants; none where no record has single epochs."""
    curves = curves_of(frame)
    if not curves:
        return None
    groups = tuple(
        tuple(
            _row(dataset, method, curves[method, dataset]) for method in JEPA if (method, dataset) in curves
        )
        for dataset in datasets_of(frame)
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
            Column.score("First phase: epoch (s)"),
            Column("First phase: range (s)", ("low", "high")),
            Column.score("Second phase: epoch (s)"),
            Column("Second phase: range (s)", ("low", "high")),
            Column("Second / first"),
            *map(Column.score, ("First phase: total (s)", "Second phase: total (s)", "Total (s)")),
        ),
        groups,
        (
            f"The second phase begins with epoch {when}, where the curriculum goes from its fewest to its "
            "most hops; PatchJEPA has no curriculum and is cut at the same epoch. The share of hidden nodes "
            "grows through both phases.",
            "Epoch: the median of a pass; range: the fastest and the slowest epoch of all passes "
            "(PatchJEPA's slowest are those with a look for collapse, every tenth). The second phase's total "
            "takes all epochs behind the curriculum to last as long as the median of those timed.",
            f"Paper, Section 6, on arxiv and {paper()['efficiency']['hardware']}: NodeJEPA {slow[0]:g} s in "
            f"the first 25 epochs and {slow[1]:g} s later, PatchJEPA {fast[0]:g} s. It names the search for "
            "neighbourhoods as the reason.",
            Note.SEEDS,
        ),
    )


def _row(dataset: str, method: str, passes: Sequence[Curve]) -> Row:
    cells: list[TableCell] = []
    for sides in zip(*(curve.phases for curve in passes), strict=True):
        cells.append(TableCell.score(summarise([median(side) for side in sides]), decimals=3))
        cells.append(_range([second for side in sides for second in side]))
    before, after = (summarise([median(curve.phases[i]) for curve in passes]) for i in (0, 1))
    totals = (
        [curve.first_total for curve in passes],
        [curve.total - curve.first_total for curve in passes],
        [curve.total for curve in passes],
    )
    return (
        *name_cells(dataset, method),
        *cells,
        TableCell.number(None if before is None or after is None else after.mean / before.mean),
        *(TableCell.score(summarise(values), decimals=1) for values in totals),
    )


def _range(seconds: Sequence[float]) -> TableCell:
    low, high = (TableCell.number(value, decimals=3) for value in (min(seconds), max(seconds)))
    return TableCell(f"{low.text} to {high.text}", (*low.values, *high.values))


def _jump(config: Mapping[str, Any] | None) -> int:
    """The first epoch, counted from 1, with the most hops."""
    masking: object = (config or {}).get("masking")
    schedule = MaskingConfig()
    if isinstance(masking, dict):
        schedule = MaskingConfig(
            **{name: masking[name] for name in ("hops_start", "hops", "curriculum_epochs")}
        )
    last = schedule.curriculum_epochs
    return 1 + next(epoch for epoch in range(last + 1) if schedule.at(epoch)[1] == schedule.at(last)[1])


def training_seconds(frame: pd.DataFrame, main: pd.DataFrame) -> dict[Place, Summary]:
    """By method and graph. A solved method has no epochs to time: its seconds are those of the main study."""
    solved = main[main.status.eq("done") & main.method.isin(SOLVED)]
    return {**scores_by(solved, "train_seconds"), **scores_by(frame, "total_seconds")}


def summary_table(frame: pd.DataFrame, main: pd.DataFrame) -> ReportTable | None:
    """What a first reader asks for: accuracy beside the paper's, and seconds of training on one graph.

    Accuracies are those of the main study.
    """
    scores = scores_by(main[main.status.eq("done")], "test_accuracy")
    seconds = training_seconds(frame, main)
    datasets = [d for d in datasets_of(main) if any(place[1] == d for place in scores)]
    if not datasets:
        return None
    largest = datasets[-1]

    def row(label: str, method: str | None) -> Row:
        cells = []
        for dataset in datasets:
            mine = best_baseline(scores, dataset) if method is None else scores.get((method, dataset))
            ours = mine.mean if isinstance(mine, Summary) else mine
            printed = None if method is None else paper_accuracy(method, dataset)
            best = max(score.mean for place, score in scores.items() if place[1] == dataset)
            cells.append(_beside(ours, None if printed is None else printed.mean, best))
        took = None if method is None else seconds.get((method, largest))
        timed = TableCell.number(None if took is None else took.mean, decimals=0)
        return (TableCell.name(label), *cells, timed)

    methods = [name for name in methods_of(main, baselines=False) if name not in UNTRAINED]
    untrained = sum(any(place[0] == baseline for place in scores) for baseline in UNTRAINED)
    rows = [row(method_name(name), name) for name in methods]
    rows.append(row(f"Best of {untrained} untrained baselines", None))
    return ReportTable(
        "summary",
        _SUMMARY,
        (
            Column.name("Method"),
            *(Column(dataset_name(d), ("ours", "paper")) for d in datasets),
            Column(f"Training on {dataset_name(largest)} (s)"),
        ),
        (tuple(rows),),
        (*_outdated("Accuracies", main), *_outdated("Training times", frame)),
    )


def _outdated(what: str, frame: pd.DataFrame) -> list[str]:
    names = outdated_methods(frame)
    if not names:
        return []
    return [f"{what} of {' and '.join(names)} were measured with earlier settings, not with today's presets."]


def _beside(ours: float | None, printed: float | None, best: float) -> TableCell:
    """``79.6 (79.2)``: ours, and what the paper prints in brackets."""
    mine, theirs = TableCell.number(ours, decimals=1), TableCell.number(printed, decimals=1)
    text = mine.text if printed is None else f"{mine.text} ({theirs.text})"
    return TableCell(text, (*mine.values, *theirs.values), bold=ours is not None and ours >= best)
