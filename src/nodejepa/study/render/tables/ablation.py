"""The ablation of NodeJEPA: A-F beside the paper's, and G, which it does not have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nodejepa.report.summary import Summary
from nodejepa.report.table import (
    Column,
    ReportTable,
    Row,
    mean_column,
    number_cell,
    p_cell,
    score_cell,
    score_column,
    text_cell,
    text_column,
)
from nodejepa.study.render.names import FLOORS, SOLVED, dataset_name, method_name
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
from nodejepa.study.render.tables.columns import beside_paper_cells
from nodejepa.study.render.tables.marks import best_of, floor_mark, floors_to_beat
from nodejepa.study.render.tables.wording import (
    DAGGER_NOTE,
    FAIR_PROBE,
    FLOORS_NOTE,
    LIKE_WITH_LIKE,
    MOST_SEEDS,
    PAPER_PROBE,
    SEEDS,
)


def variant_letter(record: Record) -> str:
    """``"D: no VICReg"`` and ``"D"`` are variant D; a variant of another name keeps it."""
    name = str(record["variant"]).strip()
    letter = name.split(":")[0].strip()
    return letter if letter in paper_variants() else name


def variant_label(letter: str) -> str:
    """What a variant is called in tables and figures."""
    meaning = paper_variants().get(letter)
    return letter if meaning is None else f"{letter}: {meaning}"


def variant_values(records: Sequence[Record], field: str = "test_accuracy") -> dict[tuple[str, str], Values]:
    """Accuracies by variant and graph."""
    varied = [record for record in records if record.get("variant") is not None]
    return values_by(varied, field, lambda r: (variant_letter(r), str(r["dataset"])))


def variants_of(records: Sequence[Record]) -> list[str]:
    """A to G, then others by name."""
    return sorted({variant_letter(record) for record in records if record.get("variant") is not None})


@dataclass(frozen=True)
class _Probe:
    """What one probe says of variants and floors, and of variants against the full model (A)."""

    values: dict[tuple[str, str], Values]
    scores: dict[tuple[str, str], Summary]
    floors: dict[tuple[str, str], Values]
    changes: dict[tuple[str, str], tuple[float, float | None, float | None]]

    @classmethod
    def read(cls, records: Sequence[Record], field: str) -> _Probe:
        values = variant_values(records, field)
        floors = values_by([r for r in records if r["method"] in FLOORS], field, by_method_and_dataset)
        changes = _against_full(values, datasets_of(records), variants_of(records))
        values |= values_by([r for r in records if r["method"] in SOLVED], field, by_method_and_dataset)
        return cls(values, summaries({**values, **floors}), floors, changes)

    def score(self, key: str, dataset: str) -> tuple[Summary | None, Summary | None, str]:
        """Ours, the best of the graph, and the mark of a variant that is not above the floors."""
        mark = floor_mark(self.values.get((key, dataset)), floors_to_beat(self.floors, key, dataset))
        best = best_of(score for (_, at), score in self.scores.items() if at == dataset)
        return self.scores.get((key, dataset)), best, mark

    def change(self, key: str, dataset: str) -> Row:
        """Difference to the full model, its p and Holm's."""
        difference, p, corrected = self.changes.get((key, dataset), (None, None, None))
        return number_cell(difference, signed=True), p_cell(p), p_cell(corrected)


def ablation_table(records: Sequence[Record]) -> ReportTable:
    """For each graph and variant: paper and ours under both probes, each also against the full model (A)."""
    like = _Probe.read(records, "test_accuracy_paper_probe")
    fair = _Probe.read(records, "test_accuracy")

    def row(label: str, key: str, dataset: str) -> Row:
        printed, full = paper_ablation(key, dataset), paper_ablation("A", dataset)
        theirs = None if key == "A" or printed is None or full is None else printed.mean - full.mean
        ours, best, mark = like.score(key, dataset)
        ours_fair, best_fair, mark_fair = fair.score(key, dataset)
        return (
            text_cell(dataset_name(dataset)),
            text_cell(label),
            *beside_paper_cells(ours, printed, best=best, mark=mark),
            number_cell(theirs, signed=True),
            *like.change(key, dataset),
            score_cell(ours_fair, best=best_fair, mark=mark_fair),
            *fair.change(key, dataset),
        )

    keys = [(variant_label(letter), letter) for letter in variants_of(records)]
    keys += [(method_name(name), name) for name in methods_of(records) if name in (*SOLVED, *FLOORS)]
    return ReportTable(
        "ablation",
        "Ablation of NodeJEPA: test accuracy (%) under both probes",
        (
            text_column("Dataset"),
            text_column("Variant"),
            mean_column("Paper"),
            score_column("Ours, paper probe"),
            Column("Difference"),
            Column("Paper: against A"),
            Column("Ours, paper probe: against A"),
            Column("p"),
            Column("Holm p"),
            score_column("Ours, fair probe"),
            Column("Ours, fair probe: against A"),
            Column("p (fair)"),
            Column("Holm p (fair)"),
        ),
        tuple(tuple(row(label, key, dataset) for label, key in keys) for dataset in datasets_of(records)),
        (
            f"Paper: {paper_source('ablation')}, 3 seeds. {LIKE_WITH_LIKE}",
            "Against A: minus the full model; t-test paired over seeds (Welch's where they differ), p as it "
            "is and after Holm's correction over all variants and graphs; bold: p < 0.05.",
            PAPER_PROBE,
            FAIR_PROBE,
            SEEDS,
            f"Bold accuracy: best of the graph under that probe, floors included; {MOST_SEEDS}",
            DAGGER_NOTE,
            FLOORS_NOTE,
            *unfinished_notes(records),
        ),
    )


def _against_full(
    values: dict[tuple[str, str], Values], datasets: Sequence[str], variants: Sequence[str]
) -> dict[tuple[str, str], tuple[float, float | None, float | None]]:
    places = [(v, d) for d in datasets for v in variants if v != "A"]
    found = {place: compare(values.get(place, {}), values.get(("A", place[1]), {})) for place in places}
    tested = {place: comparison for place, comparison in found.items() if comparison is not None}
    corrected = holm([comparison.p for comparison in tested.values()])
    return {
        place: (comparison.difference, comparison.p, p)
        for (place, comparison), p in zip(tested.items(), corrected, strict=True)
    }
