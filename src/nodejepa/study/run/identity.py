"""When are two results the same result? When they stand in one place of the tables and one setting made them.

Settings are compared as today's config class reads them (:mod:`nodejepa.methods.migrations`), never as they
were written: records outlive the settings that are added later.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from nodejepa.config import to_dict
from nodejepa.errors import ConfigError
from nodejepa.methods import METHODS
from nodejepa.methods.migrations import config_of_today


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
