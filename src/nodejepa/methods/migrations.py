"""Settings written by an older version, in today's words.

A result's identity is the setting that made it, read through today's config class: a setting that did not
exist yet takes its default, so a new one with a default orphans no record and no run. Everything else that
can happen to a setting stands here, in one place:

* **renamed**: give the old and the new dotted name.
* **removed**: give the old name and the one value that still means the same; any other value is refused.
* **absent**: give a new setting and what results without it were made with. Needed as soon as the default of
  a setting that some records lack is changed: what was measured before must keep its meaning.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from nodejepa.config import dotted, from_dict
from nodejepa.errors import ConfigError

C = TypeVar("C")


@dataclass(frozen=True)
class Migration:
    """What happened to one method's settings since the first committed record."""

    renamed: Mapping[str, str] = field(default_factory=dict)
    removed: Mapping[str, Any] = field(default_factory=dict)
    absent: Mapping[str, Any] = field(default_factory=dict)


# all were of the whole graph
_IN_PARTS = {"parts": 1, "parts_per_step": 1, "micro_batches": 1, "partition": "metis"}
_GRADIENT = ("nodejepa", "patchjepa", "dgi", "graphmae", "bgrl", "cca-ssg", "supervised-gcn")
_ABSENT: dict[str, dict[str, Any]] = {
    method: {f"training.{name}": value for name, value in _IN_PARTS.items()} for method in _GRADIENT
}
_ABSENT["nodejepa"] |= {"loss.prediction_weight": 1.0, "masking.max_neighbours": None}
_ABSENT["nodejepa"] |= {"masking.token_std": 0.0}
_ABSENT["nodejepa"] |= {"start": "random", "loss.covariance_over": "dimensions", "loss.regularised": "all"}
_ABSENT["patchjepa"] |= {"patches.encode": "patch", "loss.sigreg_on": "context"}
# LinearJEPA's first recipe added hops of equal scale, the second kept the latents themselves always: no
# setting of today means the same
_REMOVED: dict[str, dict[str, Any]] = {"linear-jepa": {"equal_hops": None, "high": None, "own": None}}
_REMOVED |= {method: {"encoder.heads": 4, "encoder.attention_dropout": 0.0} for method in _GRADIENT}
_REMOVED["graphmae"] |= {"decoder": "gcn", "masking.edges": 0.0}
# neighbourhoods that were searched once (docs/log.md)
_REMOVED["nodejepa"] |= {"masking.pool": None, "masking.curriculum": True}

_RENAMED = {"training.units": "training.micro_batches", "turned": "rotated"}

MIGRATIONS: dict[str, Migration] = {  # by name of the method
    method: Migration(_RENAMED, _REMOVED.get(method, {}), _ABSENT.get(method, {}))
    for method in _ABSENT | _REMOVED
}


def config_of_today(method: str, kind: type[C], values: Mapping[str, Any]) -> C:
    """The settings that ``values``, written by this or an older version, stand for."""
    migration = MIGRATIONS.get(method, Migration())
    settings = {migration.renamed.get(name, name): value for name, value in dotted(values).items()}
    for name, meaning in migration.removed.items():
        if settings.pop(name, meaning) != meaning:
            raise ConfigError(
                f"setting {name} no longer exists, and was not {meaning!r}",
                where=method,
                fix="Use the version of nodejepa that wrote it, or train again.",
            )
    return from_dict(kind, dict(migration.absent) | settings)
