"""Accuracy of every method on every graph (the paper's Table 1), with few labels, and after fine-tuning."""

from collections.abc import Sequence
from functools import partial

from nodejepa.report.table import Column, ReportTable, Row, TableCell
from studies.render.paper import (
    FLOORS,
    dataset_name,
    method_name,
    paper_accuracy,
    paper_fewshot,
    paper_source,
)
from studies.render.selection import (
    Record,
    Values,
    datasets_of,
    methods_of,
    unfinished_notes,
    values_by,
    values_of,
)
from studies.render.statistics import compare
from studies.render.tables.shared import (
    Cell,
    Cells,
    Note,
    Scored,
    best_on,
    by_graph,
    floor_mark,
    floors_to_beat,
    tested,
)

_SUPERVISED = (
    "The paper's supervised GCN must have seen more labels than the probe. Ours learns from the labels of "
    "its row only; validation labels (30 a class) tell it when to stop, as they choose scaling and C of "
    "every fair probe."
)
_FIELDS = ("test_accuracy", "finetune_test_accuracy", "scratch_test_accuracy")


def main_table(records: Sequence[Record]) -> ReportTable:
    """Methods down, graphs across, under the fair probe."""
    fair, heads = (Scored(values_of(records, f)) for f in ("test_accuracy", "head_test_accuracy"))
    datasets = datasets_of(records)

    def row(label: str, found: Scored, method: str) -> Row:
        cells = []
        for dataset in datasets:
            best = best_on(dataset, fair.scores, heads.scores)
            mine, floors = found.values.get((method, dataset)), floors_to_beat(fair.values, method, dataset)
            mark = floor_mark(mine, floors)
            cells.append(TableCell.score(found.scores.get((method, dataset)), best=best, mark=mark))
        return (TableCell.name(label), *cells)

    trained: list[Row] = []
    floors: list[Row] = []
    for method in methods_of(records):
        (floors if method in FLOORS else trained).append(row(method_name(method), fair, method))
        if any(owner == method for owner, _ in heads.values):
            trained.append(row(f"{method_name(method)}, own head", heads, method))
    notes = [Note.FAIR_PROBE, Note.SEEDS, Note.BOLD, Note.DAGGER, Note.FLOORS]
    if heads.values:
        notes.append("Own head: the classifier that was trained with the encoder, without a probe.")
    return ReportTable(
        "main",
        "Test accuracy (%) under the fair probe",
        (Column.name("Method"), *(Column.score(dataset_name(d)) for d in datasets)),
        (tuple(trained), tuple(floors)),
        (*notes, *unfinished_notes(records)),
    )


def paper_comparison_table(records: Sequence[Record]) -> ReportTable:
    """The paper's Table 1 beside ours under its probe, and under the fair one."""
    like, fair = (Scored(values_of(records, f)) for f in ("test_accuracy_paper_probe", "test_accuracy"))

    return by_graph(
        "main-paper-probe",
        "Test accuracy (%): paper, ours and the difference",
        records,
        {
            **like.beside_paper(paper_accuracy, ("Paper", "Ours, paper probe", "Difference")),
            Column.score("Ours, fair probe"): fair.cell,
            Column("Difference (fair)"): fair.minus(paper_accuracy),
        },
        (
            f"Paper: {paper_source('main')}, 5 seeds. {Note.PAPER_STD}",
            Note.PAPER_PROBE,
            Note.FAIR_PROBE,
            Note.SEEDS,
            f"Bold: our best on that graph, floors included; {Note.MOST_SEEDS}",
            Note.DAGGER,
            *unfinished_notes(records),
        ),
    )


def fewshot_values(
    records: Sequence[Record], field: str = "test_accuracy"
) -> dict[tuple[str, str, int], Values]:
    """Accuracies by method, graph and labels per class."""
    shots = [record for record in records if record.get("shots") is not None]
    return values_by(shots, field, lambda r: (str(r["method"]), str(r["dataset"]), int(r["shots"])))


def _by_shots(records: Sequence[Record], field: str) -> dict[int, Scored]:
    found = fewshot_values(records, field)
    budgets = sorted({int(record["shots"]) for record in records if record.get("shots") is not None})
    return {k: Scored({(m, d): v for (m, d, shots), v in found.items() if shots == k}) for k in budgets}


