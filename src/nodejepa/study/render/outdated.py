"""Which figures were measured with settings that their preset does not have, or no longer has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from nodejepa.config import dotted, to_dict
from nodejepa.errors import ConfigError
from nodejepa.methods import METHODS, make_method
from nodejepa.methods.migrations import config_of_today
from nodejepa.study.render.names import dataset_name, in_dataset_order, method_name
from nodejepa.study.run.records import Record


def outdated_notes(records: Sequence[Record]) -> list[str]:
    """A sentence for each setting in which all records of a method on a graph differ from its preset.

    What only some variants of an ablation change is their own; what all of them have is not the preset.
    """
    shared: dict[tuple[str, str, str], set[tuple[str, str, str]]] = {}
    for record in records:
        method, config = str(record.get("method")).partition(" (")[0], record.get("config")
        if record.get("status") == "done" and isinstance(config, dict) and method in METHODS:
            place = (method, str(record.get("preset")), str(record["dataset"]))
            found = _differences(*place, config)
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


def _differences(method: str, preset: str, dataset: str, config: dict[str, Any]) -> set[tuple[str, str, str]]:
    try:
        was = dotted(to_dict(config_of_today(method, METHODS[method].method.config_class, config)))
        today = _preset(method, preset, dataset)
    except ConfigError:  # a preset or a setting that is gone: its tables say so elsewhere
        return set()
    return {
        (name, str(was[name]), str(value)) for name, value in today.items() if was.get(name, value) != value
    }


@lru_cache(maxsize=512)
def _preset(method: str, preset: str, dataset: str) -> dict[str, Any]:
    return dict(dotted(to_dict(make_method(method, preset=preset, dataset=dataset).config)))
