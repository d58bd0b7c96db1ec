"""What training costs: total time, time an epoch, and accuracy against time."""

from statistics import median

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from studies.render.figures.panels import (
    MIN_WIDTH,
    bar_panels,
    barred,
    explain,
    is_first_of_row,
    log_ticks,
    marked,
    method_handles,
    new_figure,
    panel_grid,
)
from studies.render.frame import best_baseline, datasets_of, methods_of, scores_by
from studies.render.paper import JEPA, UNTRAINED, dataset_name, look, method_name, paper_total_seconds
from studies.render.tables.efficiency import curves_of, training_seconds


def total_time_figure(frame: pd.DataFrame) -> Figure | None:
    """Seconds of the whole training; the paper's on its own hardware."""
    return bar_panels(
        scores_by(frame, "total_seconds"),
        datasets_of(frame),
        [m for m in methods_of(frame) if m not in UNTRAINED],
        label="seconds (logarithmic)",
        decimals=0,
        title="Total training time; the paper's is on a GPU, ours on a CPU",
        log=True,
        paper=paper_total_seconds,
    )


def epoch_time_figure(frame: pd.DataFrame) -> Figure | None:
    """Seconds an epoch of both JEPA variants on every graph."""
    scores = scores_by(frame, "epoch_seconds")
    shown = {place: score for place, score in scores.items() if place[0] in JEPA}
    datasets = [d for d in datasets_of(frame) if any(place[1] == d for place in shown)]
    if not datasets:
        return None
    figure = new_figure(max(1.9 + 1.35 * len(datasets), MIN_WIDTH), 3.6)
    panel = figure.add_subplot()
    for side, method in zip((-0.2, 0.2), JEPA, strict=True):
        for place, dataset in enumerate(datasets):
            score = shown.get((method, dataset))
            if score is None:
                continue
            panel.bar(place + side, score.mean, width=0.38, yerr=score.std, capsize=2, **barred(method))
            panel.annotate(
                f"{score.mean:.2g}" if score.mean < 10 else f"{score.mean:.0f}",
                (place + side, score.mean + (score.std or 0)),
                (0, 3),
                textcoords="offset points",
                ha="center",
                fontsize=8,
            )
    panel.set_xticks(range(len(datasets)), [dataset_name(d) for d in datasets])
    panel.set_ylabel("seconds (logarithmic)")
    panel.set_yscale("log")
    low, high = min(score.mean for score in shown.values()), max(score.mean for score in shown.values())
    panel.set_ylim(low / 3, high * (high / low * 3) ** 0.15)
    log_ticks(panel.yaxis, low / 3, high)
    handles = [
        Patch(facecolor=drawn.colour, hatch=drawn.hatch, edgecolor="white", label=method_name(method))
        for method, drawn in ((method, look(method)) for method in JEPA)
    ]
    explain(figure, "Time of an epoch (CPU)", handles)
    return figure


def epoch_curve_figure(frame: pd.DataFrame) -> Figure | None:
    """Seconds against epochs of both JEPA variants: median over passes, and the range as an area."""
    curves = curves_of(frame)
    datasets = [d for d in datasets_of(frame) if any(place[1] == d for place in curves)]
    if not datasets:
        return None
    figure, panels = panel_grid([dataset_name(d) for d in datasets], width=4.2, height=2.9)
    for panel, dataset in zip(panels, datasets, strict=True):
        for method in (m for m in JEPA if (m, dataset) in curves):
            passes, drawn = curves[method, dataset], look(method)
            together = [*zip(*(curve.seconds for curve in passes), strict=False)]  # as long as the shortest
            epochs = range(2, 2 + len(together))
            low, high = [min(s) for s in together], [max(s) for s in together]
            panel.fill_between(epochs, low, high, color=drawn.colour, alpha=0.25, linewidth=0)
            panel.plot(epochs, [median(s) for s in together], color=drawn.colour, linewidth=1.4)
            if method == "nodejepa":
                panel.axvline(passes[0].jump - 0.5, color="#444444", linestyle="--", linewidth=1.0, zorder=1)
        every = [s for (_, d), passes in curves.items() if d == dataset for c in passes for s in c.seconds]
        panel.set_yscale("log")
        panel.set_ylim(min(every) / 1.5, max(every) * 1.5)
        log_ticks(panel.yaxis, min(every) / 1.5, max(every) * 1.5)
        panel.grid(axis="y")
        panel.set_xlabel("epoch")
        if is_first_of_row(panel):
            panel.set_ylabel("seconds (logarithmic)")
    shown = [m for m in JEPA if any(place[0] == m for place in curves)]
    title = (
        "Time of each epoch (CPU; area: range over passes; dashed: NodeJEPA's masks reach farther; "
        "peaks: looks for collapse)"
    )
    handles = [Patch(color=look(method).colour, label=method_name(method)) for method in shown]
    explain(figure, title, handles)
    return figure


def accuracy_time_figure(frame: pd.DataFrame, accuracies: pd.DataFrame) -> Figure | None:
    """Accuracy (of the main study) against training time (of the efficiency study), one panel a graph."""
    seconds = training_seconds(frame, accuracies)
    scores = scores_by(accuracies, "test_accuracy")
    both = [place for place in seconds if place in scores and place[0] not in UNTRAINED]
    datasets = [d for d in datasets_of(frame) if any(place[1] == d for place in both)]
    methods = [m for m in methods_of(accuracies) if any(place[0] == m for place in both)]
    if not datasets:
        return None
    figure, panels = panel_grid([dataset_name(d) for d in datasets], width=3.6, height=2.7)
    for panel, dataset in zip(panels, datasets, strict=True):
        for method in (m for m in methods if (m, dataset) in both):
            score, spent = scores[method, dataset], seconds[method, dataset].mean
            panel.errorbar(
                spent, score.mean, score.std, linestyle="", capsize=2, elinewidth=1, **marked(method, 8)
            )
        baseline = best_baseline(scores, dataset)
        if baseline is not None:
            panel.axhline(baseline, color="#444444", linestyle="--", linewidth=1.0, zorder=1)
        times = [seconds[place].mean for place in both if place[1] == dataset]
        panel.set_xscale("log")
        log_ticks(panel.xaxis, min(times), max(times))
        panel.margins(x=0.15, y=0.12)
        panel.grid(axis="both")
        panel.set_xlabel("training time (s, logarithmic)")
        if is_first_of_row(panel):
            panel.set_ylabel("test accuracy (%)")
    title = "Accuracy (fair probe) against training time on a CPU; dashed: best untrained baseline"
    explain(figure, title, method_handles(methods, lines=False))
    return figure
