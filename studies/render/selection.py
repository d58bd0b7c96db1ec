"""From the records of a study to the values of its tables: by method, graph and seed; notes on them."""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NoReturn, TypeAlias, TypeGuard, TypeVar

from nodejepa.config import dotted, to_dict
from nodejepa.errors import ConfigError, DataError
from nodejepa.methods import METHODS, make_method
from nodejepa.methods.migrations import config_of_today
from nodejepa.report.table import Summary, summarise
from nodejepa.study.records import Record as Record
from studies.render.paper import (
    FLOORS,
    STANDING_FLOORS,
    dataset_name,
    in_dataset_order,
    in_method_order,
    method_name,
)

Values: TypeAlias = dict[int, float]  # by seed
Place: TypeAlias = tuple[str, str]  # method (or variant) and graph
Key = TypeVar("Key", bound=Hashable)

_PAPER_SPLITS = {"arxiv": "official"}  # of every other graph: 20-30


def values_by(records: Iterable[Record], field: str, key: Callable[[Record], Key]) -> dict[Key, Values]:
    """``field`` of every finished cell that has it, by key and seed."""
    found: dict[Key, Values] = defaultdict(dict)
    for record in records:
        value: object = record.get(field)
        if record.get("status") == "done" and _is_number(value):
            place, seed = key(record), int(record["seed"])
            if seed in found[place]:
                _refuse_second(record)
            found[place][seed] = float(value)
    return {place: dict(sorted(values.items())) for place, values in found.items()}


def values_of(records: Iterable[Record], field: str) -> dict[Place, Values]:
    """As :func:`values_by`, by method and graph."""
    return values_by(records, field, lambda record: (str(record["method"]), str(record["dataset"])))


def scores_of(records: Iterable[Record], field: str) -> dict[Place, Summary]:
    """As :func:`values_of`, summarised over seeds."""
    return summaries(values_of(records, field))


def summaries(values: Mapping[Key, Values]) -> dict[Key, Summary]:
    """Mean and spread over seeds."""
    found = {place: summarise([*mine.values()]) for place, mine in values.items()}
    return {place: score for place, score in found.items() if score is not None}


def means_on_shared_seeds(values: Mapping[Key, Values]) -> dict[Key, float]:
    """The mean of each over the seeds that all of them have; nothing where there is no such seed.

    >>> means_on_shared_seeds({"a": {1: 10.0, 2: 30.0}, "b": {1: 12.0}})
    {'a': 10.0, 'b': 12.0}
    """
    seeds = shared_seeds(values.values())
    return {
        key: math.fsum(mine[seed] for seed in seeds) / len(seeds) for key, mine in values.items() if seeds
    }


def shared_seeds(values: Iterable[Values]) -> set[int]:
    """The seeds that all of them have."""
    sets = [set(mine) for mine in values]
    return set.intersection(*sets) if sets else set()


def datasets_of(records: Iterable[Record]) -> list[str]:
    """Graphs of a study in the order of the tables, also those that were not run."""
    return in_dataset_order(str(record["dataset"]) for record in records)


def methods_of(records: Iterable[Record], *, floors: bool = True) -> list[str]:
    """Methods of a study; three floors stand in every accuracy table, measured or not."""
    named = [str(record["method"]) for record in records]
    return in_method_order([*named, *STANDING_FLOORS] if floors else named)


def best_floor(scores: dict[tuple[str, str], Summary], dataset: str) -> float | None:
    """The highest mean among what needs no training."""
    means = [scores[floor, dataset].mean for floor in FLOORS if (floor, dataset) in scores]
    return max(means, default=None)


def with_preset_names(records: Sequence[Record]) -> list[Record]:
    """A method under preset ``paper`` (or ``default``, if that was not run) keeps its name.

    Another preset makes it another method, which ranks and the paper's figures do not know.
    """
    with_paper = {record["method"] for record in records if record.get("preset") == "paper"}
    renamed = []
    for record in records:
        name, preset = str(record["method"]), record.get("preset")
        plain = preset == "paper" or (preset in ("default", None) and name not in with_paper)
        renamed.append(record if plain else {**record, "method": f"{name} ({preset})"})
    return renamed


def with_variant_names(records: Sequence[Record]) -> list[Record]:
    """As :func:`with_preset_names`; another variant of a method is another method, too."""
    return [
        {**record, "method": f"{record['method']} ({record['variant']})"} if record.get("variant") else record
        for record in with_preset_names(records)
    ]


