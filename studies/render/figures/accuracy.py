"""Accuracy, ranks, few labels, the ablation, geometry of the embeddings, and which differences hold."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from studies.render.figures.panels import (
    bar_panels,
    barred,
    baseline_handle,
    draw_bar,
    draw_baseline,
    draw_paper,
    explain,
    is_first_of_row,
    marked,
    method_handles,
    name_rows,
    new_figure,
    panel_grid,
    paper_handle,
)
from studies.render.frame import (
    best_baseline,
    datasets_of,
    methods_of,
    on_paper_splits,
    scores_by,
    summaries,
    values_by,
)
from studies.render.paper import (
    JEPA,
    UNTRAINED,
    dataset_name,
    look,
    method_name,
    paper_ablation,
    paper_accuracy,
    paper_geometry,
)
from studies.render.statistics import Outcome, compare, contrasts, rank_methods
from studies.render.tables.accuracy import fewshot_values, variant_label, variant_values, variants_of
from studies.render.tables.differences import paper_ranks

OUTCOMES: tuple[tuple[Outcome, str, str], ...] = (
    ("win", "#332288", ""),
    ("tie", "#E6E6E6", ""),
    ("loss", "#806040", "///"),
)  # no method's
_REFERENCE = "graphmae"


def accuracy_figure(frame: pd.DataFrame) -> Figure | None:
    """Table 1 as bars, the best untrained baseline as a line."""
    scores = scores_by(frame, "test_accuracy")
    datasets = datasets_of(frame)
    baselines = {d: baseline for d in datasets if (baseline := best_baseline(scores, d)) is not None}

    comparable = on_paper_splits(frame)

    def printed(method: str, dataset: str) -> float | None:
        found = paper_accuracy(method, dataset) if comparable else None
        return None if found is None else found.mean

    return bar_panels(
        scores,
        datasets,
        methods_of(frame),
        label="test accuracy (%)",
        decimals=1,
        title="Test accuracy under the fair probe" + (" (paper: under its own)" if comparable else ""),
        from_zero=False,
        paper=printed,
        baselines=baselines,
    )


def average_rank_figure(frame: pd.DataFrame) -> Figure | None:
    """Average rank among self-supervised methods, best on top; the paper's rank over the same graphs."""
    ranking = rank_methods(frame)
    if not ranking.average:
        return None
    order = sorted(ranking.average, key=lambda method: (ranking.average[method], method))
    printed = paper_ranks(ranking.datasets, ranking.average) if on_paper_splits(frame) else {}
    figure = new_figure(6.4, 1.7 + 0.34 * len(order))
    panel = figure.add_subplot()
    for row, method in enumerate(order):
        rank = ranking.average[method]
        panel.barh(row, rank, height=0.7, **barred(method))
        right = panel.get_yaxis_transform()
        panel.text(1.0, row, f"{rank:.2f}", transform=right, ha="right", va="center", fontsize=9)
    shown = [method for method in order if method in printed]
    if shown:
        draw_paper(panel, [printed[m] for m in shown], [order.index(m) for m in shown])
    name_rows(panel, [method_name(method) for method in order], shown=True)
    panel.set_xlim(0, len(order) + 0.8)
    where = ", ".join(dataset_name(d) for d in ranking.datasets)
    title = f"Average rank among self-supervised methods, fair probe ({where})"
    explain(figure, title, [paper_handle("paper's accuracies on these graphs")] if shown else [])
    panel.set_xlabel("average rank (1 is best)")
    return figure


