"""What several tables share: sentences, columns, and bold and dagger.

Which mean is higher must not depend on which seeds happen to be measured: splits differ more from seed to
seed than methods differ from each other, so a mean of one seed says little beside a mean of five.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import pandas as pd

from nodejepa.report.sections import DAGGER, MISSING, Column, ReportTable, Row, Summary, TableCell
from studies.render.frame import Place, Values, datasets_of, means_on_shared_seeds, methods_of, summaries
from studies.render.paper import UNTRAINED, dataset_name, method_name
from studies.render.statistics import Comparison, holm_of

NAMES = (Column.name("Dataset"), Column.name("Method"))


class Note:
    """Sentences under several tables."""

    FAIR_PROBE = (
        "Fair probe: logistic regression on frozen embeddings, scaling (standardised columns or rows of one "
        "length) and C chosen on validation labels; test labels are read once."
    )
    PAPER_PROBE = "Paper probe: logistic regression on the embeddings as they are, C = 1."
    LIKE_WITH_LIKE = (
        "Differences to it are those under its probe, as far as it is known; the fair probe stands beside."
    )
    SEEDS = "Mean ± standard deviation (n - 1) over seeds, their number in brackets."
    MOST_SEEDS = "a mean over fewer seeds than another's does not compete."
    BOLD = f"Bold: best of the column, untrained baselines included; {MOST_SEEDS}"
    DAGGER = "† not above the best untrained baseline, on the seeds that both have."
    UNTRAINED = (
        "Untrained baselines: raw features X, propagated features (S X, S^2 X, S^3 X, the mean of X, S X and "
        "S^2 X scaled to one norm, and APPNP propagation of X) and a GCN with random weights. LinearJEPA is "
        "fitted in closed form, without gradient descent."
    )
    PAPER_STD = (
        "The paper's standard deviations fit its own t-tests only when divided by n; ours are divided by "
        "n - 1."
    )


Printed: TypeAlias = Callable[[str, str], Summary | None]  # in the paper, of a method and a graph
Cell: TypeAlias = Callable[[str, str], TableCell]  # what stands there, by method (or variant) and graph
Cells: TypeAlias = dict[Column, Cell]


def name_cells(dataset: str, method: str) -> Row:
    """Under :data:`NAMES`."""
    return TableCell.name(dataset_name(dataset)), TableCell.name(method_name(method))


def by_graph(
    name: str,
    title: str,
    frame: pd.DataFrame,
    cells: Cells,
    notes: Sequence[str],
    rows: Mapping[str, str] | None = None,
    named: str = "Method",
) -> ReportTable:
    """A group a graph, in it a row for every method, or for each of ``rows`` under its label."""
    rows = {method: method_name(method) for method in methods_of(frame)} if rows is None else rows

    def row(key: str, dataset: str) -> Row:
        names = TableCell.name(dataset_name(dataset)), TableCell.name(rows[key])
        return (*names, *(cell(key, dataset) for cell in cells.values()))

    groups = tuple(tuple(row(key, dataset) for key in rows) for dataset in datasets_of(frame))
    columns = (Column.name("Dataset"), Column.name(named), *cells)
    return ReportTable(name, title, columns, groups, tuple(notes))


@dataclass(frozen=True)
class Scored:
    """Accuracies by method (or variant) and graph."""

    values: Values

    @cached_property
    def scores(self) -> dict[Place, Summary]:
        """Over seeds."""
        return summaries(self.values)

    def cell(self, method: str, dataset: str) -> TableCell:
        """Bold if it is the best of the graph, with a dagger if it is not above the untrained baselines."""
        mark = baseline_mark(
            self.values.get((method, dataset)), baselines_to_beat(self.values, method, dataset)
        )
        return TableCell.score(
            self.scores.get((method, dataset)), best=best_on(dataset, self.scores), mark=mark
        )

    def minus(self, printed: Printed) -> Cell:
        """The difference to what the paper prints."""
        return lambda method, dataset: difference_cell(
            self.scores.get((method, dataset)), printed(method, dataset)
        )

    def beside_paper(self, printed: Printed, titles: tuple[str, str, str]) -> Cells:
        """What the paper prints, ours and the difference."""
        paper, ours, difference = Column.mean(titles[0]), Column.score(titles[1]), Column(titles[2])
        theirs: Cell = lambda method, dataset: TableCell.mean(printed(method, dataset))  # noqa: E731
        return {paper: theirs, ours: self.cell, difference: self.minus(printed)}


def score_cell(scores: Mapping[Place, Summary], decimals: int = 2) -> Cell:
    """Mean and spread, neither bold nor marked."""
    return lambda key, dataset: TableCell.score(scores.get((key, dataset)), decimals=decimals)


def best_on(dataset: str, *sides: Mapping[Place, Summary]) -> Summary | None:
    """:func:`best_of` all scores on a graph."""
    return best_of(score for side in sides for (_, d), score in side.items() if d == dataset)


def tested_cells(found: Comparison | None, holm_p: float | None) -> Row:
    """A difference, its p and Holm's."""
    difference, p = (None, None) if found is None else (found.difference, found.p)
    return TableCell.number(difference, signed=True), p_cell(p), p_cell(holm_p)


def tested(found: Mapping[Place, Comparison | None], titles: tuple[str, str, str]) -> Cells:
    """Columns of comparisons: the difference, its p, and Holm's over all of them."""
    corrected = holm_of(found)

    def part(i: int) -> Cell:
        return lambda key, dataset: tested_cells(found.get((key, dataset)), corrected.get((key, dataset)))[i]

    return {Column(title): part(i) for i, title in enumerate(titles)}


def best_of(scores: Iterable[Summary | None]) -> Summary | None:
    """The highest mean among those over the most seeds, for printing it bold."""
    known = [score for score in scores if score is not None]
    return max(known, key=lambda score: (score.n, score.mean), default=None)


def baseline_mark(mine: pd.Series | None, baselines: Sequence[pd.Series]) -> str:
    """A dagger where a method is not above the best baseline on the seeds that both have (else on all)."""
    if mine is None:
        return ""
    for baseline in baselines:
        means = means_on_shared_seeds({"mine": mine, "baseline": baseline})
        ours, theirs = means.values() if means else (mine.mean(), baseline.mean())
        if ours <= theirs:
            return DAGGER
    return ""


def baselines_to_beat(values: Values, method: str, dataset: str) -> list[pd.Series]:
    """What the untrained baselines score on a graph; untrained baselines themselves have none to beat."""
    if method in UNTRAINED:
        return []
    return [values[baseline, dataset] for baseline in UNTRAINED if (baseline, dataset) in values]


def interval_cell(low: float | None, high: float | None) -> TableCell:
    """``-0.13 to +0.70``: of a difference."""
    if low is None or high is None:
        return TableCell(MISSING, ("", ""))
    ends = TableCell.number(low, signed=True), TableCell.number(high, signed=True)
    return TableCell(f"{ends[0].text} to {ends[1].text}", (*ends[0].values, *ends[1].values))


def p_cell(p: float | None) -> TableCell:
    """A p value: four digits, or a bound."""
    if p is None:
        return TableCell(MISSING, ("",))
    return TableCell("< 0.0001" if p < 0.00005 else f"{p:.4f}", (f"{p:.6g}",), bold=p < 0.05)


def difference_cell(ours: Summary | None, theirs: Summary | None, *, decimals: int = 2) -> TableCell:
    """Ours minus theirs."""
    both = None if ours is None or theirs is None else ours.mean - theirs.mean
    return TableCell.number(both, decimals=decimals, signed=True)
