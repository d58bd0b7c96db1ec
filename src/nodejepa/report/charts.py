"""The sections that the page draws: dots, curves, a confusion matrix, a map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from nodejepa.report.sections import Number, Section, short

_WRITTEN_DIGITS = 12  # of values that the page rounds and writes: never rounded twice


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
                        **vars(dot),
                        "value": short(dot.value, _WRITTEN_DIGITS),
                        "spread": short(dot.spread, _WRITTEN_DIGITS),
                        "points": [short(point) for point in dot.points],
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
                    {**vars(line), "x": [short(x) for x in line.x], "y": [short(y) for y in line.y]}
                    for line in lines
                ],
            }
            for title, lines in self.panels.items()
        ]
        return {"title": self.title, "x_label": self.x_label, "caption": self.caption, "panels": panels}


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
    clusters: npt.NDArray[np.int64] | None = None
    class_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    side_by_side: bool = False  # all projections at once, small
    kind: ClassVar[str] = "map"

    def content(self) -> dict[str, Any]:
        """Columns of values, one a drawn node."""
        planes = [
            {
                "name": name,
                "x": [short(x) for x in plane[:, 0].tolist()],
                "y": [short(y) for y in plane[:, 1].tolist()],
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
            "clusters": None if self.clusters is None else self.clusters.tolist(),
            "names": list(self.class_names),
            "planes": planes,
            "side_by_side": self.side_by_side,
        }