def measures_table(records: Sequence[Record]) -> ReportTable:
    """For each graph and method: balanced accuracy, and the area under the ROC curve of two classes."""
    named = {"balanced_accuracy": "balanced", "roc_auc": "ROC-AUC"}
    return by_graph(
        "measures",
        "Balanced accuracy and, of two classes, area under the ROC curve (%) under the fair probe",
        records,
        {
            Column.score(f"{shots} a class: {title}"): scored.cell
            for field, title in named.items()
            for shots, scored in _by_shots(records, field).items()
            if scored.values
        },
        (
            "Balanced: the mean over classes of the share of their nodes that is found.",
            Note.FAIR_PROBE,
            Note.SEEDS,
            f"Bold: best of that column on that graph, floors included; {Note.MOST_SEEDS}",
            Note.DAGGER,
            *unfinished_notes(records),
        ),
    )


def fewshot_table(records: Sequence[Record]) -> ReportTable:
    """For each graph and method: paper and ours under both probes at every number of labels.

    Graphs that the paper does not have are shown under the fair probe alone.
    """
    fair, like = (_by_shots(records, field) for field in ("test_accuracy", "test_accuracy_paper_probe"))
    budgets = list(fair)
    methods, datasets = methods_of(records), datasets_of(records)
    comparable = any(paper_fewshot(m, d, k) for m in methods for d in datasets for k in budgets)
    probes = "both probes" if comparable else "the fair probe"
    cells: Cells = {}
    for shots in budgets:
        title = f"{shots} a class"
        if comparable:
            titles = (f"{title}: paper", f"{title}: ours, paper probe", f"{title}: diff.")
            cells |= like[shots].beside_paper(partial(paper_fewshot, shots=shots), titles)
            title = f"{title}: ours, fair probe"
        cells[Column.score(title)] = fair[shots].cell
    return by_graph(
        "fewshot",
        f"Test accuracy (%) with few labels per class under {probes}",
        records,
        cells,
        (
            *(
                [f"Paper: {paper_source('fewshot')}. {Note.LIKE_WITH_LIKE}", Note.PAPER_PROBE]
                if comparable
                else []
            ),
            *([_SUPERVISED] if "supervised-gcn" in methods else []),
            Note.FAIR_PROBE,
            Note.SEEDS,
            f"Bold: our best on that graph with that many labels, floors included; {Note.MOST_SEEDS}",
            Note.DAGGER,
            Note.FLOORS,
            *unfinished_notes(records),
        ),
    )


def finetune_table(records: Sequence[Record]) -> ReportTable:
    """Frozen with a probe, fine-tuned, trained from random weights, and the difference of the last two."""
    sides = [Scored(values_of(records, field)) for field in _FIELDS]
    probed, tuned, scratch = (side.values for side in sides)
    places = [(method, dataset) for dataset in datasets_of(records) for method in methods_of(records)]
    worth = {place: compare(tuned.get(place, {}), scratch.get(place, {})) for place in places}

    def cell_of(side: Scored) -> Cell:
        def cell(method: str, dataset: str) -> TableCell:
            place, floors = (method, dataset), floors_to_beat(probed, method, dataset)
            best = best_on(dataset, *(side.scores for side in sides))
            mark = floor_mark(side.values.get(place), floors)
            return TableCell.score(side.scores.get(place), best=best, mark=mark)

        return cell

    titles = ("Probe", "Fine-tuned", "From random weights")
    return by_graph(
        "finetune",
        "Fine-tuning: test accuracy (%)",
        records,
        {
            **{Column.score(title): cell_of(side) for title, side in zip(titles, sides, strict=True)},
            **tested(worth, ("Worth of pretraining", "p", "Holm p")),
        },
        (
            "Worth of pretraining: fine-tuned minus the same encoder from random weights, paired over seeds; "
            "Holm's correction over all tests of this table; bold: p < 0.05. The paper prints no fine-tuning "
            "results.",
            f"Probe: frozen encoder. {Note.FAIR_PROBE}",
            Note.SEEDS,
            f"Bold accuracy: best on that graph, floors included; {Note.MOST_SEEDS}",
            Note.DAGGER,
            Note.FLOORS,
            *unfinished_notes(records),
        ),
    )
