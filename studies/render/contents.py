"""Every table and figure of a study from its records: the same bytes for the same records."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from nodejepa.errors import DataError
from nodejepa.files import write_text
from nodejepa.progress import progress_bar
from nodejepa.report.table import ReportTable, to_csv, to_latex, to_markdown
from nodejepa.study.records import read_records, require_names
from studies.render.figures import accuracy, differences, time
from studies.render.figures.style import FORMATS, house_style, save_figure
from studies.render.paper import FLOORS, JEPA
from studies.render.selection import (
    Record,
    borrow_floors,
    by_split,
    methods_of,
    with_preset_names,
    with_variant_names,
)
from studies.render.tables.ablation import ablation_table
from studies.render.tables.accuracy import (
    fewshot_table,
    finetune_table,
    main_table,
    measures_table,
    paper_comparison_table,
)
from studies.render.tables.efficiency import efficiency_table, epoch_time_table
from studies.render.tables.gains import gains_table, variants_table
from studies.render.tables.geometry import effective_rank_table, fingerprint_table, geometry_table
from studies.render.tables.official import official_table
from studies.render.tables.prediction_share import prediction_share_table
from studies.render.tables.significance import ranks_table, significance_table, wins_table

_AGAINST_FLOORS = ("recipe", "development")  # what a method is worth beside what needs no training
_OF_THE_PAPER = ("main", "fewshot", "ablation", "collapse", "efficiency", "finetune", "limits", "official")
_OF_VARIANTS = ("keep", "ingredients", "start", "parts")  # which only ask each other
KINDS = ("readings", *_OF_THE_PAPER, *_AGAINST_FLOORS, *_OF_VARIANTS)
_WRITERS = {"md": to_markdown, "tex": to_latex, "csv": to_csv}


def render_study(folder: str | Path) -> list[Path]:
    """Write ``tables/`` and ``figures/`` of a study folder; returns what was written.

    A study without floors of its own takes them, and the accuracies that times are drawn against, from the
    folder ``main`` beside it (of a quick size: ``main-quick``).
    """
    folder = Path(folder)
    records = read_records(folder)
    require_names(records, folder)
    if not records:
        raise DataError(
            "there are no records to make tables from",
            where=str(folder / "records.jsonl"),
            fix="Name the folder of a study that has run, e.g. nodejepa study run studies/main.toml.",
        )
    kind = study_kind(records, folder.name)
    main = main_records(kind, records, folder)
    tables = tables_of(kind, records, main)
    written = []
    for table in tables:
        for ending, write in _WRITERS.items():
            written.append(folder / "tables" / f"{table.name}.{ending}")
            write_text(written[-1], write(table))
    return [*written, *_draw(kind, records, main, folder / "figures")]


def main_records(kind: str, records: Sequence[Record], folder: Path) -> Sequence[Record]:
    """Those of the main study beside a study, of the same size; a main study is its own."""
    if kind == "main":
        return records
    beside = folder.parent / ("main-quick" if folder.name.endswith("-quick") else "main")
    main = read_records(beside)
    require_names(main, beside)
    return main


def study_kind(records: Sequence[Record], folder: str = "") -> str:
    """Which tables fit: from the study's name, else from what its records hold."""
    for name in (folder, str(records[0].get("study"))):
        for kind in KINDS:
            if name == kind or name.startswith(f"{kind}-"):
                return kind
    if any(record.get("kind") in ("finetune", "efficiency") for record in records):
        return str(next(r["kind"] for r in records if r.get("kind") in ("finetune", "efficiency")))
    if any(record.get("variant") is not None for record in records):
        return "ablation"
    return "fewshot" if len({record.get("shots") for record in records}) > 1 else "main"


def tables_of(kind: str, records: Sequence[Record], main: Sequence[Record] = ()) -> list[ReportTable]:
    """All tables of a study; ``main`` lends floors to a study that has none."""
    if kind == "official":
        return [official_table(records)]
    if kind == "readings":
        return [fingerprint_table(records)]
    if kind in _OF_VARIANTS:
        return [variants_table(records)]
    records = with_variant_names(records) if kind == "limits" else with_preset_names(records)
    if kind in ("fewshot", "ablation", "collapse", "finetune"):
        records = borrow_floors(records, main)
    if kind == "fewshot":
        return [fewshot_table(records)]
    if kind in _AGAINST_FLOORS:
        return _tables_against_floors(records)
    parts = by_split(records)
    return [
        _for_split(table, split, alone=len(parts) == 1)
        for split, part in parts.items()
        for table in _tables_of_part(kind, part, split)
    ]


