"""Which tables and figures a study has; the same bytes for the same records.

A table is a function of the frame of records (:func:`studies.render.frame.frame_of`) that returns a
``ReportTable``; a new one takes a line in :func:`tables_of`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from nodejepa.errors import DataError
from nodejepa.files import write_text
from nodejepa.machine import progress_bar
from nodejepa.report.sections import ReportTable, to_csv, to_markdown
from studies.render.figures import accuracy as figures
from studies.render.figures import time
from studies.render.figures.panels import FORMATS, house_style, save_figure
from studies.render.frame import (
    borrow_baselines,
    by_split,
    methods_of,
    read_study,
    with_preset_names,
    with_variant_names,
)
from studies.render.latex import to_latex
from studies.render.paper import JEPA, UNTRAINED
from studies.render.tables.accuracy import (
    ablation_table,
    fewshot_table,
    finetune_table,
    main_table,
    measures_table,
    paper_comparison_table,
    prediction_share_table,
)
from studies.render.tables.differences import (
    gains_table,
    official_table,
    ranks_table,
    significance_table,
    variants_table,
    wins_table,
)
from studies.render.tables.efficiency import efficiency_table, epoch_time_table, summary_table
from studies.render.tables.geometry import effective_rank_table, fingerprint_table, geometry_table

_AGAINST_BASELINES = ("recipe", "development")  # what a method is worth beside what needs no training
_OF_VARIANTS = ("keep", "ingredients", "start", "parts")  # which only ask each other
_WITHOUT_FIGURES = ("finetune", "official", "readings", *_OF_VARIANTS)
_WRITERS = {"md": to_markdown, "tex": to_latex, "csv": to_csv}


def render_study(folder: Path) -> list[Path]:
    """Write ``tables/`` and ``figures/`` of a study folder; returns what was written.

    Which they are, the folder's name says; ``main-quick`` is a ``main``. A study that has no
    untrained baselines takes them, and the accuracies that times are drawn against, from the main study of
    its size beside it.
    """
    frame = read_study(folder)
    if frame.empty:
        raise DataError(
            "there are no records to make tables from",
            where=str(folder / "records.jsonl"),
            fix="Name the folder of a study that has run, e.g. nodejepa study run studies/main.toml.",
        )
    kind = folder.name.removesuffix("-quick")
    main = frame if kind == "main" else read_study(folder.with_name(folder.name.replace(kind, "main")))
    written = []
    for table in tables_of(kind, frame, main):
        for ending, write in _WRITERS.items():
            written.append(folder / "tables" / f"{table.name}.{ending}")
            write_text(written[-1], write(table))
    makers = figures_of(kind, frame, main)
    with house_style(), progress_bar("Drawing", total=len(makers)) as advance:
        for name, make in makers.items():
            if (figure := make()) is not None:
                written += save_figure(figure, folder / "figures", name)
            else:  # an older one would show records that are gone
                for ending in FORMATS:
                    (folder / "figures" / f"{name}.{ending}").unlink(missing_ok=True)
            advance(note=name)
    return written


def tables_of(kind: str, frame: pd.DataFrame, main: pd.DataFrame) -> list[ReportTable]:
    """All tables of a study; ``main`` lends untrained baselines to a study that has none."""
    if kind == "official":
        return [official_table(frame)]
    if kind == "readings":
        return [fingerprint_table(frame)]
    if kind in _OF_VARIANTS:
        return [variants_table(frame)]
    frame = with_variant_names(frame) if kind == "limits" else with_preset_names(frame)
    if kind in ("fewshot", "ablation", "collapse", "finetune"):
        frame = borrow_baselines(frame, main)
    if kind == "fewshot":
        return [fewshot_table(frame)]
    if kind in _AGAINST_BASELINES:
        return _tables_against_baselines(frame)
    parts = by_split(frame)
    made = [
        _for_split(table, split, alone=len(parts) == 1)
        for split, part in parts.items()
        for table in _tables_of_part(kind, part, split)
    ]
    if kind == "efficiency" and len(main):
        made += _present(summary_table(frame, by_split(with_preset_names(main)).get("", main[:0])))
    return made


def _tables_against_baselines(frame: pd.DataFrame) -> list[ReportTable]:
    """Accuracies by labels per class, of other splits one by one, and what each method gains."""
    few = frame[frame.shots.notna()]
    made = [fewshot_table(few), measures_table(few)] if len(few) else []
    for split, part in by_split(frame[frame.shots.isna()]).items():
        made.append(_for_split(main_table(part), split, alone=False))
    return made + [gains_table(frame, m) for m in methods_of(frame, baselines=False) if m not in UNTRAINED]


def _tables_of_part(kind: str, part: pd.DataFrame, split: str) -> list[ReportTable]:
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
    present = [variant for variant in JEPA if variant in methods_of(part, baselines=False)]
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
    kind: str, frame: pd.DataFrame, main: pd.DataFrame
) -> Mapping[str, Callable[[], Figure | None]]:
    """Makers of all figures of a study by file name; one that has no data makes ``None``."""
    if kind in _WITHOUT_FIGURES:
        return {}
    frame = with_variant_names(frame) if kind == "limits" else with_preset_names(frame)
    part = _drawn_part(frame)
    if kind == "efficiency":
        return {
            "total-time": partial(time.total_time_figure, part),
            "epoch-time": partial(time.epoch_time_figure, part),
            "epoch-curve": partial(time.epoch_curve_figure, part),
            "accuracy-time": partial(time.accuracy_time_figure, part, _drawn_part(with_preset_names(main))),
        }
    if kind == "fewshot" or kind in _AGAINST_BASELINES:
        return {"fewshot": partial(figures.fewshot_figure, borrow_baselines(frame, main))}
    if kind == "ablation":
        return {"ablation": partial(figures.ablation_figure, borrow_baselines(part, main))}
    if kind == "limits":
        return {"limits": partial(figures.accuracy_figure, part)}
    shape = {
        "effective-rank": partial(figures.effective_rank_figure, part),
        "mean-std": partial(figures.mean_std_figure, part),
    }
    if kind == "collapse":
        return shape
    return {
        "average-rank": partial(figures.average_rank_figure, part),
        "accuracy": partial(figures.accuracy_figure, part),
        "significant-wins": partial(figures.wins_figure, part),
        "difference-to-graphmae": partial(figures.graphmae_difference_figure, part),
        **shape,
    }


def _drawn_part(frame: pd.DataFrame) -> pd.DataFrame:
    """The part of a study that is drawn: the paper's splits, or the only ones there are."""
    parts = by_split(frame)
    return next(iter(parts.values())) if "" in parts or len(parts) == 1 else frame[:0]
