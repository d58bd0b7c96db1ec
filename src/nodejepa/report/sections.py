"""What a report is made of: sections as plain data, composed by whoever has something to show.

A report is a list of chapters, a chapter a list of sections. Sections hold values only; how they look is the
business of ``assets/``. Every text may come from a user's file: the page inserts it as text, never as markup.
"""

from __future__ import annotations

import base64
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from nodejepa.report.table import MISSING, Cell, Table

Number: TypeAlias = int | float | None
Tone: TypeAlias = Literal["plain", "good", "warning"]
_DIGITS = 6  # significant digits of drawn values: finer than any screen
_WRITTEN_DIGITS = 12  # of values that the page rounds and writes: never rounded twice


class Section(ABC):
    """One block of a chapter."""

    kind: ClassVar[str]

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """Values ready for JSON."""

    def to_json(self) -> dict[str, Any]:
        """The section as the page's script reads it."""
        return {"kind": self.kind, **self.content()}


@dataclass(frozen=True)
class Text(Section):
    """Paragraphs in plain words; ``tone`` marks a verdict."""

    paragraphs: tuple[str, ...]
    tone: Tone = "plain"
    kind: ClassVar[str] = "text"

    def content(self) -> dict[str, Any]:
        """Paragraphs and their tone."""
        return {"paragraphs": list(self.paragraphs), "tone": self.tone}


@dataclass(frozen=True)
class Facts(Section):
    """Names and values: settings, sizes, times. ``folded`` ones open on a click."""

    title: str
    values: Mapping[str, str]
    folded: bool = False
    kind: ClassVar[str] = "facts"

    def content(self) -> dict[str, Any]:
        """Title and the pairs in their order."""
        pairs = [[name, value] for name, value in self.values.items()]
        return {"title": self.title, "values": pairs, "folded": self.folded}


@dataclass(frozen=True)
class SortableTable(Section):
    """A table that readers sort and filter; columns in ``choices`` offer their values to choose from."""

    table: Table
    choices: tuple[str, ...] = ()
    folded: bool = False
    kind: ClassVar[str] = "table"

    def content(self) -> dict[str, Any]:
        """Columns, and rows of ``[text, number to sort by, bold]``."""
        columns = [
            {"title": column.title, "numeric": not column.left, "choices": column.title in self.choices}
            for column in self.table.columns
        ]
        return {
            "title": self.table.title,
            "notes": list(self.table.notes),
            "columns": columns,
            "rows": [[_cell(cell) for cell in row] for row in self.table.rows],
            "folded": self.folded,
        }


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
    """One panel a dataset, one line a method: a mean, its spread and the single values."""

    title: str
    unit: str
    panels: Mapping[str, Sequence[Dot]]
    caption: str = ""
    kind: ClassVar[str] = "dots"

    def content(self) -> dict[str, Any]:
        """Panels of rows."""
        panels = [
            {
                "title": title,
                "rows": [
                    {
                        "label": dot.label,
                        "value": _number(dot.value, _WRITTEN_DIGITS),
                        "spread": _number(dot.spread, _WRITTEN_DIGITS),
                        "points": [_number(point) for point in dot.points],
                        "colour": dot.colour,
                        "emphasised": dot.emphasised,
                    }
                    for dot in dots
                ],
            }
            for title, dots in self.panels.items()
        ]
        return {"title": self.title, "unit": self.unit, "caption": self.caption, "panels": panels}


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

    def content(self) -> dict[str, Any]:
        """Panels of series."""
        panels = [
            {
                "title": title,
                "series": [
                    {
                        "name": line.name,
                        "x": [_number(x) for x in line.x],
                        "y": [_number(y) for y in line.y],
                        "colour": line.colour,
                    }
                    for line in lines
                ],
            }
            for title, lines in self.panels.items()
        ]
        return {"title": self.title, "x_label": self.x_label, "caption": self.caption, "panels": panels}


