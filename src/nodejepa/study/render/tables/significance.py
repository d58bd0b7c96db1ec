"""Tests of both JEPA variants against every other method and the floors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from nodejepa.report.table import (
    MISSING,
    Column,
    ReportTable,
    Row,
    TableCell,
    interval_cell,
    number_cell,
    p_cell,
    text_cell,
    text_column,
)
from nodejepa.study.render.contrasts import Contrast, contrasts
from nodejepa.study.render.names import FLOORS, JEPA, dataset_name, method_name
from nodejepa.study.render.paper import PrintedTest, paper_tests
from nodejepa.study.render.selection import Record, methods_of, on_paper_splits
from nodejepa.study.render.statistics import outcome
from nodejepa.study.render.tables.wording import FAIR_PROBE, FLOORS_NOTE, PAPER_PROBE


def significance_table(records: Sequence[Record], variant: str) -> ReportTable:
    """Difference, its confidence interval and p, raw and corrected, beside the paper's."""
    tests = paper_tests(variant) if on_paper_splits(records) else ()
    printed = {(row.dataset, row.baseline): row for row in tests}
    like = {(c.dataset, c.opponent): c for c in contrasts(records, variant, "test_accuracy_paper_probe")}
    groups = [
        tuple(_row(c, like[dataset, c.opponent], printed.get((dataset, c.opponent))) for c in group)
        for dataset, group in groupby(contrasts(records, variant), key=lambda contrast: contrast.dataset)
    ]
    name = method_name(variant)
    return ReportTable(
        f"significance-{variant}",
        f"{name} against every other method (accuracy points, fair probe)",
        (
            text_column("Dataset"),
            text_column("Against"),
            Column("Difference"),
            Column("95 % interval", ("low", "high")),
            Column("p"),
            Column("Holm p"),
            text_column("Test"),
            Column("Seeds"),
            Column("Paper probe: difference"),
            Column("Paper probe: p"),
            Column("Paper: difference"),
            Column("Paper: p"),
        ),
        tuple(groups),
        (
            f"Difference: {name} minus the other. Paired t-test where the seeds are the same, else Welch's. "
            "Holm's correction over all tests of this table. Bold: p < 0.05.",
            "Paper: its p is not corrected for the number of tests. Beside it ours under its probe, not "
            "corrected either; all other columns are under the fair probe.",
            PAPER_PROBE,
            FAIR_PROBE,
            FLOORS_NOTE,
        ),
    )


def wins_table(records: Sequence[Record]) -> ReportTable:
    """Wins, ties and losses over graphs, with and without correction, beside the paper's."""
    groups = []
    for variant in (name for name in JEPA if name in methods_of(records, floors=False)):
        found = contrasts(records, variant)
        like = contrasts(records, variant, "test_accuracy_paper_probe")
        printed = paper_tests(variant) if on_paper_splits(records) else ()
        opponents = [name for name in methods_of(records) if name != variant]
        rows = [_wins_row(variant, method_name(name), found, like, printed, [name]) for name in opponents]
        baselines = [name for name in opponents if name not in FLOORS]
        rows.append(_wins_row(variant, "all methods", found, like, printed, baselines))
        floors = [name for name in opponents if name in FLOORS]
        rows.append(_wins_row(variant, "all floors", found, like, printed, floors))
        groups.append(tuple(rows))
    return ReportTable(
        "wins",
        "Wins / ties / losses over graphs at p < 0.05",
        (
            text_column("Method"),
            text_column("Against"),
            *(
                Column(title, ("wins", "ties", "losses"))
                for title in (
                    "Fair probe, Holm-corrected",
                    "Fair probe, uncorrected",
                    "Paper probe, uncorrected",
                    "Paper, uncorrected",
                )
            ),
        ),
        tuple(groups),
        (
            "Number of graphs with a win / a tie / a loss at p < 0.05. A tie: no difference shown, which "
            "with few seeds is not the same as none.",
            "The paper counts without correction: the last two columns are like with like.",
            "Graphs without a test (fewer than two seeds) do not count; the paper has five graphs.",
            "Corrected over all tests of one method, floors included; the significance tables give them one "
            "by one with their seeds.",
            PAPER_PROBE,
            FAIR_PROBE,
        ),
    )


def _row(contrast: Contrast, like: Contrast, printed: PrintedTest | None) -> Row:
    found = contrast.found
    names = (text_cell(dataset_name(contrast.dataset)), text_cell(method_name(contrast.opponent)))
    theirs = (
        number_cell(None if like.found is None else like.found.difference, signed=True),
        p_cell(None if like.found is None else like.found.p),
        number_cell(None if printed is None else printed.difference, signed=True),
        _printed_p(None if printed is None else printed.p),
    )
    if found is None:
        empty = number_cell(None)
        return (*names, empty, TableCell(MISSING, ("", "")), empty, empty, empty, empty, *theirs)
    seeds = str(found.n[0]) if found.test == "paired" else f"{found.n[0]}, {found.n[1]}"
    return (
        *names,
        number_cell(found.difference, signed=True),
        interval_cell(found.low, found.high),
        p_cell(found.p),
        p_cell(contrast.holm_p),
        text_cell(found.test if found.p is not None else MISSING),
        text_cell(seeds),
        *theirs,
    )


def _printed_p(p: float | None) -> TableCell:
    """With the digits that the paper gives."""
    cell = p_cell(p)
    return cell if p is None else replace(cell, text=f"{p:.{3 if p >= 0.001 else 4}f}")


def _wins_row(
    variant: str,
    label: str,
    found: Sequence[Contrast],
    like: Sequence[Contrast],
    printed: Sequence[PrintedTest],
    opponents: Sequence[str],
) -> Row:
    ours, as_paper = ([c for c in side if c.opponent in opponents] for side in (found, like))
    theirs = [outcome(row.difference, row.p) for row in printed if row.baseline in opponents]
    return (
        text_cell(method_name(variant)),
        text_cell(label),
        _count([contrast.outcome() for contrast in ours]),
        _count([contrast.outcome(corrected=False) for contrast in ours]),
        _count([contrast.outcome(corrected=False) for contrast in as_paper]),
        _count(theirs),
    )


def _count(outcomes: Sequence[str | None]) -> TableCell:
    if not any(outcomes):
        return TableCell(MISSING, ("", "", ""))
    counts = tuple(str(outcomes.count(kind)) for kind in ("win", "tie", "loss"))
    return TableCell(" / ".join(counts), counts)
