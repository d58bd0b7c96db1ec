"""A plain table of any study: mean, standard deviation and number of seeds of what its records measure."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from nodejepa.errors import DataError
from nodejepa.methods import METHODS, UNTRAINED
from nodejepa.report.sections import Column, ReportTable, TableCell, summarise
from nodejepa.study.records import Record, read_records

MEASURES = {  # field of a record: title and decimals
    "test_accuracy": ("test %", 2),
    "val_accuracy": ("validation %", 2),
    "test_accuracy_paper_probe": ("test %, paper probe", 2),
    "head_test_accuracy": ("test %, own head", 2),
    "finetune_test_accuracy": ("test %, fine-tuned", 2),
    "finetune_val_accuracy": ("validation %, fine-tuned", 2),
    "scratch_test_accuracy": ("test %, from random weights", 2),
    "scratch_val_accuracy": ("validation %, from random weights", 2),
    "effective_rank": ("effective rank", 1),
    "effective_rank_uncentred": ("effective rank, uncentred", 1),
    "mean_std": ("mean std", 3),
    "participation_ratio": ("participation ratio", 1),
    "participation_ratio_uncentred": ("participation ratio, uncentred", 1),
    "train_seconds": ("training s", 1),
    "epoch_seconds": ("s per epoch", 3),
    "total_seconds": ("total s", 1),
    "peak_memory_mb": ("peak memory MB", 0),
}


def read_study(study: Path) -> list[Record]:
    """The records of a study: of its folder, or of the folder beside its specification."""
    folder = study.with_suffix("") if study.suffix == ".toml" else study
    records = read_records(folder)
    if not records:
        raise DataError(
            "there are no records to make a table from",
            where=str(folder / "records.jsonl"),
            fix=f"Run the study first: nodejepa study run {folder}.toml.",
        )
    return records


def study_table(records: Sequence[Record]) -> ReportTable:
    """A group a data set and split, in it a row for every method, preset and variant; a column a measure."""
    done = [record for record in records if record.get("status") == "done"]
    fields = [field for field in MEASURES if any(record.get(field) is not None for record in done)]
    groups: dict[tuple[str, str], list[tuple[TableCell, ...]]] = {}
    for place, found in _rows(records).items():
        cells = [
            TableCell.score(summarise(_numbers(found, field)), decimals=MEASURES[field][1])
            for field in fields
        ]
        groups.setdefault(place[:2], []).append((*map(TableCell.name, place), *cells))
    others = Counter(str(record.get("status")) for record in records if record not in done)
    left = ", ".join(f"{count} {status}" for status, count in sorted(others.items()))
    return ReportTable(
        "study",
        f"Study {records[0].get('study') or ''}".strip(),
        (
            *map(Column.name, ("dataset", "split", "method")),
            *(Column.score(MEASURES[field][0]) for field in fields),
        ),
        tuple(map(tuple, groups.values())),
        (
            "Mean ± standard deviation (n - 1) over seeds, their number in brackets.",
            *([f"Cells without a number: {left}."] if left else []),
        ),
    )


def _rows(records: Sequence[Record]) -> dict[tuple[str, str, str], list[Record]]:
    """Records by data set, split and name, such as ``"NodeJEPA (D: no VICReg)"``; untrained methods last.

    A name has the variant, and the preset where a method was run with several.
    """
    presets: dict[str, set[object]] = {}
    for record in records:
        presets.setdefault(record["method"], set()).add(record.get("preset"))
    rows: dict[tuple[str, str, bool, str], list[Record]] = {}
    for record in records:
        method, once = record["method"], record.get("training_seed")
        parts = [record.get("preset")] if len(presets[method]) > 1 else []
        parts += [record.get("variant"), None if once is None else f"trained with seed {once}"]
        more = ", ".join(str(part) for part in parts if part is not None)
        title = METHODS[method].title if method in METHODS else method
        name = f"{title} ({more})" if more else title
        place = record["dataset"], str(record.get("split")), method in UNTRAINED, name
        rows.setdefault(place, []).append(record)
    return {
        (dataset, split, name): rows[dataset, split, last, name]
        for dataset, split, last, name in sorted(rows)
    }


def _numbers(records: Sequence[Record], field: str) -> list[float]:
    """The finite numbers among a field of finished cells."""
    values = (record.get(field) for record in records if record.get("status") == "done")
    numbers = (float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool))
    return [number for number in numbers if math.isfinite(number)]
