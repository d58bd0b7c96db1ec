"""The sections that the page draws: dots, curves, a confusion matrix, a map; how a training went."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from nodejepa.diagnostics import Diagnostics
from nodejepa.methods.estimator import Estimator
from nodejepa.report.sections import Number, Section, Text, Tone, short
from nodejepa.training.logger import NOT_A_LOSS
from nodejepa.training.monitor import SHARE
from nodejepa.training.run import History

_WRITTEN_DIGITS = 12  # of values that the page rounds and writes: never rounded twice
_MAX_EPOCHS_DRAWN = 1000
_PANELS = {
    "effective rank": "effective_rank",
    "mean standard deviation": "mean_std",
    "gradient norm": "gradient_norm",
    "prediction's share of the encoder's gradient": SHARE,
    "learning rate": "lr",
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
        return vars(self) | {"panels": panels}


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
        return vars(self) | {"panels": panels}


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
    clusters: npt.NDArray[np.int64] | None = None
    names: tuple[str, ...] = ()  # of the classes
    notes: tuple[str, ...] = ()
    side_by_side: bool = False  # all projections at once, small
    kind: ClassVar[str] = "map"

    def content(self) -> dict[str, Any]:
        """Columns of values, one a drawn node, also those of the projections."""
        content = super().content()
        planes = []
        for name, plane in content.pop("projections").items():
            x, y = ([short(value) for value in axis] for axis in plane.T.tolist())
            planes.append({"name": name, "x": x, "y": y})
        return content | {"planes": planes}


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
