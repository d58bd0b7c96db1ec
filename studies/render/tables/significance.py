"""Tests of both JEPA variants against every other method and the floors, and average ranks."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import groupby

from nodejepa.report.table import MISSING, Column, ReportTable, Row, TableCell
from studies.render.paper import (
    FLOORS,
    JEPA,
    SELF_SUPERVISED,
    PrintedTest,
    dataset_name,
    method_name,
    paper_accuracy,
    paper_average_rank,
    paper_source,
    paper_tests,
)
from studies.render.selection import Record, methods_of, on_paper_splits
from studies.render.statistics import Contrast, average_ranks, contrasts, outcome, rank_methods
from studies.render.tables.shared import Note, tested_cells


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
            *map(Column.name, ("Dataset", "Against")),
            Column("Difference"),
            Column("95 % interval", ("low", "high")),
            *map(Column, ("p", "Holm p")),
            Column.name("Test"),
            *map(Column, ("Seeds", "Paper probe: difference", "Paper probe: p")),
            *map(Column, ("Paper: difference", "Paper: p")),
        ),
        tuple(groups),
        (
            f"Difference: {name} minus the other. Paired t-test where the seeds are the same, else Welch's. "
            "Holm's correction over all tests of this table. Bold: p < 0.05.",
            "Paper: its p is not corrected for the number of tests. Beside it ours under its probe, not "
            "corrected either; all other columns are under the fair probe.",
            Note.PAPER_PROBE,
            Note.FAIR_PROBE,
            Note.FLOORS,
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
            Column.name("Method"),
            Column.name("Against"),
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
            Note.PAPER_PROBE,
            Note.FAIR_PROBE,
        ),
    )


def _row(contrast: Contrast, like: Contrast, printed: PrintedTest | None) -> Row:
    found = contrast.found
    names = (TableCell.name(dataset_name(contrast.dataset)), TableCell.name(method_name(contrast.opponent)))
    theirs = (
        *tested_cells(like.found, None)[:2],
        TableCell.number(None if printed is None else printed.difference, signed=True),
        _printed_p(None if printed is None else printed.p),
    )
    if found is None:
        empty = TableCell.number(None)
        return (*names, empty, TableCell(MISSING, ("", "")), empty, empty, empty, empty, *theirs)
    seeds = str(found.n[0]) if found.test == "paired" else f"{found.n[0]}, {found.n[1]}"
    return (
        *names,
        TableCell.number(found.difference, signed=True),
        TableCell.interval(found.low, found.high),
        TableCell.p(found.p),
        TableCell.p(contrast.holm_p),
        TableCell.name(found.test if found.p is not None else MISSING),
        TableCell.name(seeds),
        *theirs,
    )


def _printed_p(p: float | None) -> TableCell:
    """With the digits that the paper gives."""
    cell = TableCell.p(p)
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
        TableCell.name(method_name(variant)),
        TableCell.name(label),
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
                TableCell.name(method_name(method)),
                TableCell.number(paper_average_rank(method), decimals=1),
                TableCell.number(printed.get(method)),
                *(_rank(found.average, method) for found in (ours, ours_paper_probe, with_floors)),
                TableCell.name(_span(seeds)),
            )
        )
    split = next((i for i, row in enumerate(rows) if row[0].text == method_name(floors[0])), len(rows))
    where = ", ".join(dataset_name(d) for d in ours.datasets) or "no graph yet"
    return ReportTable(
        "ranks",
        "Average rank among self-supervised methods (1 is best)",
        (
            Column.name("Method"),
            *map(Column, ("Paper", "Paper, ranked as ours", "Ours, fair probe", "Ours, paper probe")),
            *map(Column, ("Ours, floors included", "Seeds a graph")),
        ),
        (tuple(rows[:split]), tuple(rows[split:])),
        (
            f"Ours: {len(ours.average)} methods ranked by their means over the seeds that all of them "
            f"have, on the graphs where there are such seeds ({where}). Ties share their places.",
            f"Paper: {paper_source('main')}, six methods on five graphs; ranked as ours: its accuracies of "
            "the methods and graphs that ours ranks.",
            "Ours, floors included: fair probe, floors ranked with the methods. Last column: how many seeds.",
            Note.FAIR_PROBE,
        ),
    )


def _rank(average: dict[str, float], method: str) -> TableCell:
    rank = average.get(method)
    return TableCell.number(rank, bold=rank is not None and rank == min(average.values()))


def _span(counts: Sequence[int]) -> str:
    if not counts:
        return MISSING
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low}-{high}"
