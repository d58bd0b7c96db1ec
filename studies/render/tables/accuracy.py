"""Accuracy of every method: Table 1, with few labels, after fine-tuning, the ablation; prediction's share."""

from functools import partial

import pandas as pd

from nodejepa.report.sections import Column, ReportTable, Row, TableCell
from studies.render.frame import (
    Place,
    Values,
    datasets_of,
    methods_of,
    scores_by,
    unfinished_notes,
    values_by,
)
from studies.render.paper import (
    SOLVED,
    UNTRAINED,
    dataset_name,
    in_method_order,
    method_name,
    paper_ablation,
    paper_accuracy,
    paper_fewshot,
    paper_source,
    paper_variants,
)
from studies.render.statistics import Comparison, compare
from studies.render.tables.shared import (
    Cell,
    Cells,
    Note,
    Scored,
    baseline_mark,
    baselines_to_beat,
    best_on,
    by_graph,
    score_cell,
    tested,
)

_SUPERVISED = (
    "The paper's supervised GCN must have seen more labels than the probe. Ours learns from the labels of "
    "its row only; validation labels (30 per class) decide when it stops, as they choose scaling and C of "
    "every fair probe."
)
_EPOCHS = ("1", "10", "100")  # of prediction's share; the last of the run stands beside them
_FIELDS = ("test_accuracy", "finetune_test_accuracy", "scratch_test_accuracy")


def main_table(frame: pd.DataFrame) -> ReportTable:
    """Methods down, graphs across, under the fair probe."""
    fair, heads = (Scored(values_by(frame, f)) for f in ("test_accuracy", "head_test_accuracy"))
    datasets = datasets_of(frame)

    def row(label: str, found: Scored, method: str) -> Row:
        cells = []
        for dataset in datasets:
            best = best_on(dataset, fair.scores, heads.scores)
            mine, baselines = (
                found.values.get((method, dataset)),
                baselines_to_beat(fair.values, method, dataset),
            )
            mark = baseline_mark(mine, baselines)
            cells.append(TableCell.score(found.scores.get((method, dataset)), best=best, mark=mark))
        return (TableCell.name(label), *cells)

    trained: list[Row] = []
    baselines: list[Row] = []
    for method in methods_of(frame):
        (baselines if method in UNTRAINED else trained).append(row(method_name(method), fair, method))
        if any(owner == method for owner, _ in heads.values):
            trained.append(row(f"{method_name(method)}, own head", heads, method))
    notes = [Note.FAIR_PROBE, Note.SEEDS, Note.BOLD, Note.DAGGER, Note.UNTRAINED]
    if heads.values:
        notes.append("Own head: the classifier that was trained with the encoder, without a probe.")
    return ReportTable(
        "main",
        "Test accuracy (%) under the fair probe",
        (Column.name("Method"), *(Column.score(dataset_name(d)) for d in datasets)),
        (tuple(trained), tuple(baselines)),
        (*notes, *unfinished_notes(frame)),
    )


def paper_comparison_table(frame: pd.DataFrame) -> ReportTable:
    """The paper's Table 1 beside ours under its probe, and under the fair one."""
    like, fair = (Scored(values_by(frame, f)) for f in ("test_accuracy_paper_probe", "test_accuracy"))

    return by_graph(
        "main-paper-probe",
        "Test accuracy (%): paper, ours and the difference",
        frame,
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
            f"Bold: our best on that graph, untrained baselines included; {Note.MOST_SEEDS}",
            Note.DAGGER,
            *unfinished_notes(frame),
        ),
    )


def fewshot_values(frame: pd.DataFrame, field: str = "test_accuracy") -> Values:
    """Accuracies by method, data set and labels per class."""
    return values_by(frame[frame.shots.notna()], field, ("method", "dataset", "shots"))


def _by_shots(frame: pd.DataFrame, field: str) -> dict[int, Scored]:
    found = fewshot_values(frame, field)
    budgets = sorted(set(frame.shots.dropna()))
    return {k: Scored({(m, d): v for (m, d, shots), v in found.items() if shots == k}) for k in budgets}