@dataclass(frozen=True)
class Figures(Section):
    """Pictures (PNG) that were drawn elsewhere, by their titles."""

    title: str
    pictures: Mapping[str, bytes]
    caption: str = ""
    kind: ClassVar[str] = "figures"

    def content(self) -> dict[str, Any]:
        """Titles, and the pictures as addresses that need no network."""
        pictures = [
            {"title": title, "address": f"data:image/png;base64,{base64.b64encode(picture).decode()}"}
            for title, picture in self.pictures.items()
        ]
        return {"title": self.title, "caption": self.caption, "pictures": pictures}


@dataclass(frozen=True)
class ConfusionMatrix(Section):
    """How often class i (rows) was taken for class j (columns)."""

    title: str
    class_names: tuple[str, ...]
    counts: npt.NDArray[np.int64]  # [true, predicted]
    caption: str = ""
    kind: ClassVar[str] = "confusion"

    def content(self) -> dict[str, Any]:
        """Names and counts."""
        return {
            "title": self.title,
            "caption": self.caption,
            "names": list(self.class_names),
            "counts": self.counts.tolist(),
        }


@dataclass(frozen=True, eq=False)
class EmbeddingMap(Section):
    """Nodes in the plane. Make one with :func:`nodejepa.report.maps.embedding_map`.

    All arrays have one entry a drawn node; ``labels`` and ``predicted`` are -1 where nothing is known, and a
    projection has NaN for a node it leaves out.
    """

    title: str
    ids: Sequence[str]
    degrees: npt.NDArray[np.int64]
    projections: Mapping[str, npt.NDArray[np.float64]]  # name -> [n, 2]
    labels: npt.NDArray[np.int64] | None = None
    predicted: npt.NDArray[np.int64] | None = None
    class_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    kind: ClassVar[str] = "map"

    def content(self) -> dict[str, Any]:
        """Columns of values, one a drawn node."""
        planes = [
            {
                "name": name,
                "x": [_number(x) for x in plane[:, 0].tolist()],
                "y": [_number(y) for y in plane[:, 1].tolist()],
            }
            for name, plane in self.projections.items()
        ]
        return {
            "title": self.title,
            "notes": list(self.notes),
            "ids": list(self.ids),
            "degrees": self.degrees.tolist(),
            "labels": None if self.labels is None else self.labels.tolist(),
            "predicted": None if self.predicted is None else self.predicted.tolist(),
            "names": list(self.class_names),
            "planes": planes,
        }


@dataclass(frozen=True)
class Chapter:
    """A heading and what stands under it."""

    title: str
    sections: tuple[Section, ...]
    subtitle: str = ""

    def to_json(self) -> dict[str, Any]:
        """The chapter as the page's script reads it."""
        sections = [section.to_json() for section in self.sections]
        return {"title": self.title, "subtitle": self.subtitle, "sections": sections}


@dataclass(frozen=True)
class Report:
    """Everything on the page."""

    title: str
    chapters: tuple[Chapter, ...]
    subtitle: str = ""
    footer: str = ""

    def to_json(self) -> dict[str, Any]:
        """The report as the page's script reads it."""
        chapters = [chapter.to_json() for chapter in self.chapters]
        return {
            "title": self.title,
            "subtitle": self.subtitle,
            "footer": self.footer,
            "chapters": chapters,
        }


def _number(value: Number, digits: int = _DIGITS) -> Number:
    """Short, and null where JSON has no number for it."""
    if value is None or not math.isfinite(value):
        return None
    return value if isinstance(value, int) else float(f"{value:.{digits}g}")


def _cell(cell: Cell) -> list[str | Number | bool]:
    """An empty text sorts last; a number before its text says by what to sort."""
    text = "" if cell.text == MISSING else f"{cell.text}{cell.mark}"
    try:
        order = _number(float(cell.values[0]))
    except ValueError:
        order = None
    return [text, order, cell.bold]
