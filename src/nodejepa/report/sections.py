"""What a report is made of: sections as plain data.

A report is a list of chapters, a chapter a list of sections. Sections hold values only; how they look is the
business of ``assets/``. Every text may come from a user's file: the page inserts it as text, never as markup.

One HTML file is made of it: data as JSON, one style sheet, one script, nothing fetched. The script builds the
page from the data with text nodes only. The content security policy names style and script by their hashes:
whatever else were to slip into the page could not run.

A table is data, too, with the means and spreads that stand in it; it comes out on a page, as Markdown and as
CSV. Sums are exact (``math.fsum``), so that a table does not depend on the order of what stands behind it.
Text from records is escaped for each format.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from nodejepa.diagnostics import Diagnostics
from nodejepa.files import versions, write_text
from nodejepa.methods.estimator import Estimator
from nodejepa.training.logger import NOT_A_LOSS, SHARE
from nodejepa.training.run import History

Number: TypeAlias = int | float | None
Tone: TypeAlias = Literal["plain", "good", "warning"]
# in this order: each file uses names of those before it
_SCRIPTS = ("page", "tables", "charts", "dots", "confusion", "map-marks", "map", "report")
_DIGITS, _DRAWN_DIGITS = 12, 6  # of values that the page rounds and writes; of those it only draws
_MAX_EPOCHS_DRAWN = 1000
_PANELS = {
    "effective rank": "effective_rank",
    "mean standard deviation": "mean_std",
    "gradient norm": "gradient_norm",
    "prediction's share of the encoder's gradient": SHARE,
    "learning rate": "lr",
}
MISSING = "-"
DAGGER = "†"
_UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


class Section:
    """One block of a chapter; a dataclass, whose fields are what the page's script reads."""

    kind: ClassVar[str]


@dataclass(frozen=True)
class Text(Section):
    """Paragraphs in plain words; ``tone`` marks a verdict."""

    paragraphs: tuple[str, ...]
    tone: Tone = "plain"
    kind: ClassVar[str] = "text"


@dataclass(frozen=True)
class Facts(Section):
    """Names and values: settings, sizes, times. ``folded`` ones open on a click."""

    title: str
    values: Mapping[str, str]
    folded: bool = False
    kind: ClassVar[str] = "facts"


@dataclass(frozen=True)
class SortableTable(Section):
    """A table that readers sort and filter."""

    table: ReportTable
    kind: ClassVar[str] = "table"


@dataclass(frozen=True)
class Dot:
    """A value with its spread, and the single values behind it."""

    label: str
    value: float
    spread: Number = None
    points: tuple[float, ...] = ()
    colour: str | None = None
    emphasised: bool = True


@dataclass(frozen=True)
class DotPlot(Section):
    """One panel per dataset, one line per method: a mean, its spread and the single values."""

    title: str
    unit: str
    panels: Mapping[str, Sequence[Dot]]
    caption: str = ""
    kind: ClassVar[str] = "dots"


@dataclass(frozen=True)
class Series:
    """One line of a chart."""

    name: str
    x: Sequence[float]
    y: Sequence[Number]
    colour: str | None = None


@dataclass(frozen=True)
class Curves(Section):
    """Charts over a common axis, one a panel title."""

    title: str
    x_label: str
    panels: Mapping[str, Sequence[Series]]
    caption: str = ""
    kind: ClassVar[str] = "curves"


@dataclass(frozen=True)
class ConfusionMatrix(Section):
    """How often class i (rows) was taken for class j (columns)."""

    title: str
    names: tuple[str, ...]  # of the classes
    counts: npt.NDArray[np.int64]  # [true, predicted]
    caption: str = ""
    kind: ClassVar[str] = "confusion"


@dataclass(frozen=True, eq=False)
class EmbeddingMap(Section):
    """Nodes in the plane. Make one with :func:`nodejepa.report.maps.embedding_map`.

    All arrays have one entry a drawn node; ``labels`` and ``predicted`` are -1 where nothing is known, and a
    projection has NaN for a node it leaves out.
    """

    title: str
    ids: Sequence[str]
    degrees: npt.NDArray[np.int64] | None
    projections: Mapping[str, npt.NDArray[np.float64]]  # name -> [n, 2]
    labels: npt.NDArray[np.int64] | None = None
    predicted: npt.NDArray[np.int64] | None = None
    names: tuple[str, ...] = ()  # of the classes
    notes: tuple[str, ...] = ()
    side_by_side: bool = False  # all projections at once, small
    kind: ClassVar[str] = "map"


@dataclass(frozen=True)
class Chapter:
    """A heading and what stands under it."""

    title: str
    sections: tuple[Section, ...]
    subtitle: str = ""


@dataclass(frozen=True)
class Report:
    """Everything on the page."""

    title: str
    chapters: tuple[Chapter, ...]
    subtitle: str = ""
    footer: str = ""