def by_split(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Records of the paper's splits under ``""``, those of any other split under its name."""
    parts: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        split = str(record.get("split"))
        parts["" if _is_paper_split(record) else split].append(record)
    return {name: parts[name] for name in sorted(parts)}


def on_paper_splits(records: Iterable[Record]) -> bool:
    """Whether all figures may stand beside the paper's."""
    return all(_is_paper_split(record) for record in records)


def _is_paper_split(record: Record) -> bool:
    return record.get("split") == _PAPER_SPLITS.get(str(record["dataset"]), "20-30")


def borrow_floors(records: Sequence[Record], main: Sequence[Record]) -> list[Record]:
    """Floors of the main study for one that has none of its own: same graphs, splits and seeds."""
    if any(record["method"] in FLOORS for record in records):
        return list(records)
    wanted = {(record["dataset"], record.get("split"), record["seed"]) for record in records}
    floors = [
        record
        for record in main
        if record["method"] in FLOORS and (record["dataset"], record.get("split"), record["seed"]) in wanted
    ]
    return [*records, *floors]


def unfinished_notes(records: Sequence[Record]) -> list[str]:
    """One sentence for each reason why cells have no figure, or figures that do not go together."""
    groups: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    everybody: set[str] = set()
    for record in records:
        everybody.add(str(record["method"]))
        status = str(record.get("status"))
        if status != "done":
            reason = " ".join(str(record.get("reason") or "no reason recorded").split())
            reason = reason if len(reason) <= 160 else f"{reason[:159]}…"
            groups[status, str(record["dataset"]), reason].append(str(record["method"]))
    notes = []
    for (status, dataset, reason), methods in sorted(groups.items()):
        names = ", ".join(method_name(method) for method in in_method_order(methods))
        names = "every method" if len(everybody) > 1 and everybody == set(methods) else names
        count = "1 cell" if len(methods) == 1 else f"{len(methods)} cells"
        notes.append(f"{dataset_name(dataset)}, {count} {status} ({names}): {reason.rstrip('.')}.")
    return [*notes, *_mixed_notes(records), *_trained_once_notes(records), *outdated_notes(records)]


def _mixed_notes(records: Sequence[Record]) -> list[str]:
    """A warning where one mean stands for different settings: a cell was measured before they changed."""
    hashes: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for record in records:
        if record.get("status") == "done" and record.get("config_hash"):
            place = tuple(
                str(record.get(name)) for name in ("dataset", "method", "preset", "variant", "split")
            )
            hashes[place].add(str(record["config_hash"]))
    return [
        f"{dataset_name(dataset)}, {method_name(method)}: seeds were measured with different settings; run "
        "the study again."
        for (dataset, method, *_), found in sorted(hashes.items())
        if len(found) > 1
    ]


def _trained_once_notes(records: Sequence[Record]) -> list[str]:
    """What the spread of a method leaves out that was trained once for all splits."""
    once = [record for record in records if record.get("training_seed") is not None]
    seeds = ", ".join(sorted({str(record["training_seed"]) for record in once}))
    names = ", ".join(method_name(method) for method in in_method_order(str(r["method"]) for r in once))
    other = {record["method"] for record in records if record.get("training_seed") is None}
    where = ", where a variant does not say otherwise" if other & {r["method"] for r in once} else ""
    told = f"trained once on each graph, with seed {seeds}{where}: their spread is that of the splits alone."
    return [f"{names}: {told}"] if once else []


def _refuse_second(record: Record) -> NoReturn:
    names = ("method", "preset", "variant", "dataset", "split", "seed")
    told = ", ".join(f"{name} {record[name]}" for name in names if record.get(name) is not None)
    raise DataError(
        f"two records would stand in one place of a table; one of them is {told}",
        fix="Keep what this table does not tell apart (presets, variants, splits) in studies of their own.",
    )


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def outdated_notes(records: Sequence[Record]) -> list[str]:
    """A sentence for each setting in which all records of a method on a graph differ from its preset.

    What only some variants of an ablation change is their own; what all of them have is not the preset.
    """
    shared: dict[tuple[str, str, str], frozenset[tuple[str, str, str]]] = {}
    for record in records:
        method, config = str(record.get("method")).partition(" (")[0], record.get("config")
        if record.get("status") == "done" and isinstance(config, dict) and method in METHODS:
            place = (method, str(record.get("preset")), str(record["dataset"]))
            found = _differences(*place, json.dumps(config))
            shared[place] = shared[place] & found if place in shared else found
    graphs: dict[tuple[str, str, str, str, str], list[str]] = defaultdict(list)
    for (method, preset, dataset), found in shared.items():
        for name, was, today in found:
            graphs[method, preset, name, was, today].append(dataset)
    notes = []
    for (method, preset, name, was, today), datasets in sorted(graphs.items()):
        where = ", ".join(dataset_name(dataset) for dataset in in_dataset_order(datasets))
        told = f"measured with {name} = {was}; preset {preset} has {today}."
        notes.append(f"{method_name(method)} on {where}: {told}")
    return notes


@lru_cache(maxsize=4096)  # few settings, many records
def _differences(method: str, preset: str, dataset: str, text: str) -> frozenset[tuple[str, str, str]]:
    try:
        was = dotted(to_dict(config_of_today(method, METHODS[method].config_class, json.loads(text))))
        today = dotted(to_dict(make_method(method, preset=preset, dataset=dataset).config))
    except ConfigError:  # a preset or a setting that is gone: its tables say so elsewhere
        return frozenset()
    differing = (name for name, value in today.items() if was.get(name, value) != value)
    return frozenset((name, str(was[name]), str(today[name])) for name in differing)