def fewshot_figure(frame: pd.DataFrame) -> Figure | None:
    """Accuracy against labels per class, one panel a graph."""
    scores = summaries(fewshot_values(frame))
    datasets = [d for d in datasets_of(frame) if any(place[1] == d for place in scores)]
    methods = [m for m in methods_of(frame) if any(place[0] == m for place in scores)]
    if not datasets:
        return None
    budgets = sorted({shots for _, _, shots in scores})
    figure, panels = panel_grid([dataset_name(d) for d in datasets], width=3.6, height=2.8)
    for panel, dataset in zip(panels, datasets, strict=True):
        for method in methods:
            points = [(k, scores[method, dataset, k]) for k in budgets if (method, dataset, k) in scores]
            if points:
                panel.plot(
                    [budgets.index(k) for k, _ in points],
                    [score.mean for _, score in points],
                    linestyle=look(method).line,
                    linewidth=2.0 if method in UNTRAINED else 1.4,  # grey and dotted: thin ones would be lost
                    label=method_name(method),
                    **marked(method, 6),
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


def ablation_figure(frame: pd.DataFrame) -> Figure | None:
    """Each variant: the paper's, ours under its probe and under the fair one; the best baseline is a line."""
    fair = summaries(variant_values(frame))
    like = summaries(variant_values(frame, "test_accuracy_paper_probe"))
    datasets = [d for d in datasets_of(frame) if any(place[1] == d for place in fair)]
    if not datasets:
        return None
    variants = variants_of(frame)
    baselines = scores_by(frame[frame.method.isin(UNTRAINED)], "test_accuracy")
    height = 0.9 + 0.66 * len(variants)
    figure, panels = panel_grid([dataset_name(d) for d in datasets], width=4.2, height=height)
    colour = look("nodejepa").colour
    looks = (("#DDDDDD", "//"), ("#F2B48A", ""), (colour, ""))  # in the order of the bars
    for panel, dataset in zip(panels, datasets, strict=True):
        printed = {v: found for v in variants if (found := paper_ablation(v, dataset)) is not None}
        ours = ({v: side[v, dataset] for v in variants if (v, dataset) in side} for side in (like, fair))
        sides = (printed, *ours)
        baseline = best_baseline(baselines, dataset)
        shown = [score for side in sides for score in side.values()]
        start = 5.0 * ((min(score.mean - (score.std or 0) for score in shown) - 2) // 5)
        for offset, side, (shade, hatch) in zip((-0.28, 0.0, 0.28), sides, looks, strict=True):
            for variant, score in side.items():
                row = variants.index(variant) + offset
                draw_bar(panel, row, score, start=start, decimals=1, colour=shade, hatch=hatch, height=0.26)
        if baseline is not None:
            draw_baseline(panel, baseline)
        top = max(
            [score.mean + (score.std or 0) for score in shown] + ([] if baseline is None else [baseline])
        )
        panel.set_xlim(start, start + 1.34 * (top - start))
        name_rows(panel, [variant_label(variant) for variant in variants], shown=is_first_of_row(panel))
        panel.set_xlabel(f"test accuracy (%), from {start:g}")
    names = ("paper", "ours, paper probe", "ours, fair probe")
    handles: list[Artist] = [
        Patch(facecolor=shade, hatch=hatch, edgecolor="#777777" if hatch else shade, label=name)
        for name, (shade, hatch) in zip(names, looks, strict=True)
    ]
    handles += [baseline_handle()] if baselines else []
    explain(figure, "Ablation of NodeJEPA (± std, seeds in brackets; dashed: fair probe)", handles)
    return figure


def effective_rank_figure(frame: pd.DataFrame) -> Figure | None:
    """Effective rank of the embeddings, uncentred as the paper's once all records have it.

    Untrained baselines that are as wide as the features stand in the table only.
    """
    methods = [name for name in methods_of(frame) if name not in UNTRAINED or name == "random-gcn"]
    field = "effective_rank_uncentred"
    shown = [scores_by(frame[frame.method.isin(methods)], name) for name in (field, "effective_rank")]
    uncentred = {place: score.n for place, score in shown[0].items()} == {p: s.n for p, s in shown[1].items()}
    field = field if uncentred and shown[0] else "effective_rank"
    title = "Effective rank of frozen embeddings" + (", uncentred" if field.endswith("uncentred") else "")
    return _geometry(frame, methods, field, "effective rank", 1, title)


def mean_std_figure(frame: pd.DataFrame) -> Figure | None:
    """Mean standard deviation of the embedding's dimensions."""
    title = "Mean per-dimension standard deviation of embeddings"
    return _geometry(frame, methods_of(frame), "mean_std", "mean std", 2, title)


def _geometry(
    frame: pd.DataFrame, methods: Sequence[str], field: str, label: str, decimals: int, title: str
) -> Figure | None:
    def printed(method: str, dataset: str) -> float | None:
        found = paper_geometry(field.removesuffix("_uncentred"), method, dataset)
        return None if found is None else found.mean

    return bar_panels(
        scores_by(frame, field),
        datasets_of(frame),
        methods,
        label=label,
        decimals=decimals,
        title=title,
        paper=printed,
    )


def wins_figure(frame: pd.DataFrame) -> Figure | None:
    """For both JEPA variants: graphs won, tied and lost against each other method.

    Corrected under the fair probe, and as the paper counts: under its probe, not corrected.
    """
    found = {
        (variant, corrected): {
            (c.opponent, c.dataset): outcome
            for c in contrasts(frame, variant, field)
            if (outcome := c.outcome(corrected=corrected)) is not None
        }
        for corrected, field in ((True, "test_accuracy"), (False, "test_accuracy_paper_probe"))
        for variant in JEPA
    }
    shown = {place: outcomes for place, outcomes in found.items() if outcomes}
    if not shown:
        return None
    opponents = [
        m for m in methods_of(frame) if any(name == m for side in shown.values() for name, _ in side)
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


def graphmae_difference_figure(frame: pd.DataFrame) -> Figure | None:
    """Accuracy points above or below GraphMAE with 95 % intervals, one panel a graph."""
    values = values_by(frame, "test_accuracy")
    methods = [m for m in methods_of(frame) if m != _REFERENCE]
    found = {
        (m, d): comparison
        for d in datasets_of(frame)
        for m in methods
        if (comparison := compare(values.get((m, d)), values.get((_REFERENCE, d)))) is not None
    }
    datasets = [d for d in datasets_of(frame) if any(place[1] == d for place in found)]
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
