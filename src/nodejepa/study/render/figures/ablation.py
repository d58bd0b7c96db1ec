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
    """Each variant: the paper's, ours under its probe and under the fair one, whose best floor is a line."""
    fair = summaries(variant_values(records))
    like = summaries(variant_values(records, "test_accuracy_paper_probe"))
    datasets = [d for d in datasets_of(records) if any(place[1] == d for place in fair)]
    if not datasets:
        return None
    variants = variants_of(records)
    floors = scores_by([r for r in records if r["method"] in FLOORS], "test_accuracy", by_method_and_dataset)
    height = 0.9 + 0.66 * len(variants)
    figure, panels = panel_grid([dataset_name(d) for d in datasets], width=4.2, height=height)
    colour = look("nodejepa").colour
    looks = (("#DDDDDD", "//"), ("#F2B48A", ""), (colour, ""))  # in the order of the bars
    for panel, dataset in zip(panels, datasets, strict=True):
        printed = {v: found for v in variants if (found := paper_ablation(v, dataset)) is not None}
        ours = ({v: side[v, dataset] for v in variants if (v, dataset) in side} for side in (like, fair))
        sides = (printed, *ours)
        floor = best_floor(floors, dataset)
        shown = [score for side in sides for score in side.values()]
        start = 5.0 * ((min(score.mean - (score.std or 0) for score in shown) - 2) // 5)
        for offset, side, (shade, hatch) in zip((-0.28, 0.0, 0.28), sides, looks, strict=True):
            for variant, score in side.items():
                row = variants.index(variant) + offset
                draw_bar(panel, row, score, start=start, decimals=1, colour=shade, hatch=hatch, height=0.26)
        if floor is not None:
            draw_floor(panel, floor)
        top = max([score.mean + (score.std or 0) for score in shown] + ([] if floor is None else [floor]))
        panel.set_xlim(start, start + 1.34 * (top - start))
        name_rows(panel, [variant_label(variant) for variant in variants], shown=is_first_of_row(panel))
        panel.set_xlabel(f"test accuracy (%), from {start:g}")
    names = ("paper", "ours, paper probe", "ours, fair probe")
    handles: list[Artist] = [
        Patch(facecolor=shade, hatch=hatch, edgecolor="#777777" if hatch else shade, label=name)
        for name, (shade, hatch) in zip(names, looks, strict=True)
    ]
    handles += [floor_handle()] if floors else []
    explain(figure, "Ablation of NodeJEPA (± std, seeds in brackets; floor: fair probe)", handles)
    return figure
