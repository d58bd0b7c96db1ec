"""Methods: one file each. ``METHODS`` is the table of them; ``make_method`` builds one by name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from nodejepa.config import override
from nodejepa.errors import ConfigError
from nodejepa.graph_checks import Features
from nodejepa.methods.floors import SGC, RandomGCN, RawFeatures

__all__ = ["METHODS", "Method", "MethodEntry", "make_method"]


class Method(Protocol):
    """What every method offers; ``fit`` sees a graph (never labels), ``transform`` gives a row a node."""

    def fit(self, graph: Any) -> Any:
        """Learn from a graph (or a PyG ``Data``, NetworkX or SciPy object); returns the method itself."""

    def transform(self, graph: Any) -> Features:
        """Embeddings, rows in the graph's order."""


@dataclass(frozen=True)
class MethodEntry:
    """One row of the table of methods."""

    name: str
    summary: str
    citation: str
    method: Any
    seeded: bool = True
    trained: bool = True
    presets: tuple[str, ...] = ("default",)


METHODS: dict[str, MethodEntry] = {
    entry.name: entry
    for entry in (
        MethodEntry("raw", "the node features themselves", "-", RawFeatures, seeded=False, trained=False),
        MethodEntry(
            "sgc", "features propagated twice, S^2 X", "Wu et al. 2019", SGC, seeded=False, trained=False
        ),
        MethodEntry(
            "random-gcn", "untrained 3 x 256 GCN encoder", "Kipf & Welling 2017", RandomGCN, trained=False
        ),
    )
}


def find_method(name: str) -> MethodEntry:
    """The entry called ``name``."""
    if name in METHODS:
        return METHODS[name]
    near = difflib.get_close_matches(name, METHODS, n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    raise ConfigError(f"method {name!r} is unknown", fix=f"{hint}Known methods: {', '.join(METHODS)}.")


def make_method(
    name: str,
    *,
    preset: str = "default",
    dataset: str | None = None,
    seed: int = 0,
    overrides: Mapping[str, Any] | None = None,
) -> Method:
    """Build a method by name.

    Args:
        name: a key of :data:`METHODS`.
        preset: one of the entry's presets.
        dataset: name of the data set, for presets that differ between data sets.
        seed: of everything random.
        overrides: settings by dotted name, as in :func:`nodejepa.config.override`.
    """
    entry = find_method(name)
    if preset not in entry.presets:
        raise ConfigError(
            f"method {name} has no preset {preset!r}", fix=f"Use one of {', '.join(entry.presets)}."
        )
    make_config = getattr(entry.method, "preset", None)
    config = make_config(preset, dataset) if make_config else entry.method.config_class()
    method: Method = entry.method(override(config, overrides or {}), seed=seed)
    return method
