"""Fine-tuning: what pretraining is worth when the encoder may learn from the labels too."""

from __future__ import annotations

from collections.abc import Sequence

from nodejepa.study.names import dataset_name, method_name
from nodejepa.study.selection import (
    Record,
    by_method_and_dataset,
    datasets_of,
    methods_of,
    scores_by,
    unfinished_notes,
    values_by,
)
from nodejepa.study.statistics import compare
from nodejepa.study.table import (
    Column,
    Row,
    Table,
    best_mean,
    floor_mark,
    number_cell,
    p_cell,
    score_cell,
    score_column,
    text_cell,
    text_column,
)
from nodejepa.study.tables.accuracy import floor_to_beat
from nodejepa.study.tables.wording import DAGGER_NOTE, FAIR_PROBE, FLOORS_NOTE, SEEDS

_FIELDS = ("test_accuracy", "finetune_test_accuracy", "scratch_test_accuracy")


def finetune_table(records: Sequence[Record]) -> Table:
    """Frozen with a probe, fine-tuned, trained from random weights, and the difference of the last two."""
    found = [scores_by(records, field, by_method_and_dataset) for field in _FIELDS]
    _, tuned_values, scratch_values = (values_by(records, field, by_method_and_dataset) for field in _FIELDS)
    groups = []
    for dataset in datasets_of(records):
        best = best_mean([score for scores in found for (_, d), score in scores.items() if d == dataset])
        rows: list[Row] = []
        for method in methods_of(records):
            place = (method, dataset)
            floor = floor_to_beat(found[0], method, dataset)
            worth = compare(tuned_values.get(place, {}), scratch_values.get(place, {}))
            cells = []
            for scores in found:
                score = scores.get(place)
                cells.append(score_cell(score, best=best, mark=floor_mark(score, floor)))
            rows.append(
                (
                    text_cell(dataset_name(dataset)),
                    text_cell(method_name(method)),
                    *cells,
                    number_cell(None if worth is None else worth.difference, signed=True),
                    p_cell(None if worth is None else worth.p),
                )
            )
        groups.append(tuple(rows))
    return Table(
        "finetune",
        "Fine-tuning: test accuracy (%)",
        (
            text_column("Dataset"),
            text_column("Method"),
            score_column("Probe"),
            score_column("Fine-tuned"),
            score_column("From random weights"),
            Column("Worth of pretraining"),
            Column("p"),
        ),
        tuple(groups),
        (
            "Worth of pretraining: fine-tuned minus the same encoder from random weights, paired over seeds; "
            "p is not corrected, bold below 0.05. The paper prints no fine-tuning results.",
            f"Probe: frozen encoder. {FAIR_PROBE}",
            SEEDS,
            "Bold accuracy: best on that graph, floors included.",
            DAGGER_NOTE,
            FLOORS_NOTE,
            *unfinished_notes(records),
        ),
    )
