"""The order and the names in which tables and figures show methods and graphs."""

from __future__ import annotations

from collections.abc import Iterable

from nodejepa.methods import FLOORS as FLOORS
from nodejepa.methods import METHODS
from nodejepa.methods.entry import OTHER_LOOK, Look

SELF_SUPERVISED = ("dgi", "graphmae", "bgrl", "cca-ssg", "nodejepa", "patchjepa")
JEPA = ("nodejepa", "patchjepa")
SOLVED = tuple(entry.name for entry in METHODS.values() if entry.trained and not entry.by_gradient)
STANDING_FLOORS = ("raw", "sgc", "random-gcn")  # in every accuracy table, measured or not

# The paper's order, then what it does not have.
_ORDER = (
    "dgi",
    "graphmae",
    "bgrl",
    "cca-ssg",
    "supervised-gcn",
    "nodejepa",
    "patchjepa",
    "linear-jepa",
    *FLOORS,
)
_DATASETS = {"computers": "Computers", "photo": "Photo", "cs": "CS", "physics": "Physics", "arxiv": "arxiv"}


def method_name(method: str) -> str:
    """What a method is called; ``"dgi (official)"`` is DGI under another preset.

    >>> method_name("cca-ssg"), method_name("dgi (official)"), method_name("mine")
    ('CCA-SSG', 'DGI (official)', 'mine')
    """
    name, bracket, preset = method.partition(" (")
    return (METHODS[name].title if name in METHODS else name) + bracket + preset


def look(method: str) -> Look:
    """How a method is drawn; another preset of it keeps the colour but not the marker and the hatch."""
    name, bracket, _ = method.partition(" (")
    found = METHODS[name].look if name in METHODS else OTHER_LOOK
    return Look(found.colour, OTHER_LOOK.marker, OTHER_LOOK.hatch, found.line) if bracket else found


def dataset_name(dataset: str) -> str:
    """What a graph is called; an unknown one keeps its name."""
    return _DATASETS.get(dataset, dataset)


def in_method_order(methods: Iterable[str]) -> list[str]:
    """Each once: the paper's order, then methods it does not have, the floors last.

    >>> in_method_order(["sgc", "mine", "patchjepa", "dgi", "dgi"])
    ['dgi', 'patchjepa', 'mine', 'sgc']
    """

    def place(method: str) -> tuple[int, int, str]:
        group = 2 if method in FLOORS else 0 if method in _ORDER else 1
        return group, _ORDER.index(method) if method in _ORDER else 0, method

    return sorted(set(methods), key=place)


def in_dataset_order(datasets: Iterable[str]) -> list[str]:
    """Each once: the paper's order, then others by name."""
    known = list(_DATASETS)
    return sorted(set(datasets), key=lambda name: (known.index(name) if name in known else len(known), name))
