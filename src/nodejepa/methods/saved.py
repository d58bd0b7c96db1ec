"""A fitted method on disk: safetensors and JSON, no pickle."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from nodejepa.config import to_dict
from nodejepa.errors import CheckpointError, ConfigError
from nodejepa.methods.arguments import check_folder, check_sizes
from nodejepa.methods.migrations import config_of_today
from nodejepa.principal import PrincipalAxes
from nodejepa.provenance import versions
from nodejepa.training.run import Run, check_history, load_into, load_tensors, save_tensors
from nodejepa.validation import NonNegativeInt, PositiveInt, of_type

if TYPE_CHECKING:
    from nodejepa.methods.estimator import Estimator

E = TypeVar("E", bound="Estimator")
_KEPT = "kept."  # before the names of the principal axes in a model


@dataclass(frozen=True)
class _Facts:
    """What every saved model says; methods add facts of their own."""

    config: dict[str, Any]
    seed: NonNegativeInt
    in_dim: NonNegativeInt
    history: list[Any]
    max_columns: PositiveInt | None = None
    only_for: str | None = None


def save_model(estimator: Estimator, folder: str | Path) -> None:
    """Write the encoder of a fitted method and its settings."""
    facts = {
        "method": estimator.name,
        "config": to_dict(estimator.config),
        "seed": estimator.seed,
        "in_dim": estimator.in_dim_,
        "history": estimator.history_,
        "versions": versions(),
        **estimator.own_facts(),
        **({} if estimator.max_columns is None else {"max_columns": estimator.max_columns}),
        **({} if estimator.only_for_ is None else {"only_for": estimator.only_for_}),
    }
    tensors = dict(estimator.encoder_.state_dict())
    if estimator.reduction_ is not None:
        tensors |= {f"{_KEPT}{name}": torch.from_numpy(v) for name, v in vars(estimator.reduction_).items()}
    save_tensors(Run(check_folder(folder)).model, tensors, facts)


def restore_model(estimator: E, folder: str | Path) -> E:
    """Bring a method to what :func:`save_model` wrote; everything that the file says is checked."""
    path = Run(check_folder(folder)).model
    tensors, facts = load_tensors(path)
    if facts.get("method") != estimator.name:
        raise CheckpointError(
            f"the model is a {facts.get('method')}, not a {estimator.name}", where=str(path)
        )
    try:
        known, axes = of_type(_Facts, facts), None
        estimator.config = config_of_today(estimator.name, estimator.config_class, known.config)
        estimator.seed, estimator.in_dim_ = known.seed, known.in_dim
        estimator.history_ = check_history(known.history, path)
        estimator.take_facts(facts)
        estimator.max_columns, estimator.only_for_ = known.max_columns, known.only_for
        if f"{_KEPT}axes" in tensors:
            axes = PrincipalAxes(*(tensors.pop(f"{_KEPT}{name}").numpy() for name in ("mean", "axes")))
        estimator.reduction_ = axes
        check_sizes(estimator.config, estimator.in_dim_, sum(tensor.numel() for tensor in tensors.values()))
    except (KeyError, ValueError, OverflowError, ConfigError) as error:
        raise CheckpointError(
            f"the model's description is not understood: {error}", where=str(path)
        ) from None
    estimator.encoder_ = estimator.make_encoder(estimator.in_dim_)
    load_into(estimator.encoder_, tensors, str(path))
    return estimator
