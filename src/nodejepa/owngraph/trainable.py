"""Which methods a user's graph may be embedded with: all that need no labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodejepa.errors import Advice, ConfigError, Setting
from nodejepa.methods import find_method, make_method
from nodejepa.methods.device import pick_device
from nodejepa.methods.estimator import Estimator


def make_trainable(
    method: str,
    *,
    preset: str = "default",
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    device: str = "auto",
    dim: int | None = None,
) -> Estimator:
    """The method with its settings, floors included; one that learns from labels is refused.

    Args:
        method: a name in :data:`nodejepa.METHODS`.
        preset: of the method.
        settings: changes by dotted name.
        seed: of everything random.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        dim: of wider embeddings, keep so many principal components.
    """
    entry = find_method(method)
    if entry.supervised:
        raise ConfigError(
            f"{method} learns from labels, and embed-graph keeps labels away from training",
            where="method",
            fix=Advice(
                "Use nodejepa or another method that `nodejepa methods` lists; ",
                Setting("labels"),
                " gives scores.",
            ),
        )
    if dim is not None and (isinstance(dim, bool) or not isinstance(dim, int) or dim < 1):
        raise ConfigError(f"dim is {dim!r}", where="dim", fix="Give a whole number of columns, 1 or more.")
    pick_device(device)
    estimator = make_method(method, preset=preset, settings=settings, seed=seed, device=device)
    estimator.max_columns = dim
    return estimator
