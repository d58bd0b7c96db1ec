"""What a method gains over the best of what needs no training, and a variant over the first variant."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from nodejepa.report.table import MISSING, Column, ReportTable, Row, TableCell
from studies.render.paper import FLOORS, dataset_name, method_name
from studies.render.selection import (
    Record,
    Values,
    datasets_of,
    means_on_shared_seeds,
    summaries,
    unfinished_notes,
    values_by,
    values_of,
)
from studies.render.statistics import Comparison, compare, holm
from studies.render.tables.shared import Note, best_of

_WALK = (
    "walk"  # the one floor that takes a part of a method, LinearJEPA's walk, and leaves out what it learned
)
_PLAIN = str.maketrans(" ", "-", "()")  # of a method's name, for that of a file
_LENIENT = tuple(floor for floor in FLOORS if floor != _WALK)
_WALK_NOTE = (
    "Walk left out: the mean against the best of the other floors. X after the walk takes LinearJEPA's own "
    "walk, without what it learned, and is stricter than propagated features."
)


@dataclass(frozen=True)
class Gain:
    """Of one method over the best floor of one graph on one split."""

    split: str
    dataset: str
    floor: str
    theirs: Values
    ours: Values
    found: Comparison
    balanced: float | None


def best_validated_floor(
    validation: dict[tuple[str, str], Values], dataset: str, floors: Sequence[str] = FLOORS
) -> str | None:
    """The floor with the highest mean validation accuracy over the seeds that all floors have."""
    means = means_on_shared_seeds(
        {floor: validation[floor, dataset] for floor in floors if (floor, dataset) in validation}
    )
    return max(means, key=means.__getitem__, default=None)


def gains(records: Sequence[Record], method: str, floors: Sequence[str] = FLOORS) -> list[Gain]:
    """For every split and graph on which the method and some floor were measured."""
    made = []
    for split in sorted({str(record.get("split")) for record in records}):
        part = [record for record in records if str(record.get("split")) == split]
        test, validation, balanced = (
            values_of(part, field) for field in ("test_accuracy", "val_accuracy", "balanced_accuracy")
        )
        for dataset in datasets_of(part):
            floor = best_validated_floor(validation, dataset, floors)
            if floor is None or (method, dataset) not in test:
                continue
            ours, theirs = test[method, dataset], test[floor, dataset]
            found = compare(ours, theirs)
            even = compare(balanced.get((method, dataset), {}), balanced.get((floor, dataset), {}))
            if found is not None:
                difference = None if even is None else even.difference
                made.append(Gain(split, dataset, floor, theirs, ours, found, difference))
    return made


def gains_table(records: Sequence[Record], method: str) -> ReportTable:
    """One row a graph, a group a split; the last row of a group is the mean over its graphs."""
    found, lenient = gains(records, method), gains(records, method, _LENIENT)
    corrected = dict(zip(map(id, found), holm([gain.found.p for gain in found]), strict=True))
    groups = []
    for split in dict.fromkeys(gain.split for gain in found):
        here = [gain for gain in found if gain.split == split]
        rows = [*(_row(gain, corrected[id(gain)]) for gain in here), _mean_row(split, here)]
        others = [gain for gain in lenient if gain.split == split]
        if others and any(gain.floor == _WALK for gain in here):
            rows.append(_mean_row(split, others, ", walk left out"))
        groups.append(tuple(rows))
    walked = any(gain.floor == _WALK for gain in found)
    name = method_name(method)
    return ReportTable(
        f"gains-{method.translate(_PLAIN)}",
        f"{name} against the best floor of each graph (accuracy points, fair probe)",
        (
            *map(Column.name, ("Split", "Dataset", "Best floor")),
            *map(Column.score, ("Its accuracy", name)),
            Column("Gain"),
            Column("95 % interval", ("low", "high")),
            *map(Column, ("p", "Holm p", "Gain in balanced accuracy")),
        ),
        tuple(groups),
        (
            "Best floor: the one with the highest mean validation accuracy over the seeds; the test labels "
            "do not choose it. Another floor may score higher on the test.",
            *(_WALK_NOTE,) * walked,
            "Splits: training and validation labels per class, or shares of the nodes. Paired t-test where "
            "the seeds are the same, else Welch's; Holm's correction over all rows. Bold: p < 0.05.",
            Note.SEEDS,
            Note.FAIR_PROBE,
            *unfinished_notes(records),
        ),
    )


def _row(gain: Gain, holm_p: float | None) -> Row:
    scores = summaries({"ours": gain.ours, "theirs": gain.theirs})
    return (
        *map(TableCell.name, (gain.split, dataset_name(gain.dataset), method_name(gain.floor))),
        *map(TableCell.score, (scores["theirs"], scores["ours"])),
        TableCell.number(gain.found.difference, signed=True),
        TableCell.interval(gain.found.low, gain.found.high),
        TableCell.p(gain.found.p),
        TableCell.p(holm_p),
        TableCell.number(gain.balanced, signed=True),
    )


def _mean_row(split: str, here: Sequence[Gain], which: str = "") -> Row:
    empty, nothing = TableCell.number(None), TableCell(MISSING, ("", "", ""))
    balanced = [gain.balanced for gain in here if gain.balanced is not None]
    return (
        *map(TableCell.name, (split, f"mean of {len(here)}{which}", MISSING)),
        nothing,
        nothing,
        TableCell.number(fmean(gain.found.difference for gain in here), signed=True),
        TableCell(MISSING, ("", "")),
        empty,
        empty,
        TableCell.number(fmean(balanced) if len(balanced) == len(here) else None, signed=True),
    )


def variants_table(records: Sequence[Record]) -> ReportTable:
    """A group a split, a row a variant, a column a graph."""
    varied = [record for record in records if record.get("variant") is not None]
    values = values_by(
        varied, "test_accuracy", lambda r: (str(r["split"]), str(r["variant"]), str(r["dataset"]))
    )
    datasets, variants = datasets_of(varied), sorted({str(record["variant"]) for record in varied})
    first = variants[0]
    groups = [
        tuple(_variant_row(values, split, variant, first, datasets) for variant in variants)
        for split in sorted({str(record["split"]) for record in varied}, reverse=True)
    ]
    return ReportTable(
        "variants",
        "Variants: test accuracy (%) under the fair probe",
        (
            *map(Column.name, ("Split", "Variant")),
            *(Column.score(dataset_name(name)) for name in datasets),
            *map(Column, (f"Mean against {first}", "p")),
        ),
        tuple(groups),
        (
            f"Mean against {first}: of the differences on every graph, each over the seeds that both have; "
            "p of a paired t-test over the graphs, not corrected.",
            Note.SEEDS,
            f"Bold: best of the graph on that split; {Note.MOST_SEEDS}",
            Note.FAIR_PROBE,
            *unfinished_notes(records),
        ),
    )


def _variant_row(
    values: dict[tuple[str, str, str], Values], split: str, variant: str, first: str, datasets: Sequence[str]
) -> Row:
    scores = summaries(values)
    cells = []
    mine: Values = {}
    theirs: Values = {}
    for number, dataset in enumerate(datasets):
        best = best_of(score for (s, _, d), score in scores.items() if (s, d) == (split, dataset))
        cells.append(TableCell.score(scores.get((split, variant, dataset)), best=best))
        pair = {name: values.get((split, name, dataset), {}) for name in {variant, first}}
        if means := means_on_shared_seeds(pair):
            mine[number], theirs[number] = means[variant], means[first]
    found = None if variant == first else compare(mine, theirs)
    mean = None if found is None else fmean(mine[n] - theirs[n] for n in mine)
    return (
        TableCell.name(split),
        TableCell.name(variant),
        *cells,
        TableCell.number(mean, signed=True),
        TableCell.p(None if found is None else found.p),
    )
