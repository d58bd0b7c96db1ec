"""What a report is made of: sections as plain data, composed by whoever has something to show.

A report is a list of chapters, a chapter a list of sections. Sections hold values only; how they look is the
business of ``assets/``. Every text may come from a user's file: the page inserts it as text, never as markup.

One HTML file is made of it: data as JSON, one style sheet, one script, nothing fetched. The script builds the
page from the data with text nodes only. The content security policy names style and script by their hashes:
whatever else were to slip into the page could not run.
"""

import base64
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from nodejepa.files import write_text
from nodejepa.provenance import versions
from nodejepa.report.table import MISSING, ReportTable, TableCell

Number: TypeAlias = int | float | None
Tone: TypeAlias = Literal["plain", "good", "warning"]
_DIGITS = 6  # significant digits of drawn values: finer than any screen
# in this order: each file uses names of those before it
_SCRIPTS = ("page", "tables", "charts", "dots", "confusion", "map-marks", "map", "report")
_UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


class Section:
    """One block of a chapter; a dataclass, whose fields are what the page's script reads."""

    kind: ClassVar[str]

    def content(self) -> dict[str, Any]:
        """Values ready for JSON."""
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in vars(self).items()}

    def to_json(self) -> dict[str, Any]:
        """The section as the page's script reads it."""
        return {"kind": self.kind, **self.content()}


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

    def content(self) -> dict[str, Any]:
        """As pairs, in their order."""
        return vars(self) | {"values": [*self.values.items()]}


@dataclass(frozen=True)
class SortableTable(Section):
    """A table that readers sort and filter; columns in ``choices`` offer their values to choose from."""

    table: ReportTable
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
        return vars(self) | {"pictures": pictures}


@dataclass(frozen=True)
class Chapter:
    """A heading and what stands under it."""

    title: str
    sections: tuple[Section, ...]
    subtitle: str = ""

    def to_json(self) -> dict[str, Any]:
        """The chapter as the page's script reads it."""
        return vars(self) | {"sections": [section.to_json() for section in self.sections]}


@dataclass(frozen=True)
class Report:
    """Everything on the page."""

    title: str
    chapters: tuple[Chapter, ...]
    subtitle: str = ""
    footer: str = ""

    def to_json(self) -> dict[str, Any]:
        """The report as the page's script reads it."""
        return vars(self) | {"chapters": [chapter.to_json() for chapter in self.chapters]}


def short(value: Number, digits: int = _DIGITS) -> Number:
    """Short, and null where JSON has no number for it."""
    if value is None or not math.isfinite(value):
        return None
    return value if isinstance(value, int) else float(f"{value:.{digits}g}")


def _cell(cell: TableCell) -> list[str | Number | bool]:
    """An empty text sorts last; a number before its text says by what to sort."""
    text = "" if cell.text == MISSING else f"{cell.text}{cell.mark}"
    try:
        order = short(float(cell.values[0]))
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
        data=embedded_json(report.to_json()),
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
