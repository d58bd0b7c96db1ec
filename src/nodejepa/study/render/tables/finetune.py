"""Fine-tuning: what pretraining is worth when the encoder may learn from the labels too."""

from __future__ import annotations

from collections.abc import Sequence

from nodejepa.report.table import Column, ReportTable, Row, number_cell, p_cell, score_cell, score_column
from nodejepa.study.render.selection import (
    Record,
    by_method_and_dataset,
    datasets_of,
    methods_of,
    summaries,
    unfinished_notes,
    values_by,
)
from nodejepa.study.render.statistics import compare, holm
from nodejepa.study.render.tables.columns import NAMES, name_cells
from nodejepa.study.render.tables.marks import best_of, floor_mark, floors_to_beat
from nodejepa.study.render.tables.wording import DAGGER_NOTE, FAIR_PROBE, FLOORS_NOTE, MOST_SEEDS, SEEDS

_FIELDS = ("test_accuracy", "finetune_test_accuracy", "scratch_test_accuracy")


def finetune_table(records: Sequence[Record]) -> ReportTable:
    """Frozen with a probe, fine-tuned, trained from random weights, and the difference of the last two."""
    values = [values_by(records, field, by_method_and_dataset) for field in _FIELDS]
    found = [*map(summaries, values)]
    probed, tuned, scratch = values
    places = [(method, dataset) for dataset in datasets_of(records) for method in methods_of(records)]
    worths = [compare(tuned.get(place, {}), scratch.get(place, {})) for place in places]
    corrected = dict(zip(places, holm([None if w is None else w.p for w in worths]), strict=True))
    worth_of = dict(zip(places, worths, strict=True))
    groups = []
    for dataset in datasets_of(records):
        best = best_of(score for scores in found for (_, d), score in scores.items() if d == dataset)
        rows: list[Row] = []
        for method in methods_of(records):
            place = (method, dataset)
            floors, worth = floors_to_beat(probed, method, dataset), worth_of[place]
            cells = [
                score_cell(scores.get(place), best=best, mark=floor_mark(mine.get(place), floors))
                for scores, mine in zip(found, values, strict=True)
            ]
            rows.append(
                (
                    *name_cells(dataset, method),
                    *cells,
                    number_cell(None if worth is None else worth.difference, signed=True),
                    p_cell(None if worth is None else worth.p),
                    p_cell(corrected[place]),
                )
            )
        groups.append(tuple(rows))
    return ReportTable(
        "finetune",
        "Fine-tuning: test accuracy (%)",
        (
            *NAMES,
            score_column("Probe"),
            score_column("Fine-tuned"),
            score_column("From random weights"),
            Column("Worth of pretraining"),
            Column("p"),
            Column("Holm p"),
        ),
        tuple(groups),
        (
            "Worth of pretraining: fine-tuned minus the same encoder from random weights, paired over seeds; "
            "Holm's correction over all tests of this table; bold: p < 0.05. The paper prints no fine-tuning "
            "results.",
            f"Probe: frozen encoder. {FAIR_PROBE}",
            SEEDS,
            f"Bold accuracy: best on that graph, floors included; {MOST_SEEDS}",
            DAGGER_NOTE,
            FLOORS_NOTE,
            *unfinished_notes(records),
        ),
    )
