"""Methods: one file each. ``METHODS`` is the table of them; ``make_method`` builds one by name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nodejepa.config import override, refuse_unknown
from nodejepa.errors import CheckpointError, ConfigError, did_you_mean
from nodejepa.methods.baselines import APPNP, SGC, SGC1, SGC3, EqualHops, RandomGCN, RawFeatures
from nodejepa.methods.bgrl import BGRL
from nodejepa.methods.ccassg import CCASSG
from nodejepa.methods.dgi import DGI
from nodejepa.methods.estimator import Estimator
from nodejepa.methods.graphmae import GraphMAE
from nodejepa.methods.linear_jepa import LinearJEPA
from nodejepa.methods.nodejepa import NodeJEPA
from nodejepa.methods.patchjepa import PatchJEPA
from nodejepa.methods.supervised import SupervisedGCN
from nodejepa.methods.trained import TrainedEstimator
from nodejepa.training.run import Run, load_tensors

__all__ = [
    "BGRL",
    "CCASSG",
    "DGI",
    "METHODS",
    "UNTRAINED",
    "Estimator",
    "GraphMAE",
    "LinearJEPA",
    "NodeJEPA",
    "PatchJEPA",
    "SupervisedGCN",
    "TrainedEstimator",
    "find_method",
    "load_method",
    "make_method",
    "refuse_supervised",
]

METHODS: dict[str, type[Estimator]] = {
    method.name: method
    for method in (
        RawFeatures,
        SGC,
        RandomGCN,
        SGC1,
        SGC3,
        EqualHops,
        APPNP,
        LinearJEPA,
        NodeJEPA,
        PatchJEPA,
        DGI,
        GraphMAE,
        BGRL,
        CCASSG,
        SupervisedGCN,
    )
}
UNTRAINED = tuple(method.name for method in METHODS.values() if not method.trained)  # baselines


def find_method(name: str) -> type[Estimator]:
    """The method called ``name``."""
    if isinstance(name, str) and name in METHODS:
        return METHODS[name]
    hint = did_you_mean(name, METHODS)
    raise ConfigError(f"method {name!r} is unknown", fix=f"{hint}Known methods: {', '.join(METHODS)}.")


def refuse_supervised(name: str) -> None:
    """Refuse a method that learns from labels where none reach training."""
    if find_method(name).supervised:
        raise ConfigError(
            f"{name} learns from labels, and labels are kept away from training here",
            where="method",
            fix="Use another method of `nodejepa methods`. `nodejepa probe` trains this one for every split "
            "and scores it.",
        )


def make_method(
    name: str,
    *,
    preset: str = "default",
    dataset: str | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    device: str = "auto",
    **unknown: Any,
) -> Estimator:
    """Build a method by name.

    Args:
        name: a key of :data:`METHODS`.
        preset: one of the method's presets.
        dataset: name of the data set, for presets that differ between data sets.
        seed: the random seed.
        settings: changes by dotted name, as in :func:`nodejepa.config.override`.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        unknown: any other argument is an error, which names the setting that is meant.
    """
    refuse_unknown(unknown, ("preset", "dataset", "seed", "settings", "device"), "make_method")
    method = find_method(name)
    config = method.preset(preset, dataset)
    return method(override(config, settings or {}), seed=seed, device=device)


def load_method(folder: str | Path, *, device: str = "auto") -> Estimator:
    """The method saved in a folder, whichever it is."""
    path = Run(folder).model
    name = load_tensors(path)[1].get("method")
    method = METHODS.get(str(name))
    if method is None:
        raise CheckpointError(f"the model is of an unknown method {name!r}", where=str(path))
    return method.load(folder, device=device)
