"""The ablation A-F of NodeJEPA, ours beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence

from nodejepa.report.table import (
    Column,
    ReportTable,
    Row,
    TableCell,
    number_cell,
    p_cell,
    text_cell,
    text_column,
)
from nodejepa.study.render.names import FLOORS, dataset_name, method_name
from nodejepa.study.render.paper import paper_ablation, paper_source, paper_variants
from nodejepa.study.render.selection import (
    Record,
    Values,
    by_method_and_dataset,
    datasets_of,
    methods_of,
    summaries,
    unfinished_notes,
    values_by,
)
from nodejepa.study.render.statistics import compare, holm
from nodejepa.study.render.tables.columns import beside_paper, beside_paper_cells
from nodejepa.study.render.tables.marks import best_of, floor_mark, floors_to_beat
from nodejepa.study.render.tables.wording import DAGGER_NOTE, FAIR_PROBE, FLOORS_NOTE, MOST_SEEDS, SEEDS


def variant_letter(record: Record) -> str:
    """``"D: no VICReg"`` and ``"D"`` are variant D; a variant of another name keeps it."""
    name = str(record["variant"]).strip()
    letter = name.split(":")[0].strip()
    return letter if letter in paper_variants() else name


def variant_label(letter: str) -> str:
    """What a variant is called in tables and figures."""
    meaning = paper_variants().get(letter)
    return letter if meaning is None else f"{letter}: {meaning}"


def variant_values(records: Sequence[Record]) -> dict[tuple[str, str], Values]:
    """Accuracies by variant and graph."""
    varied = [record for record in records if record.get("variant") is not None]
    return values_by(varied, "test_accuracy", lambda r: (variant_letter(r), str(r["dataset"])))


def variants_of(records: Sequence[Record]) -> list[str]:
    """A to F, then others by name."""
    return sorted({variant_letter(record) for record in records if record.get("variant") is not None})


def ablation_table(records: Sequence[Record]) -> ReportTable:
    """Variants down; for each graph paper, ours, their difference, and ours against the full model (A)."""
    values = variant_values(records)
    floors = values_by([r for r in records if r["method"] in FLOORS], "test_accuracy", by_method_and_dataset)
    datasets = datasets_of(records)
    columns: list[Column] = [text_column("Variant")]
    for name in map(dataset_name, datasets):
        columns += [*beside_paper(name), Column(f"{name}: ours - A"), Column(f"{name}: Holm p")]
    changes = _against_full(values, datasets, variants_of(records))
    scores = summaries({**values, **floors})
    best = {d: best_of(score for (_, at), score in scores.items() if at == d) for d in datasets}

    def row(label: str, key: str, is_floor: bool) -> Row:
        cells: list[TableCell] = [text_cell(label)]
        for dataset in datasets:
            ours, printed = scores.get((key, dataset)), paper_ablation(key, dataset)
            mark = floor_mark(values.get((key, dataset)), floors_to_beat(floors, key, dataset))
            change, p = (None, None) if is_floor else changes.get((key, dataset), (None, None))
            cells += beside_paper_cells(ours, printed, best=best[dataset], mark=mark)
            cells += [number_cell(change, signed=True), p_cell(p)]
        return tuple(cells)

    return ReportTable(
        "ablation",
        "Ablation of NodeJEPA: test accuracy (%) under the fair probe",
        tuple(columns),
        (
            tuple(row(variant_label(letter), letter, False) for letter in variants_of(records)),
            tuple(row(method_name(name), name, True) for name in methods_of(records) if name in FLOORS),
        ),
        (
            f"Paper: {paper_source('ablation')}, 3 seeds, under its own probe.",
            "Ours - A: against the full model; t-test paired over seeds (Welch's where they differ), Holm's "
            "correction over all of them; bold: p < 0.05.",
            FAIR_PROBE,
            SEEDS,
            f"Bold accuracy: best of the column, floors included; {MOST_SEEDS}",
            DAGGER_NOTE,
            FLOORS_NOTE,
            *unfinished_notes(records),
        ),
    )


def _against_full(
    values: dict[tuple[str, str], Values], datasets: Sequence[str], variants: Sequence[str]
) -> dict[tuple[str, str], tuple[float, float | None]]:
    places = [(v, d) for d in datasets for v in variants if v != "A"]
    found = {place: compare(values.get(place, {}), values.get(("A", place[1]), {})) for place in places}
    tested = {place: comparison for place, comparison in found.items() if comparison is not None}
    corrected = holm([comparison.p for comparison in tested.values()])
    return {
        place: (comparison.difference, p)
        for (place, comparison), p in zip(tested.items(), corrected, strict=True)
    }