def measures_table(frame: pd.DataFrame) -> ReportTable:
    """For each graph and method: balanced accuracy, and the area under the ROC curve of two classes."""
    named = {"balanced_accuracy": "balanced", "roc_auc": "ROC-AUC"}
    return by_graph(
        "measures",
        "Balanced accuracy and, of two classes, area under the ROC curve (%) under the fair probe",
        frame,
        {
            Column.score(f"{shots} per class: {title}"): scored.cell
            for field, title in named.items()
            for shots, scored in _by_shots(frame, field).items()
            if scored.values
        },
        (
            "Balanced: the mean over classes of the share of their nodes that is found.",
            Note.FAIR_PROBE,
            Note.SEEDS,
            f"Bold: best of that column on that graph, untrained baselines included; {Note.MOST_SEEDS}",
            Note.DAGGER,
            *unfinished_notes(frame),
        ),
    )


def fewshot_table(frame: pd.DataFrame) -> ReportTable:
    """For each graph and method: paper and ours under both probes at every number of labels.

    Graphs that the paper does not have are shown under the fair probe alone.
    """
    fair, like = (_by_shots(frame, field) for field in ("test_accuracy", "test_accuracy_paper_probe"))
    budgets = list(fair)
    methods, datasets = methods_of(frame), datasets_of(frame)
    comparable = any(paper_fewshot(m, d, k) for m in methods for d in datasets for k in budgets)
    probes = "both probes" if comparable else "the fair probe"
    cells: Cells = {}
    for shots in budgets:
        title = f"{shots} per class"
        if comparable:
            titles = (f"{title}: paper", f"{title}: ours, paper probe", f"{title}: diff.")
            cells |= like[shots].beside_paper(partial(paper_fewshot, shots=shots), titles)
            title = f"{title}: ours, fair probe"
        cells[Column.score(title)] = fair[shots].cell
    return by_graph(
        "fewshot",
        f"Test accuracy (%) with few labels per class under {probes}",
        frame,
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
            f"Bold: our best on that graph with that many labels, untrained baselines included; "
            f"{Note.MOST_SEEDS}",
            Note.DAGGER,
            Note.UNTRAINED,
            *unfinished_notes(frame),
        ),
    )


def finetune_table(frame: pd.DataFrame) -> ReportTable:
    """Frozen with a probe, fine-tuned, trained from random weights, and the difference of the last two."""
    sides = [Scored(values_by(frame, field)) for field in _FIELDS]
    probed, tuned, scratch = (side.values for side in sides)
    places = [(method, dataset) for dataset in datasets_of(frame) for method in methods_of(frame)]
    worth = {place: compare(tuned.get(place), scratch.get(place)) for place in places}

    def cell_of(side: Scored) -> Cell:
        def cell(method: str, dataset: str) -> TableCell:
            place, baselines = (method, dataset), baselines_to_beat(probed, method, dataset)
            best = best_on(dataset, *(side.scores for side in sides))
            mark = baseline_mark(side.values.get(place), baselines)
            return TableCell.score(side.scores.get(place), best=best, mark=mark)

        return cell

    titles = ("Probe", "Fine-tuned", "From random weights")
    return by_graph(
        "finetune",
        "Fine-tuning: test accuracy (%)",
        frame,
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
            f"Bold accuracy: best on that graph, untrained baselines included; {Note.MOST_SEEDS}",
            Note.DAGGER,
            Note.UNTRAINED,
            *unfinished_notes(frame),
        ),
    )


def variant_letter(variant: str) -> str:
    """``"D: no VICReg"`` and ``"D"`` are variant D; a variant of another name keeps it."""
    letter = variant.split(":")[0].strip()
    return letter if letter in paper_variants() else variant.strip()


def variant_label(letter: str) -> str:
    """What a variant is called in tables and figures."""
    meaning = paper_variants().get(letter)
    return letter if meaning is None else f"{letter}: {meaning}"


