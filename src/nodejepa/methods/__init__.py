"""Methods: one file each. ``METHODS`` is the table of them; ``make_method`` builds one by name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nodejepa.config import override, refuse_unknown
from nodejepa.errors import CheckpointError, ConfigError, did_you_mean
from nodejepa.methods.arguments import check_folder, dataset_key
from nodejepa.methods.bgrl import BGRL
from nodejepa.methods.blocks import PRESETS
from nodejepa.methods.budget import ClosedFormCost, GradientCost
from nodejepa.methods.ccassg import CCASSG
from nodejepa.methods.dgi import DGI
from nodejepa.methods.entry import Look, MethodEntry, floor
from nodejepa.methods.estimator import Estimator
from nodejepa.methods.floors import RandomGCN, RawFeatures
from nodejepa.methods.graphmae import GraphMAE
from nodejepa.methods.hop_floors import SGC, SGC1, SGC3, EqualHops, Walk
from nodejepa.methods.linear_jepa import LinearJEPA
from nodejepa.methods.nodejepa import NodeJEPA
from nodejepa.methods.patchjepa import PatchJEPA
from nodejepa.methods.start import StartedCost
from nodejepa.methods.supervised import SupervisedGCN
from nodejepa.methods.trained import TrainedEstimator
from nodejepa.training.run import Run, load_tensors

__all__ = [
    "BGRL",
    "CCASSG",
    "DGI",
    "FLOORS",
    "METHODS",
    "Estimator",
    "GraphMAE",
    "LinearJEPA",
    "MethodEntry",
    "NodeJEPA",
    "PatchJEPA",
    "SupervisedGCN",
    "TrainedEstimator",
    "find_method",
    "load_method",
    "make_estimator",
    "make_method",
]

_PAPER = "Zhang et al., NodeJEPA"
_SGC, _GCN, _WALK = "Wu et al. 2019", "Kipf & Welling 2017", "Gasteiger et al. 2019"

# Okabe and Ito's colours; both JEPA variants are warm, baselines cool, floors grey
METHODS: dict[str, MethodEntry] = {
    entry.name: entry
    for entry in (
        floor(RawFeatures, "Raw features", "the node features themselves", "-", "#C8C8C8", "x", ""),
        floor(SGC, "Propagated (S^2 X)", "features propagated twice, S^2 X", _SGC, "#909090", "+", "||"),
        floor(
            RandomGCN, "Random GCN", "untrained 3 x 256 GCN encoder", _GCN, "#606060", "1", "oo", seeded=True
        ),
        floor(SGC1, "Propagated (S X)", "features propagated once, S X", _SGC, "#A8A8A8", "2", "|"),
        floor(SGC3, "Propagated (S^3 X)", "propagated three times, S^3 X", _SGC, "#787878", "3", "|||"),
        floor(EqualHops, "X with equal hops", "X, S X and S^2 X, equally loud", "-", "#B8B8B8", "4", "-"),
        floor(Walk, "X after the walk", "X walked over the graph with restart", _WALK, "#989898", "d", "--"),
        MethodEntry(
            "linear-jepa",
            "LinearJEPA (closed form)",
            "linear latent prediction in closed form, no gradient descent",
            "this package",
            LinearJEPA,
            Look("#B22222", "X", "**", "-"),
            seeded=False,
            by_gradient=False,
            cost=ClosedFormCost(),
        ),
        MethodEntry(
            "nodejepa",
            "NodeJEPA",
            "predicts embeddings of hidden k-hop neighbourhoods",
            _PAPER,
            NodeJEPA,
            Look("#D55E00", "o", "", "-"),
            presets=("default", "paper", "linear-start"),
            about_presets="default is paper; linear-start: trained on from LinearJEPA's solution",
            cost=StartedCost(GradientCost(6.0, 6.0, 6.0)),
        ),
        MethodEntry(
            "patchjepa",
            "PatchJEPA",
            "predicts pooled embeddings of METIS patches",
            _PAPER,
            PatchJEPA,
            Look("#E69F00", "s", "--", "-"),
            presets=("default", "paper"),
            about_presets="no default of its own: both are the paper's",
            cost=GradientCost(6.0, 6.0, 5.0),
        ),
        MethodEntry(
            "dgi",
            "DGI",
            "tells nodes from nodes with shuffled features",
            "Velickovic et al. 2019",
            DGI,
            Look("#56B4E9", "^", "//", "--"),
            presets=PRESETS,
            cost=GradientCost(6.0, 4.0, 7.0),
        ),
        MethodEntry(
            "graphmae",
            "GraphMAE",
            "reconstructs features of masked nodes",
            "Hou et al. 2022",
            GraphMAE,
            Look("#0072B2", "D", "\\\\", "--"),
            presets=PRESETS,
            cost=GradientCost(3.0, 3.0, 5.0),
        ),
        MethodEntry(
            "bgrl",
            "BGRL",
            "predicts a moving average's embedding of another view",
            "Thakoor et al. 2022",
            BGRL,
            Look("#009E73", "v", "xx", "--"),
            presets=PRESETS,
            cost=GradientCost(9.0, 6.0, 10.0),
        ),
        MethodEntry(
            "cca-ssg",
            "CCA-SSG",
            "two views agree, dimensions do not",
            "Zhang et al. 2021",
            CCASSG,
            Look("#CC79A7", "P", "..", "--"),
            presets=PRESETS,
            cost=GradientCost(6.0, 2.0, 7.0),
        ),
        MethodEntry(
            "supervised-gcn",
            "Supervised GCN",
            "learns from the split's training labels",
            "Kipf & Welling 2017, Shchur et al. 2018",
            SupervisedGCN,
            Look("#000000", "*", "", "-."),
            supervised=True,
            presets=PRESETS,
        ),
    )
}
FLOORS = tuple(entry.name for entry in METHODS.values() if not entry.trained)


def find_method(name: str) -> MethodEntry:
    """The entry called ``name``."""
    if isinstance(name, str) and name in METHODS:
        return METHODS[name]
    hint = did_you_mean(name, METHODS)
    raise ConfigError(f"method {name!r} is unknown", fix=f"{hint}Known methods: {', '.join(METHODS)}.")


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
        preset: one of the entry's presets.
        dataset: name of the data set, for presets that differ between data sets.
        seed: of everything random.
        settings: changes by dotted name, as in :func:`nodejepa.config.override`.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        unknown: refused, with the name that it has here.
    """
    refuse_unknown(unknown, ("preset", "dataset", "seed", "settings", "device"), "make_method")
    entry = find_method(name)
    if preset not in entry.presets:
        raise ConfigError(
            f"method {name} has no preset {preset!r}", fix=f"Use one of {', '.join(entry.presets)}."
        )
    config = entry.method.preset(preset, dataset_key(dataset))
    method: Estimator = entry.method(override(config, settings or {}), seed=seed, device=device)
    return method


def make_estimator(name: str, **arguments: Any) -> Estimator:
    """As :func:`make_method`, for a method that is trained."""
    method = make_method(name, **arguments)
    if not find_method(name).trained:
        trained = ", ".join(entry.name for entry in METHODS.values() if entry.trained)
        raise ConfigError(f"method {name} needs no training", fix=f"Probe it directly, or train {trained}.")
    return method


def load_method(folder: str | Path, *, device: str = "auto") -> Estimator:
    """The method saved in a folder, whichever it is."""
    path = Run(check_folder(folder)).model
    name = load_tensors(path)[1].get("method")
    entry = METHODS.get(str(name))
    if entry is None:
        raise CheckpointError(f"the model is of an unknown method {name!r}", where=str(path))
    estimator: Estimator = entry.method.load(folder, device=device)
    return estimator
