"""Sentences of README and results that hold for every row are those of the committed table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GRAPHS = ("Computers", "Photo", "CS", "Physics")
LINEAR, SUPERVISED = "LinearJEPA (closed form)", ("Supervised GCN", "Supervised GCN, own head")


def accuracies() -> dict[str, dict[str, float]]:
    """By method, then by graph; means of ``studies/main/tables/main.md``."""
    lines = (ROOT / "studies" / "main" / "tables" / "main.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    names = rows[0][1 : 1 + len(GRAPHS)]
    assert names == list(GRAPHS)
    found = {}
    for method, *cells in rows[2:]:
        means = [float(re.findall(r"\d+\.\d+", cell)[0]) for cell in cells[: len(GRAPHS)]]
        found[method] = dict(zip(names, means, strict=True))
    return found


ALL = accuracies()
TRAINED = ("DGI", "GraphMAE", "BGRL", "CCA-SSG", "NodeJEPA", "PatchJEPA", *SUPERVISED)
UNTRAINED = set(ALL) - {*TRAINED, LINEAR}


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_best_untrained_baseline_is_above_every_trained_method(graph: str) -> None:
    assert len(UNTRAINED) == 7
    best = max(ALL[name][graph] for name in UNTRAINED)
    assert best > max(ALL[name][graph] for name in TRAINED)


@pytest.mark.parametrize("graph", GRAPHS)
def test_linear_jepa_is_the_best_self_supervised_method_and_above_baselines_on_two_graphs(graph: str) -> None:
    assert ALL[LINEAR][graph] > max(ALL[name][graph] for name in set(TRAINED) - set(SUPERVISED))
    best = max(ALL[name][graph] for name in UNTRAINED)
    assert (ALL[LINEAR][graph] > best) == (graph in ("Computers", "Photo"))
