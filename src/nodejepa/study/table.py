"""A plain table of any study: mean, standard deviation and number of seeds of what its records measure."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nodejepa.errors import DataError
from nodejepa.methods import METHODS
from nodejepa.report.table import Column, ReportTable, TableCell, summarise
from nodejepa.study.records import Record, read_records, require_names

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
_NAMES = ("method", "preset", "variant", "dataset", "split", "seed", "status", "reason")


def read_study(study: Path) -> list[Record]:
    """The records of a study: of its folder, or of the folder beside its specification."""
    folder = study.with_suffix("") if study.suffix == ".toml" else study
    records = read_records(folder)
    require_names(records, folder)
    if not records:
        raise DataError(
            "there are no records to make a table from",
            where=str(folder / "records.jsonl"),
            fix=f"Run the study first: nodejepa study run {folder}.toml.",
        )
    return records


def study_table(records: Sequence[Record]) -> ReportTable:
    """A group a data set and split, in it a row for every method, preset and variant; a column a measure."""
    fields = _measured(records)
    groups: dict[tuple[str, str], list[tuple[TableCell, ...]]] = {}
    for place, found in study_rows(records).items():
        cells = [
            TableCell.score(summarise([*values_by_seed(found, field).values()]), decimals=MEASURES[field][1])
            for field in fields
        ]
        groups.setdefault(place[:2], []).append((*map(TableCell.name, place), *cells))
    return ReportTable(
        "study",
        f"Study {records[0].get('study') or ''}".strip(),
        (
            *map(Column.name, ("dataset", "split", "method")),
            *(Column.score(MEASURES[field][0]) for field in fields),
        ),
        tuple(map(tuple, groups.values())),
        ("Mean ± standard deviation (n - 1) over seeds, their number in brackets.", *missing_words(records)),
    )


def study_rows(records: Sequence[Record]) -> dict[tuple[str, str, str], list[Record]]:
    """Records by data set, split and name, such as ``"NodeJEPA (D: no VICReg)"``; untrained methods last.

    A name has the variant, and the preset where a method was run with several.
    """
    presets: dict[str, set[object]] = {}
    for record in records:
        presets.setdefault(record["method"], set()).add(record.get("preset"))
    rows: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        method, once = record["method"], record.get("training_seed")
        parts = [record.get("preset")] if len(presets[method]) > 1 else []
        parts += [record.get("variant"), None if once is None else f"trained with seed {once}"]
        more = ", ".join(str(part) for part in parts if part is not None)
        title = METHODS[method].title if method in METHODS else method
        name = f"{title} ({more})" if more else title
        rows.setdefault((record["dataset"], str(record.get("split")), name), []).append(record)

    def place(key: tuple[str, str, str]) -> tuple[object, ...]:
        entry = METHODS.get(rows[key][0]["method"])
        return *key[:2], entry is not None and not entry.trained, key[2]

    return {key: rows[key] for key in sorted(rows, key=place)}


def cells_table(records: Sequence[Record]) -> ReportTable:
    """One row per record."""
    fields = _measured(records)
    columns = (
        *(Column(name) if name == "seed" else Column.name(name) for name in _NAMES),
        *(Column(MEASURES[field][0]) for field in fields),
    )
    rows = tuple(
        (
            *(TableCell.name(_plain(record.get(name))) for name in _NAMES),
            *(_measure_cell(record.get(field), MEASURES[field][1]) for field in fields),
        )
        for record in records
    )
    return ReportTable("cells", "Every cell on record", columns, (rows,), ())


def missing_words(records: Sequence[Record]) -> list[str]:
    """One sentence for each reason why cells have no number."""
    reasons: dict[tuple[str, str], int] = {}
    for record in records:
        if record.get("status") != "done":
            reason = " ".join(str(record.get("reason") or "no reason recorded").split())
            key = str(record.get("status")), reason if len(reason) <= 160 else f"{reason[:159]}…"
            reasons[key] = reasons.get(key, 0) + 1
    return [
        f"{count} {'cell' if count == 1 else 'cells'} {status}: {reason.rstrip('.')}."
        for (status, reason), count in sorted(reasons.items())
    ]


def values_by_seed(records: Sequence[Record], field: str) -> dict[int, float]:
    """The finite numbers among a field of finished cells."""
    done = sorted((r for r in records if r.get("status") == "done"), key=lambda record: int(record["seed"]))
    return {int(r["seed"]): float(r[field]) for r in done if _is_number(r.get(field))}


def _measured(records: Sequence[Record]) -> list[str]:
    return [field for field in MEASURES if any(record.get(field) is not None for record in records)]


def _plain(value: Any) -> str:
    return "" if value is None else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _measure_cell(value: Any, decimals: int) -> TableCell:
    number = _is_number(value)
    return TableCell.number(value, decimals=decimals) if number else TableCell.name(_plain(value))
