"""A table as data, with the means and spreads that stand in it, and as Markdown and CSV.

Sums are exact (``math.fsum``), so that a table does not depend on the order of what stands behind it. Text
from records is escaped for each format.
"""

import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

MISSING = "-"
DAGGER = "†"


@dataclass(frozen=True)
class Summary:
    """Mean and sample standard deviation (n - 1; ``None`` for one value) of ``n`` values."""

    mean: float
    std: float | None
    n: int


def summarise(values: Sequence[float]) -> Summary | None:
    """Mean and standard deviation; ``None`` of nothing.

    >>> summarise([1.0, 3.0])
    Summary(mean=2.0, std=1.4142135623730951, n=2)
    """
    return mean_and_std(values) if values else None


def mean_and_std(values: Sequence[float]) -> Summary:
    """As :func:`summarise`, of at least one value."""
    n = len(values)
    mean = math.fsum(values) / n
    if n == 1:
        return Summary(mean, None, 1)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    # rounding of equal values is not spread: a test would find it infinitely significant
    tiny = 1e-12 * max(abs(value) for value in values)
    return Summary(mean, spread if spread > tiny else 0.0, n)


@dataclass(frozen=True)
class TableCell:
    """Text for people and the bare values for CSV (empty where there is nothing)."""

    text: str
    values: tuple[str, ...]
    bold: bool = False
    mark: str = ""

    @classmethod
    def name(cls, text: str, *, mark: str = "") -> Self:
        """A name."""
        return cls(text, (text,), mark=mark)

    @classmethod
    def score(
        cls, score: Summary | None, *, decimals: int = 2, best: Summary | None = None, mark: str = ""
    ) -> Self:
        """``87.98 ± 0.58 (5)``: mean, standard deviation, seeds; bold if it is as good as ``best``."""
        if score is None:
            return cls(MISSING, ("", "", ""))
        bold = best is not None and (score.n, score.mean) >= (best.n, best.mean)
        text = f"{_mean_std(score, decimals)} ({score.n})"
        return cls(text, (*_values(score), str(score.n)), bold, mark)

    @classmethod
    def mean(cls, score: Summary | None, *, decimals: int = 2) -> Self:
        """``87.98 ± 0.58``, or ``-`` where there is nothing."""
        if score is None:
            return cls(MISSING, ("", ""))
        return cls(_mean_std(score, decimals), _values(score))

    @classmethod
    def number(
        cls,
        value: float | None,
        *,
        decimals: int = 2,
        signed: bool = False,
        bold: bool = False,
        mark: str = "",
    ) -> Self:
        """One number, with its sign if it is a difference."""
        if value is None:
            return cls(MISSING, ("",))
        return cls(f"{value + 0.0:{'+' if signed else ''},.{decimals}f}", (_bare(value),), bold, mark)


@dataclass(frozen=True)
class Column:
    """A heading; in CSV one column for each of ``parts``, e.g. mean, std and seeds."""

    title: str
    parts: tuple[str, ...] = ("",)
    left: bool = False

    @classmethod
    def name(cls, title: str) -> Self:
        """For names."""
        return cls(title, left=True)

    @classmethod
    def score(cls, title: str) -> Self:
        """For means of our own: mean, standard deviation and number of seeds."""
        return cls(title, ("mean", "std", "seeds"))

    @classmethod
    def mean(cls, title: str) -> Self:
        """For means that somebody else printed: mean and standard deviation."""
        return cls(title, ("mean", "std"))

    @property
    def csv_titles(self) -> tuple[str, ...]:
        """The headings in CSV."""
        return tuple(f"{self.title} {part}".strip() for part in self.parts)


Row = tuple[TableCell, ...]


@dataclass(frozen=True)
class ReportTable:
    """Rows in groups (a line is drawn between them) under one title, and the sentences below it."""

    name: str  # of its files, and its label in LaTeX
    title: str  # what is shown, with the probe
    columns: tuple[Column, ...]
    groups: tuple[tuple[Row, ...], ...]
    notes: tuple[str, ...]  # what a reader must know: seeds, marks, what is missing and why

    def __post_init__(self) -> None:
        for row in self.rows:
            if tuple(len(cell.values) for cell in row) != tuple(len(c.parts) for c in self.columns):
                raise ValueError(f"a row of table {self.name} does not fit its columns")

    @property
    def rows(self) -> list[Row]:
        """All rows, top to bottom."""
        return [row for group in self.groups for row in group]


def _mean_std(score: Summary, decimals: int) -> str:
    mean = f"{score.mean:,.{decimals}f}"
    return mean if score.std is None else f"{mean} ± {score.std:.{decimals}f}"


def _values(score: Summary) -> tuple[str, str]:
    return _bare(score.mean), "" if score.std is None else _bare(score.std)


def _bare(value: float) -> str:
    """Enough digits for further work, few enough to be the same on every machine."""
    return f"{value:.6g}"


def to_markdown(table: ReportTable) -> str:
    """A heading, the table and its notes."""
    header = [_markdown(column.title) for column in table.columns]
    rule = ["---" if column.left else "---:" for column in table.columns]
    rows = [[_markdown_cell(cell) for cell in row] for row in table.rows]
    lines = ["| " + " | ".join(cells) + " |" for cells in (header, rule, *rows)]
    notes = "\n".join(f"- {_markdown(note)}" for note in table.notes)
    return f"# {_markdown(table.title)}\n\n" + "\n".join(lines) + f"\n\n{notes}\n"


def to_csv(table: ReportTable) -> str:
    """Bare numbers, one column each; no notes."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([title for column in table.columns for title in column.csv_titles])
    writer.writerows([value for cell in row for value in cell.values] for row in table.rows)
    return text.getvalue()


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", " ".join(text.split()))


def _markdown_cell(cell: TableCell) -> str:
    text = _markdown(cell.text)
    return (f"**{text}**" if cell.bold else text) + _markdown(cell.mark)
