"""Accuracy and average rank of every method."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from nodejepa.study.render.contrasts import rank_methods
from nodejepa.study.render.figures.panels import bar_panels, draw_paper, explain, name_rows, paper_handle
from nodejepa.study.render.figures.style import look, new_figure
from nodejepa.study.render.names import dataset_name, method_name
from nodejepa.study.render.paper import paper_accuracy
from nodejepa.study.render.selection import (
    Record,
    best_floor,
    by_method_and_dataset,
    datasets_of,
    methods_of,
    on_paper_splits,
    scores_by,
)
from nodejepa.study.render.tables.ranks import paper_ranks


def accuracy_figure(records: Sequence[Record]) -> Figure | None:
    """Table 1 as bars, the best floor as a line."""
    scores = scores_by(records, "test_accuracy", by_method_and_dataset)
    datasets = datasets_of(records)
    floors = {d: floor for d in datasets if (floor := best_floor(scores, d)) is not None}

    comparable = on_paper_splits(records)

    def printed(method: str, dataset: str) -> float | None:
        found = paper_accuracy(method, dataset) if comparable else None
        return None if found is None else found.mean

    return bar_panels(
        scores,
        datasets,
        methods_of(records),
        label="test accuracy (%)",
        decimals=1,
        title="Test accuracy under the fair probe" + (" (paper: under its own)" if comparable else ""),
        from_zero=False,
        paper=printed,
        floors=floors,
    )


def average_rank_figure(records: Sequence[Record]) -> Figure | None:
    """Average rank among self-supervised methods, best on top; the paper's rank over the same graphs."""
    ranking = rank_methods(records)
    if not ranking.average:
        return None
    order = sorted(ranking.average, key=lambda method: (ranking.average[method], method))
    printed = paper_ranks(ranking.datasets, ranking.average) if on_paper_splits(records) else {}
    figure = new_figure(6.4, 1.7 + 0.34 * len(order))
    panel = figure.add_subplot()
    for row, method in enumerate(order):
        rank, drawn = ranking.average[method], look(method)
        style = {"color": drawn.colour, "hatch": drawn.hatch, "edgecolor": "white"}
        panel.barh(row, rank, height=0.7, linewidth=0, **style)  # type: ignore[arg-type]
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
