"""The chapter about a study folder: what it says in words, pictures, its tables, and every cell."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nodejepa.errors import ConfigError
from nodejepa.report.charts import Curves, Dot, DotPlot, Series
from nodejepa.report.sections import Chapter, Figures, Section, SortableTable, Text
from nodejepa.report.table import Column, ReportTable, TableCell, summarise
from nodejepa.study.render.contents import drawn_figures, main_records, study_kind, tables_of
from nodejepa.study.render.paper import FLOORS, dataset_name, look, method_name
from nodejepa.study.render.selection import datasets_of, methods_of, summaries, values_of, with_variant_names
from nodejepa.study.render.standing import (
    DRAWN,
    comparable_parts,
    comparison_words,
    drawn_field,
    progress_words,
)
from nodejepa.study.render.tables.accuracy import fewshot_values
from nodejepa.study.run.records import Record, read_records, require_names
from nodejepa.study.run.spec import load_spec

_CHOICES = ("Method", "Dataset", "Against", "method", "preset", "variant", "dataset", "split", "status")
_NAMES = ("method", "preset", "variant", "dataset", "split", "seed", "status", "reason")
_MEASURES = {  # field of a record: title and decimals
    "test_accuracy": ("test %", 2),
    "val_accuracy": ("validation %", 2),
    "test_accuracy_paper_probe": ("test %, paper probe", 2),
    "head_test_accuracy": ("test %, own head", 2),
    "finetune_test_accuracy": ("test %, fine-tuned", 2),
    "finetune_val_accuracy": ("validation %, fine-tuned", 2),
    "scratch_test_accuracy": ("test %, from random weights", 2),
    "scratch_val_accuracy": ("validation %, from random weights", 2),
    "effective_rank": ("effective rank", 1),
    "mean_std": ("mean std", 3),
    "participation_ratio": ("participation ratio", 1),
    "train_seconds": ("training s", 1),
    "epoch_seconds": ("s per epoch", 3),
    "total_seconds": ("total s", 1),
    "peak_memory_mb": ("peak memory MB", 0),
}


def is_study_folder(folder: Path) -> bool:
    """Whether a study has left records there."""
    return (folder / "records.jsonl").is_file()


def study_chapter(folder: Path) -> Chapter:
    """Everything the records of a study say."""
    records = read_records(folder)
    require_names(records, folder)
    name = str(records[0].get("study") or folder.name) if records else folder.name
    named = with_variant_names(records)
    sections = (
        Text(tuple(progress_words(records, _planned(folder)))),
        *([Text(tuple(words))] if (words := comparison_words(named)) else []),
        *_pictures(named),
        *_rendered(folder, records),
        SortableTable(_cells_table(records), choices=_CHOICES, folded=True),
    )
    return Chapter(f"Study {name}", sections, subtitle=str(folder))


def _rendered(folder: Path, records: Sequence[Record]) -> list[Section]:
    """The figures and tables that ``nodejepa study render`` writes."""
    if not records:
        return []
    kind = study_kind(records, folder.name)
    main = main_records(kind, records, folder)
    tables = [SortableTable(table, choices=_CHOICES) for table in tables_of(kind, records, main)]
    return [*_figures(kind, records, main), *tables]


def _figures(kind: str, records: Sequence[Record], main: Sequence[Record]) -> list[Section]:
    if find_spec("matplotlib") is None:
        return []
    from nodejepa.study.render.figures.style import pictures

    found = {
        " ".join(figure.get_suptitle().split()) or name: pictures(figure, ("png",))["png"]
        for name, figure in drawn_figures(kind, records, main)
        if figure is not None
    }
    return (
        [Figures("Figures", found, "As nodejepa study render draws them. A click or Enter makes one large.")]
        if found
        else []
    )


def _planned(folder: Path) -> int | None:
    """The number of cells of the specification beside the folder, if there is one."""
    name = folder.name.removesuffix("-quick")
    specification = folder.with_name(f"{name}.toml")
    if not specification.is_file():
        return None
    try:
        return len(load_spec(specification, quick=folder.name != name).cells)
    except ConfigError:
        return None


def _pictures(records: Sequence[Record]) -> list[Section]:
    field = drawn_field(records)
    if field is None:
        return []
    title, unit = DRAWN[field]
    shots = sorted({int(record["shots"]) for record in records if record.get("shots") is not None})
    if len(shots) > 1:
        return [_shot_curves(records, field, f"{title} with few labels", unit)]
    panels: dict[str, list[Dot]] = {}
    for where, part in comparable_parts(records).items():
        panels |= {f"{name}{where}": dots for name, dots in _dots(part, field).items()}
    caption = (
        "Large: mean over seeds, with one standard deviation to either side; small: single seeds; hollow: "
        "floors that need no training. The axes do not start at zero."
    )
    return [DotPlot(title, unit, panels, caption)]


def _dots(records: Sequence[Record], field: str) -> dict[str, list[Dot]]:
    values = values_of(records, field)
    panels = {}
    for dataset in datasets_of(records):
        dots = []
        for method in methods_of(records, floors=False):
            found = tuple(values.get((method, dataset), {}).values())
            score = summarise(found)
            if score is not None:
                drawn = (look(method).colour, method not in FLOORS)
                dots.append(Dot(method_name(method), score.mean, score.std, found, *drawn))
        if dots:
            panels[dataset_name(dataset)] = dots
    return panels


def _shot_curves(records: Sequence[Record], field: str, title: str, unit: str) -> Curves:
    few = [record for record in records if record.get("shots") is not None]
    scores = summaries(fewshot_values(few, field))
    panels: dict[str, list[Series]] = {}
    for dataset in datasets_of(few):
        lines = []
        for method in methods_of(few, floors=False):
            points = sorted((k, s.mean) for (m, d, k), s in scores.items() if (m, d) == (method, dataset))
            if points:
                x, y = zip(*points, strict=True)
                lines.append(Series(method_name(method), x, y, look(method).colour))
        if lines:
            panels[dataset_name(dataset)] = lines
    return Curves(title, "labels per class", panels, f"Mean over seeds of the {unit}.")


def _cells_table(records: Sequence[Record]) -> ReportTable:
    measured = [field for field in _MEASURES if any(record.get(field) is not None for record in records)]
    columns = (
        *(Column(name) if name == "seed" else Column.name(name) for name in _NAMES),
        *(Column(_MEASURES[field][0]) for field in measured),
    )
    rows = tuple(
        (
            *(TableCell.name(_plain(record.get(name))) for name in _NAMES),
            *(_measure_cell(record.get(field), _MEASURES[field][1]) for field in measured),
        )
        for record in records
    )
    return ReportTable("cells", "Every cell on record", columns, (rows,), ())


def _plain(value: Any) -> str:
    return "" if value is None else str(value)


def _measure_cell(value: Any, decimals: int) -> TableCell:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return TableCell.number(float(value), decimals=decimals) if number else TableCell.name(_plain(value))
