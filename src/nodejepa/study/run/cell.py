"""A cell of a study: a method on a graph, a split, a seed. Its key says whether it was done before.

Two results are the same result when they stand in one place of the tables and one setting made them. Settings
are compared as today's config class reads them (:mod:`nodejepa.methods.migrations`), never as they were
written: records outlive the settings that are added later.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeAlias

from nodejepa.config import to_dict
from nodejepa.errors import ConfigError
from nodejepa.methods import METHODS, find_method, make_method
from nodejepa.methods.migrations import config_of_today

# frozen embeddings, both probes and diagnostics; end to end, beside random weights; seconds and memory
Kind: TypeAlias = Literal["probe", "finetune", "efficiency"]


@dataclass(frozen=True)
class Cell:
    """What is to be measured; everything that can change the result is here."""

    study: str
    kind: Kind
    method: str
    preset: str
    dataset: str
    split: str  # "5-30" is a few-shot cell
    seed: int  # of the method and of the split
    variant: str | None = None  # what an ablation calls this setting
    settings: Mapping[str, Any] = field(default_factory=dict)  # changes against the preset, by dotted name
    frozen: str | None = None  # commit after which nothing about it was chosen; no part of the key
    training_seed: int | None = None  # where it is not that of the split: one training serves all splits

    @cached_property
    def config(self) -> dict[str, Any]:
        """All settings of the method in this cell."""
        made: Any = make_method(self.method, preset=self.preset, dataset=self.dataset, settings=self.settings)
        return to_dict(made.config)

    @cached_property
    def config_hash(self) -> str:
        """16 hexadecimal digits that change with any setting."""
        return config_hash(self.method, self.config)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """The place of the cell in the tables: two records with the same one are the same cell."""
        return coordinates(self.describe())

    @cached_property
    def key(self) -> str:
        """As the coordinates, and every setting: another key is another measurement."""
        return cell_key(self.coordinates, self.config_hash)

    @property
    def trained_with(self) -> int:
        """The seed of the method."""
        return self.seed if self.training_seed is None else self.training_seed

    @property
    def epochs(self) -> int:
        """How long the method trains; 0 where nothing is trained."""
        return (
            int(self.config.get("training", {}).get("epochs", 0)) if find_method(self.method).trained else 0
        )

    @property
    def patience(self) -> int | None:
        """Epochs without progress after which training stops early, if it does."""
        patience: int | None = self.config.get("training", {}).get("patience")
        return patience

    @property
    def label(self) -> str:
        """For people: what the progress bar shows."""
        name = f"{self.method} ({self.variant})" if self.variant else self.method
        return f"{name} on {self.dataset}, split {self.split}, seed {self.seed}"

    def describe(self) -> dict[str, Any]:
        """The first columns of the cell's record."""
        shots = re.fullmatch(r"(\d+)-\d+", self.split)
        optional = {"frozen": self.frozen, "training_seed": self.training_seed}
        return {
            "study": self.study,
            "kind": self.kind,
            "method": self.method,
            "preset": self.preset,
            "variant": self.variant,
            "dataset": self.dataset,
            "split": self.split,
            "shots": int(shots[1]) if shots else None,
            "seed": self.seed,
        } | {name: value for name, value in optional.items() if value is not None}


def coordinates(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Where a record stands in the tables."""
    names = ("kind", "method", "preset", "variant", "dataset", "split", "seed")
    place = [str(record.get(name)) for name in names]
    if record.get("training_seed") is not None:  # records are older than this
        place.insert(-1, f"trained with seed {record['training_seed']}")
    return tuple(place)


def config_hash(method: str, config: Mapping[str, Any]) -> str:
    """16 hexadecimal digits that change with any setting of a method, and with nothing else."""
    kind = METHODS[method].method.config_class if method in METHODS else None
    return _config_hash(method, kind, json.dumps(config, sort_keys=True))


def cell_key(place: tuple[str, ...], settings: str) -> str:
    """As the coordinates, and every setting (as a hash): another key is another measurement."""
    return _digest([*place, settings])


def identified(record: dict[str, Any]) -> dict[str, Any]:
    """A record under its identity of today; one whose settings no longer exist keeps that of its time."""
    if not isinstance(record.get("config"), dict) or "key" not in record:
        return record
    settings = config_hash(str(record.get("method")), record["config"])
    return record | {"config_hash": settings, "key": cell_key(coordinates(record), settings)}


@lru_cache(maxsize=4096)  # few settings, many records
def _config_hash(method: str, kind: type[Any] | None, text: str) -> str:
    config = json.loads(text)
    if kind is not None:
        with suppress(ConfigError):  # of a version that nobody can translate: the same as nothing of today
            config = to_dict(config_of_today(method, kind, config))
    return _digest([method, config])


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
