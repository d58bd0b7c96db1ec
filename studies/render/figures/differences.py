"""Which differences hold: wins, ties and losses, and the difference of every method to GraphMAE."""

from collections import Counter
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from studies.render.figures.panels import explain, is_first_of_row, name_rows, panel_grid
from studies.render.figures.style import look, marked
from studies.render.paper import JEPA, dataset_name, method_name
from studies.render.selection import Record, datasets_of, methods_of, values_of
from studies.render.statistics import Outcome, compare, contrasts

OUTCOMES: tuple[tuple[Outcome, str, str], ...] = (
    ("win", "#332288", ""),
    ("tie", "#E6E6E6", ""),
    ("loss", "#806040", "///"),
)  # no method's
_REFERENCE = "graphmae"


def wins_figure(records: Sequence[Record]) -> Figure | None:
    """For both JEPA variants: graphs won, tied and lost against each other method.

    Corrected under the fair probe, and as the paper counts: under its probe, not corrected.
    """
    found = {
        (variant, corrected): {
            (c.opponent, c.dataset): outcome
            for c in contrasts(records, variant, field)
            if (outcome := c.outcome(corrected=corrected)) is not None
        }
        for corrected, field in ((True, "test_accuracy"), (False, "test_accuracy_paper_probe"))
        for variant in JEPA
    }
    shown = {place: outcomes for place, outcomes in found.items() if outcomes}
    if not shown:
        return None
    opponents = [
        m for m in methods_of(records) if any(name == m for side in shown.values() for name, _ in side)
    ]
    most = max(max(Counter(name for name, _ in side).values()) for side in shown.values())
    titles = [
        f"{method_name(variant)}, {'fair probe, after Holm' if corrected else 'paper probe, not corrected'}"
        for variant, corrected in shown
    ]
    figure, panels = panel_grid(titles, width=4.4, height=0.9 + 0.32 * len(opponents))
    for panel, side in zip(panels, shown.values(), strict=True):
        for row, opponent in enumerate(opponents):
            _draw_outcomes(panel, row, Counter(kind for (name, _), kind in side.items() if name == opponent))
        name_rows(panel, [method_name(m) for m in opponents], shown=is_first_of_row(panel))
        panel.set_xlim(0, most + 0.25)
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.set_xlabel("graphs")
    handles = [
        Patch(facecolor=colour, hatch=hatch, edgecolor="white", label=kind)
        for kind, colour, hatch in OUTCOMES
    ]
    explain(figure, "Significant differences (p < 0.05)", handles)
    return figure


def _draw_outcomes(panel: Axes, row: int, counts: Counter[Outcome]) -> None:
    """Wins, ties and losses of one row behind each other."""
    left = 0
    for kind, colour, hatch in OUTCOMES:
        count = counts[kind]
        if count:
            panel.barh(row, count, left=left, height=0.72, color=colour, hatch=hatch, edgecolor="white")
            panel.text(
                left + count / 2,
                row,
                str(count),
                ha="center",
                va="center",
                fontsize=9,
                color="black" if kind == "tie" else "white",
                bbox={"facecolor": colour, "edgecolor": "none", "pad": 1.0},
            )
        left += count


def graphmae_difference_figure(records: Sequence[Record]) -> Figure | None:
    """Accuracy points above or below GraphMAE with 95 % intervals, one panel a graph."""
    values = values_of(records, "test_accuracy")
    methods = [m for m in methods_of(records) if m != _REFERENCE]
    found = {
        (m, d): comparison
        for d in datasets_of(records)
        for m in methods
        if (comparison := compare(values.get((m, d), {}), values.get((_REFERENCE, d), {}))) is not None
    }
    datasets = [d for d in datasets_of(records) if any(place[1] == d for place in found)]
    rows = [m for m in methods if any(place[0] == m for place in found)]
    if not datasets:
        return None
    figure, panels = panel_grid([dataset_name(d) for d in datasets], width=3.7, height=0.7 + 0.3 * len(rows))
    for panel, dataset in zip(panels, datasets, strict=True):
        panel.axvline(0, color="black", linewidth=0.8)
        for row, method in enumerate(rows):
            comparison = found.get((method, dataset))
            if comparison is None:
                continue
            ends = [end for end in (comparison.low, comparison.high) if end is not None]
            panel.plot(ends, [row] * len(ends), color=look(method).colour, linewidth=1.6)
            fill = "full" if ends else "none"
            panel.plot(comparison.difference, row, fillstyle=fill, **marked(method, 7))
        name_rows(panel, [method_name(m) for m in rows], shown=is_first_of_row(panel))
        panel.grid(axis="x")
        panel.margins(x=0.08)
        panel.set_xlabel("accuracy points")
    hollow = "; hollow: one seed, no interval" if any(c.low is None for c in found.values()) else ""
    explain(figure, f"Difference to GraphMAE, fair probe (95 % intervals{hollow})")
    return figure
