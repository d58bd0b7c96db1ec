"""What a method gains over the best of what needs no training, graph by graph and on average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from nodejepa.report.table import (
    MISSING,
    Column,
    ReportTable,
    Row,
    TableCell,
    interval_cell,
    number_cell,
    p_cell,
    score_cell,
    score_column,
    text_cell,
    text_column,
)
from nodejepa.study.render.names import FLOORS, dataset_name, method_name
from nodejepa.study.render.selection import (
    Record,
    Values,
    by_method_and_dataset,
    datasets_of,
    means_on_shared_seeds,
    summaries,
    unfinished_notes,
    values_by,
)
from nodejepa.study.render.statistics import Comparison, compare, holm
from nodejepa.study.render.tables.wording import FAIR_PROBE, SEEDS


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


def best_validated_floor(validation: dict[tuple[str, str], Values], dataset: str) -> str | None:
    """The floor with the highest mean validation accuracy over the seeds that all floors have."""
    means = means_on_shared_seeds(
        {floor: validation[floor, dataset] for floor in FLOORS if (floor, dataset) in validation}
    )
    return max(means, key=means.__getitem__, default=None)


def gains(records: Sequence[Record], method: str) -> list[Gain]:
    """For every split and graph on which the method and some floor were measured."""
    made = []
    for split in sorted({str(record.get("split")) for record in records}):
        part = [record for record in records if str(record.get("split")) == split]
        test, validation, balanced = (
            values_by(part, field, by_method_and_dataset)
            for field in ("test_accuracy", "val_accuracy", "balanced_accuracy")
        )
        for dataset in datasets_of(part):
            floor = best_validated_floor(validation, dataset)
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
    found = gains(records, method)
    corrected = dict(zip(map(id, found), holm([gain.found.p for gain in found]), strict=True))
    groups = []
    for split in dict.fromkeys(gain.split for gain in found):
        here = [gain for gain in found if gain.split == split]
        groups.append((*(_row(gain, corrected[id(gain)]) for gain in here), _mean_row(split, here)))
    name = method_name(method)
    return ReportTable(
        f"gains-{method.replace(' ', '-').strip('()')}",
        f"{name} against the best floor of each graph (accuracy points, fair probe)",
        (
            text_column("Split"),
            text_column("Dataset"),
            text_column("Best floor"),
            score_column("Its accuracy"),
            score_column(name),
            Column("Gain"),
            Column("95 % interval", ("low", "high")),
            Column("p"),
            Column("Holm p"),
            Column("Gain in balanced accuracy"),
        ),
        tuple(groups),
        (
            "Best floor: the one with the highest mean validation accuracy over the seeds; the test labels "
            "do not choose it. Another floor may score higher on the test.",
            "Splits: training and validation labels per class, or shares of the nodes. Paired t-test where "
            "the seeds are the same, else Welch's; Holm's correction over all rows. Bold: p < 0.05.",
            SEEDS,
            FAIR_PROBE,
            *unfinished_notes(records),
        ),
    )


def _row(gain: Gain, holm_p: float | None) -> Row:
    scores = summaries({"ours": gain.ours, "theirs": gain.theirs})
    return (
        text_cell(gain.split),
        text_cell(dataset_name(gain.dataset)),
        text_cell(method_name(gain.floor)),
        score_cell(scores["theirs"]),
        score_cell(scores["ours"]),
        number_cell(gain.found.difference, signed=True),
        interval_cell(gain.found.low, gain.found.high),
        p_cell(gain.found.p),
        p_cell(holm_p),
        number_cell(gain.balanced, signed=True),
    )


def _mean_row(split: str, here: Sequence[Gain]) -> Row:
    empty, nothing = number_cell(None), TableCell(MISSING, ("", "", ""))
    balanced = [gain.balanced for gain in here if gain.balanced is not None]
    return (
        text_cell(split),
        text_cell(f"mean of {len(here)}"),
        text_cell(MISSING),
        nothing,
        nothing,
        number_cell(fmean(gain.found.difference for gain in here), signed=True),
        TableCell(MISSING, ("", "")),
        empty,
        empty,
        number_cell(fmean(balanced) if len(balanced) == len(here) else None, signed=True),
    )
