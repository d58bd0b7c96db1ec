"""One look for all figures: colours for colour-blind people, markers and hatches for grey print."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from nodejepa.files import atomic_path
from studies.render.paper import look as look  # the figures' look is one thing with their style

FORMATS = ("png", "svg")
FLOOR_COLOUR = "#444444"
PALE = ("#DDDDDD", "#F0E442")  # need dark edges and hatches

_SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same glyphs on every machine
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.labelsize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": False,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.5,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.hashsalt": "nodejepa",  # ids that depend on the content only
    "svg.fonttype": "path",
}


@contextmanager
def house_style() -> Iterator[None]:
    """Settings for drawing and saving; whatever the user has set comes back afterwards."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        yield


def marked(method: str, size: float) -> dict[str, Any]:
    """How a method's points are drawn."""
    return {"color": look(method).colour, "marker": look(method).marker, "markersize": size}


def barred(method: str) -> dict[str, Any]:
    """How a method's bars are drawn."""
    return {"color": look(method).colour, "hatch": look(method).hatch, "edgecolor": "white", "linewidth": 0}


def new_figure(width: float, height: float) -> Figure:
    """A figure of its own, unknown to pyplot, whose parts never overlap."""
    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write every format, the same bytes for the same figure."""
    written = []
    for ending, picture in pictures(figure).items():
        path = folder / f"{name}.{ending}"
        with atomic_path(path) as temporary:
            temporary.write_bytes(picture)
        written.append(path)
    return written


def pictures(figure: Figure, formats: Sequence[str] = FORMATS) -> dict[str, bytes]:
    """The figure in each format, without dates and versions."""
    figure.draw_without_rendering()  # lays it out, once for all formats
    figure.set_layout_engine("none")
    found = {}
    for ending in formats:
        metadata = {"Software": None} if ending == "png" else {"Date": None, "Creator": None}
        buffer = io.BytesIO()
        figure.savefig(buffer, format=ending, dpi=160, metadata=metadata)
        found[ending] = buffer.getvalue()
    return found
