"""Time and memory of training, ours beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence

from nodejepa.report.table import Column, ReportTable, Row, number_cell, score_cell, score_column
from nodejepa.study.render.names import FLOORS
from nodejepa.study.render.paper import paper, paper_source, paper_total_seconds
from nodejepa.study.render.selection import (
    Record,
    by_method_and_dataset,
    datasets_of,
    methods_of,
    scores_by,
    unfinished_notes,
)
from nodejepa.study.render.tables.columns import NAMES, name_cells
from nodejepa.study.render.tables.wording import SEEDS

_NO_CURRICULUM = "NodeJEPA is timed at the final mask ratio and hops of its curriculum."


def efficiency_table(records: Sequence[Record]) -> ReportTable:
    """Seconds of the whole training in the paper and here, seconds an epoch, epochs and memory."""
    fields = ("total_seconds", "epoch_seconds", "epochs", "peak_memory_mb")
    found = {field: scores_by(records, field, by_method_and_dataset) for field in fields}
    groups = []
    for dataset in datasets_of(records):
        rows: list[Row] = []
        for method in (name for name in methods_of(records, floors=False) if name not in FLOORS):
            place = (method, dataset)
            printed, total = paper_total_seconds(method, dataset), found["total_seconds"].get(place)
            epochs = found["epochs"].get(place)
            rows.append(
                (
                    *name_cells(dataset, method),
                    number_cell(printed, decimals=1),
                    score_cell(total, decimals=1),
                    number_cell(None if total is None or printed is None else total.mean / printed),
                    score_cell(found["epoch_seconds"].get(place), decimals=3),
                    number_cell(None if epochs is None else epochs.mean, decimals=0),
                    score_cell(found["peak_memory_mb"].get(place), decimals=0),
                )
            )
        groups.append(tuple(rows))
    threads = sorted({int(r["threads"]) for r in records if r.get("status") == "done" and r.get("threads")})
    count = " or ".join(map(str, threads)) or "an unknown number of"
    hardware = paper()["efficiency"]["hardware"]
    return ReportTable(
        "efficiency",
        "Time and memory of training (no probe)",
        (
            *NAMES,
            Column("Paper: total (s)"),
            score_column("Ours: total (s)"),
            Column("Ours / paper"),
            score_column("Ours: epoch (s)"),
            Column("Epochs"),
            score_column("Ours: peak memory (MB)"),
        ),
        tuple(groups),
        (
            f"Different hardware: the paper ({paper_source('efficiency')}) used {hardware}; ours is a CPU, "
            f"{count} thread{'s' if threads != [1] else ''}. Compare methods within a column, not columns.",
            "Ours: total is the median of a few epochs times their number (those of NodeJEPA's curriculum as "
            "they were): without what is computed once before the first, without the look for collapse after "
            "every tenth (PatchJEPA, whose epochs are "
            "short, feels it), and without early stopping, by which the supervised GCN may need fewer. Peak "
            "memory is that of the whole process, loading included. Floors train nothing and are left out.",
            *([_NO_CURRICULUM] if any(_without_curriculum(record) for record in records) else []),
            SEEDS,
            *unfinished_notes(records),
        ),
    )


def _without_curriculum(record: Record) -> bool:
    masking: object = (record.get("config") or {}).get("masking")
    return record["method"] == "nodejepa" and isinstance(masking, dict) and masking.get("curriculum") is False
