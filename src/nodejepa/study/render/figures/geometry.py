"""How much of their space the embeddings use."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from nodejepa.study.render.figures.panels import bar_panels
from nodejepa.study.render.paper import paper_geometry
from nodejepa.study.render.selection import Record, by_method_and_dataset, datasets_of, methods_of, scores_by


def effective_rank_figure(records: Sequence[Record]) -> Figure | None:
    """Effective rank of the embeddings; floors that are as wide as the features stand in the table only."""
    methods = [method for method in methods_of(records) if method not in ("raw", "sgc")]
    title = "Effective rank of frozen embeddings"
    return _geometry(records, methods, "effective_rank", "effective rank", 1, title)


def mean_std_figure(records: Sequence[Record]) -> Figure | None:
    """Mean standard deviation of the embedding's dimensions."""
    title = "Mean per-dimension standard deviation of embeddings"
    return _geometry(records, methods_of(records), "mean_std", "mean std", 2, title)


def _geometry(
    records: Sequence[Record], methods: Sequence[str], field: str, label: str, decimals: int, title: str
) -> Figure | None:
    def printed(method: str, dataset: str) -> float | None:
        found = paper_geometry(field, method, dataset)
        return None if found is None else found.mean

    return bar_panels(
        scores_by(records, field, by_method_and_dataset),
        datasets_of(records),
        methods,
        label=label,
        decimals=decimals,
        title=title,
        paper=printed,
    )
