"""One look for all figures, and the layouts that several share: a panel per data set, bars for methods.

Colours are for colour-blind people, markers and hatches for grey print.
"""

import io
import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from nodejepa.files import atomic_path
from nodejepa.report.sections import Summary
from studies.render.paper import dataset_name, look, method_name

FORMATS = ("png", "svg")
BASELINE_COLOUR = "#444444"
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
MIN_WIDTH = 5.6  # inches
LETTERS_AN_INCH = 10  # of a title
LEGEND_ENTRY, LONGER_HANDLE = 1.75, 0.25  # inches: an entry, and more for each unit that its line is longer

Scores = Mapping[tuple[str, str], Summary]


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


def panel_grid(titles: Sequence[str], *, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """One panel a title, at most three in a row (four stand two by two), with room for title and legend."""
    columns = 2 if len(titles) == 4 else min(3, len(titles))
    rows = math.ceil(len(titles) / columns)
    figure = new_figure(max(width * columns, MIN_WIDTH), height * rows + 0.9)
    panels = [figure.add_subplot(rows, columns, place + 1) for place in range(len(titles))]
    for panel, title in zip(panels, titles, strict=True):
        panel.set_title(title)
    return figure, panels


def explain(figure: Figure, title: str, handles: Sequence[Artist] = (), *, handlelength: float = 2.0) -> None:
    """Title above and legend below all panels, broken to the width of the figure."""
    width = figure.get_figwidth()
    figure.suptitle(textwrap.fill(title, int(width * LETTERS_AN_INCH)), fontsize=12)
    if handles:
        entry = LEGEND_ENTRY + (handlelength - 2) * LONGER_HANDLE
        columns = min(len(handles), max(1, int(width // entry)), 5)
        figure.legend(
            handles=handles,
            loc="outside lower center",
            ncols=columns,
            handlelength=handlelength,
            handleheight=1.2,
        )


def is_first_of_row(panel: Axes) -> bool:
    """Whether a panel stands at the left edge, where names and the label of the axis go."""
    place = panel.get_subplotspec()
    return place is not None and place.is_first_col()


def bar_panels(
    scores: Scores,
    datasets: Sequence[str],
    methods: Sequence[str],
    *,
    label: str,
    decimals: int,
    title: str,
    from_zero: bool = True,
    log: bool = False,
    paper: Callable[[str, str], float | None] = lambda _method, _dataset: None,
    baselines: Mapping[str, float] | None = None,
) -> Figure | None:
    """A panel a graph, a bar a method with its value and seeds, the paper's value as a diamond.

    What has no score is left out. Bars start at zero unless told otherwise, then at a round number below the
    lowest value, which the label says. ``untrained baselines`` are drawn as dashed lines.
    """
    scores = {p: score for p, score in scores.items() if p[0] in methods and (score.mean > 0 or not log)}
    panels_of = [d for d in datasets if any(place[1] == d for place in scores)]
    bars = [m for m in methods if any(place[0] == m for place in scores)]
    if not panels_of:
        return None
    figure, panels = panel_grid(
        [dataset_name(d) for d in panels_of], width=3.9, height=0.7 + 0.28 * len(bars)
    )
    printed_of = {place: value for place in scores if (value := paper(*place)) is not None}
    for panel, dataset in zip(panels, panels_of, strict=True):
        here = {m: scores[m, dataset] for m in bars if (m, dataset) in scores}
        printed = {m: printed_of[m, dataset] for m in here if (m, dataset) in printed_of}
        # a logarithmic axis starts anywhere: bars of two panels compare only if both have the same limits
        drawn_scores, diamonds = (scores, printed_of) if log else (here, printed)
        highs = [score.mean + (score.std or 0) for score in drawn_scores.values()] + [*diamonds.values()]
        lows = [score.mean - (score.std or 0) * (not log) for score in drawn_scores.values()]
        start = _start([*lows, *diamonds.values()], log) if log or not from_zero else 0.0
        span = max(highs) - start or 1.0  # all may be zero
        draw = partial(draw_bar, panel, start=start, decimals=decimals)
        for row, method in enumerate(bars):
            if method in here:
                draw(row, here[method], colour=look(method).colour, hatch=look(method).hatch)
        draw_paper(panel, [*printed.values()], [bars.index(m) for m in printed])
        if baselines is not None and dataset in baselines:
            draw_baseline(panel, baselines[dataset])
        if log:
            panel.set_xscale("log")
            panel.set_xlim(start, max(highs) * (max(highs) / start) ** 0.45)
            log_ticks(panel.xaxis, start, max(highs))
        else:
            panel.set_xlim(start, start + 1.34 * span)
        name_rows(panel, [method_name(m) for m in bars], shown=is_first_of_row(panel))
        panel.set_xlabel(label if start == 0 or log else f"{label}, from {start:g}")
    spread = any(score.std for score in scores.values())
    words = "± std; seeds in brackets" if spread else "seeds in brackets"
    handles = [Line2D([], [], color="black", linewidth=1.0, linestyle="-" if spread else "", label=words)]
    handles += [paper_handle()] if printed_of else []
    handles += [baseline_handle()] if baselines else []
    explain(figure, title, handles)
    return figure


def draw_bar(
    panel: Axes,
    row: float,
    score: Summary,
    *,
    start: float,
    decimals: int,
    colour: str,
    hatch: str = "",
    height: float = 0.72,
) -> None:
    """A horizontal bar from ``start`` with its standard deviation, value and seeds."""
    panel.barh(
        row,
        score.mean - start,
        left=start,
        height=height,
        color=colour,
        hatch=hatch,
        edgecolor="#777777" if colour in PALE else "white",
        linewidth=0,
    )
    end = score.mean + (score.std or 0.0)
    if score.std:
        low = max(score.mean - score.std, start)
        seen_on_black = [withStroke(linewidth=2.4, foreground="white")]
        panel.plot([low, end], [row, row], color="black", linewidth=1.0, zorder=3, path_effects=seen_on_black)
    # all values in one column at the right edge, where no bar, diamond or line reaches
    text = f"{score.mean:,.{decimals}f} ({score.n})"
    panel.text(1.0, row, text, transform=panel.get_yaxis_transform(), ha="right", va="center", fontsize=8)


def log_ticks(axis: Axis, low: float, high: float) -> None:
    """Plain numbers at 1, 2 and 5 of a decade; at decades, or every second, where there are many."""
    steps = (1.0, 2.0, 5.0) if high / low < 40 else (1.0,)
    axis.set_major_locator(LogLocator(base=10.0 if high / low < 2e4 else 100.0, subs=steps))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}" if value < 1 else f"{value:,.0f}"))
    axis.set_minor_formatter(NullFormatter())


def name_rows(panel: Axes, names: Sequence[str], *, shown: bool) -> None:
    """Top to bottom; names only where ``shown``."""
    panel.set_yticks(range(len(names)), names if shown else [""] * len(names))
    panel.tick_params(axis="y", length=0)
    panel.set_ylim(len(names) - 0.4, -0.6)


def draw_paper(panel: Axes, values: Sequence[float], rows: Sequence[float]) -> None:
    """The paper's values as white diamonds."""
    panel.plot(values, rows, color="white", linestyle="", marker="D", markersize=5, markeredgecolor="black")


def paper_handle(label: str = "paper") -> Line2D:
    """The legend's entry for the paper's values."""
    look = {"marker": "D", "markersize": 5, "markeredgecolor": "black"}
    return Line2D([], [], color="white", linestyle="", label=label, **look)  # type: ignore[arg-type]


def baseline_handle() -> Line2D:
    """The legend's entry for the best untrained baseline."""
    return Line2D(
        [], [], color=BASELINE_COLOUR, linestyle="--", linewidth=1.0, label="best untrained baseline"
    )


def draw_baseline(panel: Axes, baseline: float) -> None:
    """The best untrained baseline as a dashed vertical line."""
    panel.axvline(baseline, color=BASELINE_COLOUR, linestyle="--", linewidth=1.0, zorder=1)


def method_handles(methods: Sequence[str], *, lines: bool) -> list[Line2D]:
    """The legend's entries of methods: marker, and line where lines are drawn."""
    return [
        Line2D(
            [],
            [],
            linestyle=look(method).line if lines else "",
            label=method_name(method),
            **marked(method, 6),
        )
        for method in methods
    ]


def _start(lows: Sequence[float], log: bool) -> float:
    """A round number below all values."""
    lowest = min(lows)
    if log:
        return float(10 ** math.floor(math.log10(lowest * 0.7)))
    return max(0.0, 10.0 * math.floor((lowest - 2) / 10))