def plain(value: Any, digits: int = _DIGITS) -> Any:
    """As the page's script reads it: a dataclass by its fields, a mapping as pairs, null for no number."""
    if isinstance(value, SortableTable):
        table = value.table
        columns = [{"title": column.title, "numeric": not column.left} for column in table.columns]
        rows = [[_cell(cell) for cell in row] for row in table.rows]
        content = {"title": table.title, "notes": table.notes, "columns": columns, "rows": rows}
        return {"kind": value.kind, **content}
    if isinstance(value, Section | Chapter | Report | Dot | Series):
        kind = {"kind": value.kind} if isinstance(value, Section) else {}
        return kind | {name: plain(part) for name, part in vars(value).items()}
    if isinstance(value, Mapping):  # as pairs: an object of JavaScript has an order of its own
        return [[name, plain(part)] for name, part in value.items()]
    if isinstance(value, np.ndarray):
        return plain(value.tolist(), _DRAWN_DIGITS)
    if isinstance(value, list | tuple):
        return [plain(part, digits) for part in value]
    if isinstance(value, float):
        return float(f"{value:.{digits}g}") if math.isfinite(value) else None
    return value


def _cell(cell: TableCell) -> list[Any]:
    """Text, what to sort by (the number behind it), bold; an empty text sorts last."""
    text = "" if cell.text == MISSING else f"{cell.text}{cell.mark}"
    try:
        order = plain(float(cell.values[0]))
    except ValueError:
        order = None
    return [text, order, cell.bold]


def render(report: Report) -> str:
    """The whole page."""
    style = _asset("report.css")
    body = "\n".join(_asset(f"{name}.js") for name in _SCRIPTS)
    script = f'(() => {{\n"use strict";\n{body}}})();\n'
    return Template(_asset("page.html")).substitute(
        title=escape(report.title),
        policy=f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'",
        style=style,
        data=embedded_json(plain(report)),
        script=script,
    )


def write_report(report: Report, path: str | Path) -> None:
    """Write the page, whole or not at all."""
    write_text(path, render(report))


def embedded_json(value: object) -> str:
    """JSON that cannot end the ``<script>`` it stands in, whatever its strings hold."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.translate(_UNSAFE)


def footer() -> str:
    """What made the page."""
    made = ", ".join(f"{name} {version}" for name, version in versions().items())
    return f"Made by {made}."


def _asset(name: str) -> str:
    return (files("nodejepa.report") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# ---------------------------------------------------------------- sections that many pages have


def verdict(found: Diagnostics, *words: str, doubtful: bool = False) -> Text:
    """The diagnosis and what else is said of the embeddings, in the colour of the worst of it.

    Collapse is a warning, and so are ``doubtful`` words; what was not judged, or comes with advice, is not
    called good.
    """
    tone: Tone = "good" if found.sound else "plain"
    return Text(
        (f"Embeddings: {found.verdict}", *words), tone="warning" if found.collapsed or doubtful else tone
    )


def training_curves(history: History) -> tuple[Section, ...]:
    """Loss, its terms and what was watched beside them, over epochs; nothing where nothing was trained."""
    if not any("loss" in record for record in history):
        return ()
    terms = dict.fromkeys(name for record in history for name in record if name not in NOT_A_LOSS)
    panels = {"loss and its terms": [_series(history, name) for name in sorted(terms, key="loss".__ne__)]}
    for title, name in _PANELS.items():
        if any(name in record for record in history):
            panels[title] = [_series(history, name)]
    many = len(history) > _MAX_EPOCHS_DRAWN
    caption = f"Of {len(history):,} epochs about {_MAX_EPOCHS_DRAWN:,} are drawn." if many else ""
    return (Curves("Training", "epoch", panels, caption),)


def what_was_found(estimator: Estimator) -> tuple[Section, ...]:
    """What a method says of the graph, with the spectrum of what is predictable; most say nothing."""
    words, rho = estimator.describe(), estimator.spectrum()
    if not words:
        return ()
    line = Series("rho", list(range(1, len(rho) + 1)), list(rho))
    caption = (
        "1: neighbours predict it fully; 0: not at all; below 0: neighbours differ. Each latent is scaled by "
        "the root of |rho|."
    )
    panels = {"how well the neighbours predict each latent": [line]}
    return (Text((words,)), Curves("What is predictable", "latent", panels, caption))


def _series(history: History, name: str) -> Series:
    """The epochs that have this value; of very many, every n-th and the last."""
    known = [record for record in history if isinstance(record.get(name), int | float)]
    step = -(-len(known) // _MAX_EPOCHS_DRAWN)
    shown = known if step <= 1 else [*known[:-1:step], known[-1]]
    return Series(name, [record["epoch"] for record in shown], [record[name] for record in shown])


# ---------------------------------------------------------------- tables, with means and spreads


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
