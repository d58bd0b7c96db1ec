"""The ablation of NodeJEPA: A-F beside the paper's, and variants that it does not have."""

from collections.abc import Sequence

from nodejepa.report.table import Column, ReportTable, TableCell
from studies.render.paper import (
    FLOORS,
    SOLVED,
    method_name,
    paper_ablation,
    paper_source,
    paper_variants,
)
from studies.render.selection import (
    Place,
    Record,
    Values,
    datasets_of,
    methods_of,
    unfinished_notes,
    values_by,
    values_of,
)
from studies.render.statistics import Comparison, compare
from studies.render.tables.shared import Note, Scored, by_graph, tested


def variant_letter(record: Record) -> str:
    """``"D: no VICReg"`` and ``"D"`` are variant D; a variant of another name keeps it."""
    name = str(record["variant"]).strip()
    letter = name.split(":")[0].strip()
    return letter if letter in paper_variants() else name


def variant_label(letter: str) -> str:
    """What a variant is called in tables and figures."""
    meaning = paper_variants().get(letter)
    return letter if meaning is None else f"{letter}: {meaning}"


def variant_values(records: Sequence[Record], field: str = "test_accuracy") -> dict[Place, Values]:
    """Accuracies by variant and graph."""
    varied = [record for record in records if record.get("variant") is not None]
    return values_by(varied, field, lambda r: (variant_letter(r), str(r["dataset"])))


def variants_of(records: Sequence[Record]) -> list[str]:
    """Letters, then others by name."""
    return sorted({variant_letter(record) for record in records if record.get("variant") is not None})


def ablation_table(records: Sequence[Record]) -> ReportTable:
    """For each graph and variant: paper and ours under both probes, each also against the full model (A)."""
    like, like_change = _probe(records, "test_accuracy_paper_probe")
    fair, fair_change = _probe(records, "test_accuracy")

    def printed_change(key: str, dataset: str) -> TableCell:
        printed, full = paper_ablation(key, dataset), paper_ablation("A", dataset)
        theirs = None if key == "A" or printed is None or full is None else printed.mean - full.mean
        return TableCell.number(theirs, signed=True)

    others = [name for name in methods_of(records) if name in (*SOLVED, *FLOORS)]
    return by_graph(
        "ablation",
        "Ablation of NodeJEPA: test accuracy (%) under both probes",
        records,
        {
            **like.beside_paper(paper_ablation, ("Paper", "Ours, paper probe", "Difference")),
            Column("Paper: against A"): printed_change,
            **tested(like_change, ("Ours, paper probe: against A", "p", "Holm p")),
            Column.score("Ours, fair probe"): fair.cell,
            **tested(fair_change, ("Ours, fair probe: against A", "p (fair)", "Holm p (fair)")),
        },
        (
            f"Paper: {paper_source('ablation')}, 3 seeds. {Note.LIKE_WITH_LIKE}",
            "Against A: minus the full model; t-test paired over seeds (Welch's where they differ), p as it "
            "is and after Holm's correction over all variants and graphs; bold: p < 0.05.",
            Note.PAPER_PROBE,
            Note.FAIR_PROBE,
            Note.SEEDS,
            f"Bold accuracy: best of the graph under that probe, floors included; {Note.MOST_SEEDS}",
            Note.DAGGER,
            Note.FLOORS,
            *unfinished_notes(records),
        ),
        _labels(records) | {name: method_name(name) for name in others},
        "Variant",
    )


def _labels(records: Sequence[Record]) -> dict[str, str]:
    return {letter: variant_label(letter) for letter in variants_of(records)}


def _probe(records: Sequence[Record], field: str) -> tuple[Scored, dict[Place, Comparison | None]]:
    """What one probe says of variants and floors, and of a variant against the full model (A)."""
    values, datasets = variant_values(records, field), datasets_of(records)
    found = {
        (letter, dataset): compare(values.get((letter, dataset), {}), values.get(("A", dataset), {}))
        for letter in variants_of(records)
        for dataset in datasets
        if letter != "A"
    }
    others = values_of([r for r in records if r["method"] in (*SOLVED, *FLOORS)], field)
    return Scored(values | others), found