def _tables_against_floors(records: Sequence[Record]) -> list[ReportTable]:
    """Accuracies by labels per class, of other splits one by one, and what each method gains."""
    by_shots = [record for record in records if record.get("shots") is not None]
    others = by_split([record for record in records if record.get("shots") is None])
    made = [fewshot_table(by_shots), measures_table(by_shots)] if by_shots else []
    made += [_for_split(main_table(part), split, alone=False) for split, part in others.items()]
    return made + [gains_table(records, m) for m in methods_of(records, floors=False) if m not in FLOORS]


def _tables_of_part(kind: str, part: Sequence[Record], split: str) -> list[ReportTable]:
    """The tables of one split."""
    if kind == "collapse":
        return [effective_rank_table(part), geometry_table(part)]
    if kind == "limits":
        return [replace(main_table(part), name="limits")]
    if kind == "ablation":
        return _present(ablation_table(part), prediction_share_table(part))
    if kind == "efficiency":
        return _present(efficiency_table(part), epoch_time_table(part))
    if kind == "finetune":
        return [finetune_table(part)]
    made = [main_table(part), ranks_table(part), effective_rank_table(part), geometry_table(part)]
    made += [] if split else [paper_comparison_table(part), *_present(prediction_share_table(part))]
    present = [variant for variant in JEPA if variant in methods_of(part, floors=False)]
    made += [significance_table(part, variant) for variant in present]
    return made + ([wins_table(part)] if present else [])


def _present(*tables: ReportTable | None) -> list[ReportTable]:
    return [table for table in tables if table is not None]


def _for_split(table: ReportTable, split: str, *, alone: bool) -> ReportTable:
    if not split:
        return table
    name = table.name if alone else f"{table.name}-{re.sub(r'[^0-9A-Za-z.-]+', '-', split)}"
    return replace(table, name=name, title=f"{table.title}, split {split}")


def figures_of(
    kind: str, records: Sequence[Record], main: Sequence[Record] = ()
) -> Mapping[str, Callable[[], Figure | None]]:
    """Makers of all figures of a study by file name; one that has no data makes ``None``."""
    records = with_variant_names(records) if kind == "limits" else with_preset_names(records)
    part = _drawn_part(records)
    if kind == "efficiency":
        return {
            "total-time": partial(time.total_time_figure, part),
            "epoch-time": partial(time.epoch_time_figure, part),
            "epoch-curve": partial(time.epoch_curve_figure, part),
            "accuracy-time": partial(time.accuracy_time_figure, part, _drawn_part(with_preset_names(main))),
        }
    if kind == "fewshot" or kind in _AGAINST_FLOORS:
        return {"fewshot": partial(accuracy.fewshot_figure, borrow_floors(records, main))}
    if kind == "ablation":
        return {"ablation": partial(accuracy.ablation_figure, borrow_floors(part, main))}
    if kind == "limits":
        return {"limits": partial(accuracy.accuracy_figure, part)}
    if kind in ("finetune", "official", "readings", *_OF_VARIANTS):
        return {}
    shape = {
        "effective-rank": partial(accuracy.effective_rank_figure, part),
        "mean-std": partial(accuracy.mean_std_figure, part),
    }
    if kind == "collapse":
        return shape
    return {
        "average-rank": partial(accuracy.average_rank_figure, part),
        "accuracy": partial(accuracy.accuracy_figure, part),
        "significant-wins": partial(differences.wins_figure, part),
        "difference-to-graphmae": partial(differences.graphmae_difference_figure, part),
        **shape,
    }


def _drawn_part(records: Sequence[Record]) -> list[Record]:
    """The part of a study that is drawn: the paper's splits, or the only ones there are."""
    parts = by_split(records)
    return parts.get("") or (next(iter(parts.values())) if len(parts) == 1 else [])


def _draw(kind: str, records: Sequence[Record], main: Sequence[Record], folder: Path) -> list[Path]:
    written: list[Path] = []
    for name, figure in drawn_figures(kind, records, main):
        if figure is not None:
            written += save_figure(figure, folder, name)
        else:  # an older one would show records that are gone
            for ending in FORMATS:
                (folder / f"{name}.{ending}").unlink(missing_ok=True)
    return written


def drawn_figures(
    kind: str, records: Sequence[Record], main: Sequence[Record] = ()
) -> Iterator[tuple[str, Figure | None]]:
    """The figures of a study one after another, in the house style."""
    makers = figures_of(kind, records, main)
    with house_style(), progress_bar("Drawing", total=len(makers)) as advance:
        for name, make in makers.items():
            yield name, make()
            advance(note=name)
