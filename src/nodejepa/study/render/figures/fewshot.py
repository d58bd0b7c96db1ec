"""Accuracy against labels per class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nodejepa.study.render.figures.panels import explain, is_first_of_row, method_handles, panel_grid
from nodejepa.study.render.figures.style import look
from nodejepa.study.render.names import FLOORS, dataset_name, method_name
from nodejepa.study.render.selection import Record, datasets_of, methods_of, summaries
from nodejepa.study.render.tables.fewshot import fewshot_values


def fewshot_figure(records: Sequence[Record]) -> Figure | None:
    """Accuracy against labels per class, one panel a graph."""
    scores = summaries(fewshot_values(records))
    datasets = [d for d in datasets_of(records) if any(place[1] == d for place in scores)]
    methods = [m for m in methods_of(records) if any(place[0] == m for place in scores)]
    if not datasets:
        return None
    budgets = sorted({shots for _, _, shots in scores})
    figure, panels = panel_grid([dataset_name(d) for d in datasets], width=3.6, height=2.8)
    for panel, dataset in zip(panels, datasets, strict=True):
        for method in methods:
            points = [(k, scores[method, dataset, k]) for k in budgets if (method, dataset, k) in scores]
            if points:
                drawn = look(method)
                panel.plot(
                    [budgets.index(k) for k, _ in points],
                    [score.mean for _, score in points],
                    color=drawn.colour,
                    marker=drawn.marker,
                    linestyle=drawn.line,
                    linewidth=2.0 if method in FLOORS else 1.4,  # grey and dotted: thin ones would be lost
                    markersize=6,
                    label=method_name(method),
                )
        panel.set_xticks(range(len(budgets)), [str(k) for k in budgets])
        panel.set_xlim(-0.25, len(budgets) - 0.75)
        _leave_out_far_below(panel)
        panel.grid(axis="y")
        panel.set_xlabel("labels per class")
        if is_first_of_row(panel):
            panel.set_ylabel("test accuracy (%)")
    handles = method_handles(methods, lines=True)
    seeds = sorted({score.n for score in scores.values()})
    count = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    mean = "one seed" if seeds == [1] else f"mean over {count} seeds"
    explain(figure, f"Few labels per class, fair probe ({mean})", handles, handlelength=3.2)
    return figure


def _leave_out_far_below(panel: Axes) -> None:
    """Cut the axis under all curves but the lowest where that one alone would take most of the panel."""
    lines = sorted(panel.lines, key=lambda line: float(np.min(line.get_ydata())))
    if len(lines) < 3:
        return
    lowest = float(np.min(lines[0].get_ydata()))
    rest = np.concatenate([np.asarray(line.get_ydata()) for line in lines[1:]])
    height = rest.max() - rest.min()
    if rest.min() - lowest > height:
        panel.set_ylim(rest.min() - 0.15 * height, rest.max() + 0.08 * height)
        panel.set_title(f"{panel.get_title()} ({lines[0].get_label()}: from {lowest:.0f} %)")
