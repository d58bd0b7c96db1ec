"""The order and the names in which methods and graphs are shown, and the figures that the paper prints."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from nodejepa.methods import METHODS, UNTRAINED
from nodejepa.report.sections import Summary

SELF_SUPERVISED = ("dgi", "graphmae", "bgrl", "cca-ssg", "nodejepa", "patchjepa")
JEPA = ("nodejepa", "patchjepa")
SOLVED = tuple(entry.name for entry in METHODS.values() if entry.trained and not entry.by_gradient)
STANDING_BASELINES = ("raw", "sgc", "random-gcn")  # in every accuracy table, measured or not

# The paper's order, then what it does not have.
_ORDER = (*SELF_SUPERVISED[:4], "supervised-gcn", *JEPA, "linear-jepa", *UNTRAINED)
_DATASETS = {"computers": "Computers", "photo": "Photo", "cs": "CS", "physics": "Physics", "arxiv": "arxiv"}


@dataclass(frozen=True)
class PlotStyle:
    """How a method is drawn: readable in grey and by the colour-blind (colours of Okabe and Ito)."""

    colour: str
    marker: str
    hatch: str
    line: Literal["-", "--", "-.", ":"]


_OTHER = PlotStyle("#F0E442", "h", "++", "-")
_STYLES = {
    "raw": PlotStyle("#C8C8C8", "x", "", ":"),
    "sgc": PlotStyle("#909090", "+", "||", ":"),
    "random-gcn": PlotStyle("#606060", "1", "oo", ":"),
    "sgc-1": PlotStyle("#A8A8A8", "2", "|", ":"),
    "sgc-3": PlotStyle("#787878", "3", "|||", ":"),
    "equal-hops": PlotStyle("#B8B8B8", "4", "-", ":"),
    "walk": PlotStyle("#989898", "d", "--", ":"),
    "linear-jepa": PlotStyle("#B22222", "X", "**", "-"),
    "nodejepa": PlotStyle("#D55E00", "o", "", "-"),
    "patchjepa": PlotStyle("#E69F00", "s", "--", "-"),
    "dgi": PlotStyle("#56B4E9", "^", "//", "--"),
    "graphmae": PlotStyle("#0072B2", "D", "\\\\", "--"),
    "bgrl": PlotStyle("#009E73", "v", "xx", "--"),
    "cca-ssg": PlotStyle("#CC79A7", "P", "..", "--"),
    "supervised-gcn": PlotStyle("#000000", "*", "", "-."),
}


def method_name(method: str) -> str:
    """What a method is called; ``"dgi (official)"`` is DGI under another preset.

    >>> method_name("cca-ssg"), method_name("dgi (official)"), method_name("mine")
    ('CCA-SSG', 'DGI (official)', 'mine')
    """
    name, bracket, preset = method.partition(" (")
    return (METHODS[name].title if name in METHODS else name) + bracket + preset


def look(method: str) -> PlotStyle:
    """How a method is drawn; another preset of it keeps the colour but not the marker and the hatch."""
    name, bracket, _ = method.partition(" (")
    found = _STYLES.get(name, _OTHER)
    return PlotStyle(found.colour, _OTHER.marker, _OTHER.hatch, found.line) if bracket else found


def dataset_name(dataset: str) -> str:
    """What a graph is called; an unknown one keeps its name."""
    return _DATASETS.get(dataset, dataset)


def in_method_order(methods: Iterable[str]) -> list[str]:
    """Each once: the paper's order, then methods it does not have, the untrained baselines last.

    >>> in_method_order(["sgc", "mine", "patchjepa", "dgi", "dgi"])
    ['dgi', 'patchjepa', 'mine', 'sgc']
    """

    def place(method: str) -> tuple[int, int, str]:
        group = 2 if method in UNTRAINED else 0 if method in _ORDER else 1
        return group, _ORDER.index(method) if method in _ORDER else 0, method

    return sorted(set(methods), key=place)


def in_dataset_order(datasets: Iterable[str]) -> list[str]:
    """Each once: the paper's order, then others by name."""
    known = list(_DATASETS)
    return sorted(set(datasets), key=lambda name: (known.index(name) if name in known else len(known), name))


@dataclass(frozen=True)
class PrintedTest:
    """One row of the paper's tables of t-tests."""

    variant: str
    dataset: str
    baseline: str
    mean: float
    baseline_mean: float
    difference: float
    p: float
    test: Literal["paired", "Welch"]


@cache
def paper() -> dict[str, Any]:
    """The whole file; ``source`` of each part names the table's label in the paper."""
    return tomllib.loads(Path(__file__).with_name("paper.toml").read_text(encoding="utf-8"))


def paper_source(part: str) -> str:
    """Where in the paper the figures of one part stand."""
    return str(paper()[part]["source"])


def paper_accuracy(method: str, dataset: str) -> Summary | None:
    """Linear-probe accuracy of Table 1; ``None`` for what the paper does not have."""
    return _summary(paper()["main"]["accuracy"].get(method, {}).get(dataset), paper()["main"]["seeds"])


def paper_average_rank(method: str) -> float | None:
    """The paper's own average rank, over its five graphs."""
    found: float | None = paper()["main"]["average_rank"].get(method)
    return found


def paper_fewshot(method: str, dataset: str, shots: int) -> Summary | None:
    """Accuracy with ``shots`` labels per class; the paper does not say how many draws stand behind it."""
    return _summary(paper()["fewshot"]["accuracy"].get(method, {}).get(dataset, {}).get(str(shots)), 0)


def paper_ablation(letter: str, dataset: str) -> Summary | None:
    """Accuracy of one variant A-F of NodeJEPA."""
    part = paper()["ablation"]
    return _summary(part["variants"].get(letter, {}).get(dataset), part["seeds"])


def paper_variants() -> dict[str, str]:
    """The letters of the ablation and what they stand for."""
    return {letter: str(row["name"]) for letter, row in paper()["ablation"]["variants"].items()}


def paper_geometry(field: str, method: str, dataset: str) -> Summary | None:
    """``effective_rank``, ``mean_std`` or ``participation_ratio``; the number of seeds is not printed.

    The short table has effective ranks of methods that the long one leaves out, without their spread.
    """
    long = _summary(paper()["collapse_full"]["values"].get(dataset, {}).get(method, {}).get(field), 0)
    if long is not None or field != "effective_rank":
        return long
    mean = paper()["collapse"]["effective_rank"].get(method, {}).get(dataset)
    return None if mean is None else Summary(mean, None, 0)


def paper_total_seconds(method: str, dataset: str) -> float | None:
    """Training time on the paper's hardware."""
    found: float | None = paper()["efficiency"]["total_seconds"].get(method, {}).get(dataset)
    return found


def paper_tests(variant: str) -> tuple[PrintedTest, ...]:
    """The t-tests of NodeJEPA or PatchJEPA against every baseline, uncorrected as printed."""
    return tuple(PrintedTest(variant, **row) for row in paper()["significance"][variant]["rows"])


def _summary(pair: list[float] | None, seeds: int) -> Summary | None:
    return None if pair is None else Summary(pair[0], pair[1], seeds)
