"""The ablation of NodeJEPA: A-F beside the paper's, G, which it does not have, and prediction's share."""

from collections.abc import Callable, Mapping, Sequence

from nodejepa.report.table import Column, ReportTable, Row, TableCell
from nodejepa.study.render.paper import (
    FLOORS,
    SOLVED,
    dataset_name,
    method_name,
    paper_ablation,
    paper_source,
    paper_variants,
)
from nodejepa.study.render.selection import (
    Place,
    Record,
    Values,
    datasets_of,
    methods_of,
    summaries,
    unfinished_notes,
    values_by,
    values_of,
)
from nodejepa.study.render.statistics import compare, holm_of
from nodejepa.study.render.tables.shared import Note, Scored, tested_cells

_EPOCHS = ("1", "10", "100")  # the last of the run stands beside them


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
    """A to G, then others by name."""
    return sorted({variant_letter(record) for record in records if record.get("variant") is not None})


def ablation_table(records: Sequence[Record]) -> ReportTable:
    """For each graph and variant: paper and ours under both probes, each also against the full model (A)."""
    like, like_change = _probe(records, "test_accuracy_paper_probe")
    fair, fair_change = _probe(records, "test_accuracy")

    def row(label: str, key: str, dataset: str) -> Row:
        printed, full = paper_ablation(key, dataset), paper_ablation("A", dataset)
        theirs = None if key == "A" or printed is None or full is None else printed.mean - full.mean
        return (
            TableCell.name(dataset_name(dataset)),
            TableCell.name(label),
            *like.beside_paper(key, dataset, printed),
            TableCell.number(theirs, signed=True),
            *like_change(key, dataset),
            fair.cell(key, dataset),
            *fair_change(key, dataset),
        )

    keys = [(variant_label(letter), letter) for letter in variants_of(records)]
    keys += [(method_name(name), name) for name in methods_of(records) if name in (*SOLVED, *FLOORS)]
    return ReportTable(
        "ablation",
        "Ablation of NodeJEPA: test accuracy (%) under both probes",
        (
            *map(Column.name, ("Dataset", "Variant")),
            Column.mean("Paper"),
            Column.score("Ours, paper probe"),
            *map(Column, ("Difference", "Paper: against A", "Ours, paper probe: against A", "p", "Holm p")),
            Column.score("Ours, fair probe"),
            *map(Column, ("Ours, fair probe: against A", "p (fair)", "Holm p (fair)")),
        ),
        tuple(tuple(row(label, key, dataset) for label, key in keys) for dataset in datasets_of(records)),
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
    )


def _probe(records: Sequence[Record], field: str) -> tuple[Scored, Callable[[str, str], Row]]:
    """What one probe says of variants and floors, and the cells of a variant against the full model (A)."""
    values, datasets = variant_values(records, field), datasets_of(records)
    found = {
        (letter, dataset): compare(values.get((letter, dataset), {}), values.get(("A", dataset), {}))
        for letter in variants_of(records)
        for dataset in datasets
        if letter != "A"
    }
    corrected = holm_of(found)
    others = values_of([r for r in records if r["method"] in (*SOLVED, *FLOORS)], field)

    def change(key: str, dataset: str) -> Row:
        return tested_cells(found.get((key, dataset)), corrected.get((key, dataset)))

    return Scored(values | others), change


def prediction_share_table(records: Sequence[Record]) -> ReportTable | None:
    """How much of the encoder's gradient comes from prediction, where records tell; none where none does."""
    found = {
        name: variant_values([{**r, "share": _share(r, name)} for r in records], "share")
        for name in (*_EPOCHS, "last")
    }
    if not any(found.values()):
        return None
    return ReportTable(
        "prediction-share",
        "Prediction's share of the encoder's gradient (%), no probe",
        (
            *map(Column.name, ("Dataset", "Variant")),
            *(Column.score(f"Epoch {name}") for name in _EPOCHS),
            Column.score("Last epoch"),
        ),
        tuple(
            tuple(
                (
                    TableCell.name(dataset_name(dataset)),
                    TableCell.name(variant_label(letter)),
                    *(TableCell.score(summaries(values).get((letter, dataset))) for values in found.values()),
                )
                for letter in variants_of(records)
            )
            for dataset in datasets_of(records)
        ),
        (
            "Length of the prediction term's gradient beside that of all regularisers together, both with "
            "their weights, with respect to the weights of the context encoder.",
            "Near 0 the term is inert: nothing that changes it alone can change the embeddings by much. A "
            "dash: the record is older than this figure.",
            Note.SEEDS,
        ),
    )


def _share(record: Record, name: str) -> float | None:
    shares: object = record.get("prediction_share")
    if not isinstance(shares, Mapping) or not shares:
        return None
    found = shares.get(max(shares, key=int) if name == "last" else name)
    return None if found is None else 100.0 * float(found)
