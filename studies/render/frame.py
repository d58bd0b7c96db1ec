"""The records of a study as a data frame, one row per cell; values by method, data set and seed; notes."""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from nodejepa.config import dotted, to_dict
from nodejepa.errors import ConfigError, DataError
from nodejepa.methods import METHODS, make_method
from nodejepa.methods.migrations import config_of_today
from nodejepa.report.sections import Summary, summarise
from nodejepa.study.records import read_records
from studies.render.paper import (
    STANDING_BASELINES,
    UNTRAINED,
    dataset_name,
    in_dataset_order,
    in_method_order,
    method_name,
)

Place: TypeAlias = tuple[Any, ...]  # method (or variant) and data set, where nothing else is said
Values: TypeAlias = dict[Place, pd.Series]  # a value for each seed

_NAMES = ("study", "kind", "method", "preset", "variant", "dataset", "split", "shots", "seed", "status")
_MORE = ("reason", "config", "config_hash", "training_seed", "threads")
_PAPER_SPLITS = {"arxiv": "official"}  # of every other data set: 20-30


def read_study(folder: Path) -> pd.DataFrame:
    """The records of a study folder."""
    records = read_records(folder)
    return frame_of(records)


def frame_of(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row per record, in the order of the seeds; what a record does not say is ``None``."""
    frame = pd.DataFrame(list(records), dtype=object)
    for name in (*_NAMES, *_MORE):
        if name not in frame:
            frame[name] = None
    frame = frame.sort_values("seed", kind="stable", ignore_index=True)
    return frame.where(frame.notna(), None)


def values_by(frame: pd.DataFrame, field: str, by: Sequence[str] = ("method", "dataset")) -> Values:
    """``field`` of every finished cell that has it, as one series over the seeds for each place."""
    if field not in frame:
        return {}
    known = frame[frame.status.eq("done") & frame[field].map(_is_number)]
    twice = known[known.duplicated([*by, "seed"])]
    if len(twice):
        names = ("method", "preset", "variant", "dataset", "split", "seed")
        one = ", ".join(f"{name} {twice.iloc[0][name]}" for name in names if twice.iloc[0][name] is not None)
        raise DataError(
            f"two records would stand in one place of a table; one of them is {one}",
            fix="Keep presets, variants or splits that this table does not tell apart in separate studies.",
        )
    narrow = known.set_index("seed")[[*by, field]].astype({field: float})
    return {place: part[field] for place, part in narrow.groupby([*by])}


def scores_by(
    frame: pd.DataFrame, field: str, by: Sequence[str] = ("method", "dataset")
) -> dict[Place, Summary]:
    """As :func:`values_by`, with mean and spread over the seeds."""
    return summaries(values_by(frame, field, by))


def summaries(values: Values) -> dict[Place, Summary]:
    """Mean and spread over the seeds."""
    found = {place: summarise(mine.tolist()) for place, mine in values.items()}
    return {place: score for place, score in found.items() if score is not None}


def means_on_shared_seeds(values: Mapping[Any, pd.Series | None]) -> dict[Any, float]:
    """The mean of each over the seeds that all of them have; nothing where there is no such seed."""
    if not values or any(mine is None for mine in values.values()):
        return {}
    shared = pd.concat(list(values.values()), axis=1, join="inner")
    sums = map(math.fsum, shared.to_numpy().T)  # exact: equal scores in another order are a tie
    return {key: total / len(shared) for key, total in zip(values, sums, strict=True)} if len(shared) else {}


def datasets_of(frame: pd.DataFrame) -> list[str]:
    """Data sets of a study in the order of the tables, also those that were not run."""
    return in_dataset_order(frame.dataset)


def methods_of(frame: pd.DataFrame, *, baselines: bool = True) -> list[str]:
    """Methods of a study; three untrained baselines stand in every accuracy table, measured or not."""
    return in_method_order([*frame.method, *(STANDING_BASELINES if baselines else ())])


def best_baseline(scores: Mapping[Place, Summary], dataset: str) -> float | None:
    """The highest mean among what needs no training."""
    return max(
        (scores[baseline, dataset].mean for baseline in UNTRAINED if (baseline, dataset) in scores),
        default=None,
    )


def with_preset_names(frame: pd.DataFrame) -> pd.DataFrame:
    """A method under preset ``paper`` (or ``default``, if that was not run) keeps its name.

    Another preset makes it another method, which ranks and the paper's figures do not know.
    """
    with_paper = set(frame.method[frame.preset.eq("paper")])
    default = frame.preset.isna() | frame.preset.eq("default")
    plain = frame.preset.eq("paper") | (default & ~frame.method.isin(with_paper))
    return frame.assign(
        method=frame.method.where(plain, frame.method + " (" + frame.preset.astype(str) + ")")
    )


def with_variant_names(frame: pd.DataFrame) -> pd.DataFrame:
    """As :func:`with_preset_names`; another variant of a method is another method, too."""
    named = with_preset_names(frame)
    varied = named.method + " (" + named.variant.astype(str) + ")"
    return named.assign(method=named.method.where(named.variant.isna(), varied))


def by_split(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Records of the paper's splits under ``""``, those of any other split under its name."""
    names = frame.split.astype(str).where(~_is_paper_split(frame), "")
    return {str(name): part for name, part in frame.groupby(names)}


def on_paper_splits(frame: pd.DataFrame) -> bool:
    """Whether all numbers may stand beside the paper's."""
    return bool(_is_paper_split(frame).all())


def _is_paper_split(frame: pd.DataFrame) -> pd.Series:
    return frame.split.eq(frame.dataset.map(lambda name: _PAPER_SPLITS.get(name, "20-30")))


def borrow_baselines(frame: pd.DataFrame, main: pd.DataFrame) -> pd.DataFrame:
    """Untrained baselines of the main study for one that has none: same data sets, splits and seeds."""
    if frame.method.isin(UNTRAINED).any():
        return frame
    place = ["dataset", "split", "seed"]
    baselines = main[main.method.isin(UNTRAINED)]
    wanted = pd.MultiIndex.from_frame(baselines[place]).isin(pd.MultiIndex.from_frame(frame[place]))
    return pd.concat([frame.astype(object), baselines[wanted].astype(object)], ignore_index=True)


def unfinished_notes(frame: pd.DataFrame) -> list[str]:
    """One sentence for each reason why cells have no number, or numbers that do not go together."""
    left = frame[~frame.status.eq("done")]
    groups: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for row in left.itertuples():
        reason = " ".join(str(row.reason or "no reason recorded").split())
        groups[str(row.status), row.dataset, reason if len(reason) <= 160 else f"{reason[:159]}…"].append(
            row.method
        )
    everybody = set(frame.method)
    notes = []
    for (status, dataset, reason), methods in sorted(groups.items()):
        names = ", ".join(map(method_name, in_method_order(methods)))
        names = "every method" if len(everybody) > 1 and everybody == set(methods) else names
        count = "1 cell" if len(methods) == 1 else f"{len(methods)} cells"
        notes.append(f"{dataset_name(dataset)}, {count} {status} ({names}): {reason.rstrip('.')}.")
    return [*notes, *_mixed_notes(frame), *_trained_once_notes(frame), *outdated_notes(frame)]


def _mixed_notes(frame: pd.DataFrame) -> list[str]:
    """A warning where one mean stands for different settings: a cell was measured before they changed."""
    done = frame[frame.status.eq("done") & frame.config_hash.notna()]
    place = ["dataset", "method", "preset", "variant", "split"]
    hashes = done.groupby(place, dropna=False).config_hash.nunique()
    return [
        f"{dataset_name(dataset)}, {method_name(method)}: seeds were measured with different settings; run "
        "the study again."
        for dataset, method, *_ in hashes.index[hashes > 1]
    ]


def _trained_once_notes(frame: pd.DataFrame) -> list[str]:
    """What the spread of a method leaves out that was trained once for all splits."""
    once = frame[frame.training_seed.notna()]
    if once.empty:
        return []
    seeds = ", ".join(sorted(set(once.training_seed.astype(str))))
    both = set(once.method) & set(frame.method[frame.training_seed.isna()])
    where = ", where a variant does not say otherwise" if both else ""
    names = ", ".join(map(method_name, in_method_order(once.method)))
    return [
        f"{names}: trained once on each graph, with seed {seeds}{where}: their spread is that of the splits "
        "alone."
    ]


def outdated_methods(frame: pd.DataFrame) -> list[str]:
    """Titles of the methods that were measured with other settings than today's presets have."""
    notes = outdated_notes(frame)
    titles = [method_name(method) for method in methods_of(frame, baselines=False)]
    return [title for title in titles if any(note.startswith(f"{title} on ") for note in notes)]


def outdated_notes(frame: pd.DataFrame) -> list[str]:
    """A sentence for each setting in which all records of a method on a data set differ from its preset.

    What only some variants of an ablation change is their own; what all of them have is not the preset.
    """
    shared: dict[tuple[str, str, str], frozenset[tuple[str, str, str]]] = {}
    for row in frame[frame.status.eq("done")].itertuples():
        method = str(row.method).partition(" (")[0]
        if isinstance(row.config, dict) and method in METHODS:
            place = (method, str(row.preset), row.dataset)
            found = _differences(*place, json.dumps(row.config))
            shared[place] = shared.get(place, found) & found
    graphs: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for (method, preset, dataset), found in shared.items():
        for name, was, today in found:
            graphs[method, preset, name, was, today].append(dataset)
    return [
        f"{method_name(method)} on {', '.join(map(dataset_name, in_dataset_order(datasets)))}: measured with "
        f"{name} = {was}; preset {preset} has {today}."
        for (method, preset, name, was, today), datasets in sorted(graphs.items())
    ]


@lru_cache(maxsize=4096)  # few settings, many records
def _differences(method: str, preset: str, dataset: str, text: str) -> frozenset[tuple[str, str, str]]:
    try:
        was = dotted(to_dict(config_of_today(method, METHODS[method].config_class, json.loads(text))))
        today = dotted(to_dict(make_method(method, preset=preset, dataset=dataset).config))
    except ConfigError:  # a preset or a setting that is gone: its tables say so elsewhere
        return frozenset()
    differing = (name for name, value in today.items() if was.get(name, value) != value)
    return frozenset((name, str(was[name]), str(today[name])) for name in differing)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