def variant_values(frame: pd.DataFrame, field: str = "test_accuracy") -> Values:
    """Accuracies by variant and graph."""
    varied = frame[frame.variant.notna()]
    return values_by(varied.assign(variant=varied.variant.map(variant_letter)), field, ("variant", "dataset"))


def variants_of(frame: pd.DataFrame) -> list[str]:
    """Letters, then others by name."""
    return sorted({variant_letter(variant) for variant in frame.variant.dropna()})


def ablation_table(frame: pd.DataFrame) -> ReportTable:
    """For each graph and variant: paper and ours under both probes, each also against the full model (A)."""
    like, like_change = _probe(frame, "test_accuracy_paper_probe")
    fair, fair_change = _probe(frame, "test_accuracy")

    def printed_change(key: str, dataset: str) -> TableCell:
        printed, full = paper_ablation(key, dataset), paper_ablation("A", dataset)
        theirs = None if key == "A" or printed is None or full is None else printed.mean - full.mean
        return TableCell.number(theirs, signed=True)

    others = [name for name in methods_of(frame) if name in (*SOLVED, *UNTRAINED)]
    return by_graph(
        "ablation",
        "Ablation of NodeJEPA: test accuracy (%) under both probes",
        frame,
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
            f"Bold accuracy: best of the graph under that probe, untrained baselines included; "
            f"{Note.MOST_SEEDS}",
            Note.DAGGER,
            Note.UNTRAINED,
            *unfinished_notes(frame),
        ),
        _labels(frame) | {name: method_name(name) for name in others},
        "Variant",
    )


def _labels(frame: pd.DataFrame) -> dict[str, str]:
    return {letter: variant_label(letter) for letter in variants_of(frame)}


def _probe(frame: pd.DataFrame, field: str) -> tuple[Scored, dict[Place, Comparison | None]]:
    """What one probe says of variants and baselines, and of a variant against the full model (A)."""
    values, datasets = variant_values(frame, field), datasets_of(frame)
    found = {
        (letter, dataset): compare(values.get((letter, dataset)), values.get(("A", dataset)))
        for letter in variants_of(frame)
        for dataset in datasets
        if letter != "A"
    }
    others = values_by(frame[frame.method.isin([*SOLVED, *UNTRAINED])], field)
    return Scored(values | others), found


def prediction_share_table(frame: pd.DataFrame) -> ReportTable | None:
    """Where records tell; none where none does."""
    if "prediction_share" not in frame:
        return None
    told = frame[frame.prediction_share.map(bool)]
    if told.empty:
        return None
    variants = variants_of(frame)
    methods = in_method_order(told.method)
    rows = told.method.where(told.variant.isna(), told.variant.map(variant_letter, na_action="ignore"))
    found = {}
    for name in (*_EPOCHS, "last"):
        shares = told.prediction_share.map(lambda by_epoch, name=name: _share(by_epoch, name))
        scores = scores_by(told.assign(share=shares.astype(object), row=rows), "share", ("row", "dataset"))
        found[Column.score(f"Epoch {name}" if name != "last" else "Last epoch")] = scores
    return by_graph(
        "prediction-share",
        "Prediction's share of the encoder's gradient (%), no probe",
        told,
        {column: score_cell(scores) for column, scores in found.items()},
        (
            "Length of the prediction term's gradient beside that of all regularisers together, both with "
            "their weights, with respect to the weights of the context encoder.",
            "Near 0 the term is inert: nothing that changes it alone can change the embeddings by much. A "
            "dash: the record is older than this figure.",
            Note.SEEDS,
        ),
        {v: variant_label(v) for v in variants} or {name: method_name(name) for name in methods},
        "Variant" if variants else "Method",
    )


def _share(by_epoch: dict[str, float], name: str) -> float | None:
    found = by_epoch.get(max(by_epoch, key=int) if name == "last" else name)
    return None if found is None else 100.0 * float(found)
