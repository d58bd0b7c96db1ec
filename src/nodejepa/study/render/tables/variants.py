"""Variants of one method side by side: every graph, and the mean change against the first variant."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from nodejepa.report.table import (
    Column,
    ReportTable,
    Row,
    number_cell,
    p_cell,
    score_cell,
    score_column,
    text_cell,
    text_column,
)
from nodejepa.study.render.names import dataset_name
from nodejepa.study.render.selection import (
    Record,
    Values,
    datasets_of,
    means_on_shared_seeds,
    summaries,
    unfinished_notes,
    values_by,
)
from nodejepa.study.render.statistics import compare
from nodejepa.study.render.tables.marks import best_of
from nodejepa.study.render.tables.wording import FAIR_PROBE, MOST_SEEDS, SEEDS

Place = tuple[str, str, str]  # split, variant, graph


def variants_table(records: Sequence[Record]) -> ReportTable:
    """A group a split, a row a variant, a column a graph."""
    varied = [record for record in records if record.get("variant") is not None]
    values = values_by(
        varied, "test_accuracy", lambda r: (str(r["split"]), str(r["variant"]), str(r["dataset"]))
    )
    datasets, variants = datasets_of(varied), sorted({str(record["variant"]) for record in varied})
    first = variants[0]
    groups = [
        tuple(_row(values, split, variant, first, datasets) for variant in variants)
        for split in sorted({str(record["split"]) for record in varied}, reverse=True)
    ]
    return ReportTable(
        "variants",
        "Variants: test accuracy (%) under the fair probe",
        (
            text_column("Split"),
            text_column("Variant"),
            *(score_column(dataset_name(name)) for name in datasets),
            Column(f"Mean against {first}"),
            Column("p"),
        ),
        tuple(groups),
        (
            f"Mean against {first}: of the differences on every graph, each over the seeds that both have; "
            "p of a paired t-test over the graphs, not corrected.",
            SEEDS,
            f"Bold: best of the graph on that split; {MOST_SEEDS}",
            FAIR_PROBE,
            *unfinished_notes(records),
        ),
    )


def _row(values: dict[Place, Values], split: str, variant: str, first: str, datasets: Sequence[str]) -> Row:
    scores = summaries(values)
    cells = []
    mine: Values = {}
    theirs: Values = {}
    for number, dataset in enumerate(datasets):
        best = best_of(score for (s, _, d), score in scores.items() if (s, d) == (split, dataset))
        cells.append(score_cell(scores.get((split, variant, dataset)), best=best))
        pair = {name: values.get((split, name, dataset), {}) for name in {variant, first}}
        if means := means_on_shared_seeds(pair):
            mine[number], theirs[number] = means[variant], means[first]
    found = None if variant == first else compare(mine, theirs)
    mean = None if found is None else fmean(mine[n] - theirs[n] for n in mine)
    return (
        text_cell(split),
        text_cell(variant),
        *cells,
        number_cell(mean, signed=True),
        p_cell(None if found is None else found.p),
    )
