"""The ablation of NodeJEPA as bars, ours beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from nodejepa.study.render.figures.panels import (
    draw_bar,
    draw_floor,
    explain,
    floor_handle,
    is_first_of_row,
    name_rows,
    panel_grid,
)
from nodejepa.study.render.figures.style import look
from nodejepa.study.render.names import FLOORS, dataset_name
from nodejepa.study.render.paper import paper_ablation
from nodejepa.study.render.selection import (
    Record,
    best_floor,
    by_method_and_dataset,
    datasets_of,
    scores_by,
    summaries,
)
from nodejepa.study.render.tables.ablation import variant_label, variant_values, variants_of


def ablation_figure(records: Sequence[Record]) -> Figure | None:
    """Variants A-F: ours beside the paper's, the best floor as a line."""
    scores = summaries(variant_values(records))
    datasets = [d for d in datasets_of(records) if any(place[1] == d for place in scores)]
    if not datasets:
        return None
    variants = variants_of(records)
    floors = scores_by([r for r in records if r["method"] in FLOORS], "test_accuracy", by_method_and_dataset)
    height = 0.9 + 0.5 * len(variants)
    figure, panels = panel_grid([dataset_name(d) for d in datasets], width=4.2, height=height)
    ours, paper = look("nodejepa").colour, "#DDDDDD"
    for panel, dataset in zip(panels, datasets, strict=True):
        measured = {v: scores[v, dataset] for v in variants if (v, dataset) in scores}
        printed = {v: found for v in variants if (found := paper_ablation(v, dataset)) is not None}
        floor = best_floor(floors, dataset)
        shown = [*measured.values(), *printed.values()]
        start = 5.0 * ((min(score.mean - (score.std or 0) for score in shown) - 2) // 5)
        for variant, score in measured.items():
            draw_bar(
                panel,
                variants.index(variant) - 0.19,
                score,
                start=start,
                decimals=1,
                colour=ours,
                height=0.36,
            )
        for variant, score in printed.items():
            row = variants.index(variant) + 0.19
            draw_bar(panel, row, score, start=start, decimals=1, colour=paper, hatch="//", height=0.36)
        if floor is not None:
            draw_floor(panel, floor)
        top = max([score.mean + (score.std or 0) for score in shown] + ([] if floor is None else [floor]))
        panel.set_xlim(start, start + 1.34 * (top - start))
        name_rows(panel, [variant_label(variant) for variant in variants], shown=is_first_of_row(panel))
        panel.set_xlabel(f"test accuracy (%), from {start:g}")
    handles: list[Artist] = [
        Patch(color=ours, label="ours"),
        Patch(facecolor=paper, hatch="//", edgecolor="#777777", label="paper (its own probe)"),
        *([floor_handle()] if floors else []),
    ]
    explain(figure, "Ablation of NodeJEPA, fair probe (± std, seeds in brackets)", handles)
    return figure
