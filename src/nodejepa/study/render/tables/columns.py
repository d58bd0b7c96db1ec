"""What several tables have in common: a row's names, and the paper's figure beside ours."""

from __future__ import annotations

from dataclasses import replace

from nodejepa.report.summary import Summary
from nodejepa.report.table import (
    Column,
    Row,
    difference_cell,
    mean_cell,
    mean_column,
    score_cell,
    score_column,
    text_cell,
    text_column,
)
from nodejepa.study.render.names import dataset_name, method_name

NAMES = (text_column("Dataset"), text_column("Method"))


def name_cells(dataset: str, method: str) -> Row:
    """Under :data:`NAMES`."""
    return text_cell(dataset_name(dataset)), text_cell(method_name(method))


def beside_paper(title: str) -> tuple[Column, ...]:
    """Paper, ours and the difference."""
    return mean_column(f"{title}: paper"), score_column(f"{title}: ours"), Column(f"{title}: diff.")


def under_both_probes(title: str) -> tuple[Column, ...]:
    """Paper, ours under its probe, the difference of these two, and ours under the fair probe."""
    paper, ours, difference = beside_paper(title)
    like = replace(ours, title=f"{ours.title}, paper probe")
    return paper, like, difference, score_column(f"{ours.title}, fair probe")


def beside_paper_cells(
    ours: Summary | None, printed: Summary | None, *, best: Summary | None, decimals: int = 2, mark: str = ""
) -> Row:
    """Under :func:`beside_paper`."""
    return (
        mean_cell(printed, decimals=decimals),
        score_cell(ours, decimals=decimals, best=best, mark=mark),
        difference_cell(ours, printed, decimals=decimals),
    )
