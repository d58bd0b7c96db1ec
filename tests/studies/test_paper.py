"""The file of the paper's figures is the paper, and the paper is checked against itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from paper_checks import check_printed_tests
from studies.render.paper import (
    SELF_SUPERVISED,
    paper,
    paper_ablation,
    paper_accuracy,
    paper_average_rank,
    paper_fewshot,
    paper_geometry,
    paper_tests,
    paper_total_seconds,
)
from studies.render.tables.differences import paper_ranks

TEX = Path(__file__).parents[3] / "shared" / "spec" / "nodejepa-paper.tex"
GRAPHS = ("computers", "photo", "cs", "physics", "arxiv")
METHODS = {
    "DGI": "dgi",
    "GraphMAE": "graphmae",
    "BGRL": "bgrl",
    "CCA-SSG": "cca-ssg",
    "Supervised GCN": "supervised-gcn",
    "Sup.\\ GCN": "supervised-gcn",
    "NodeJEPA": "nodejepa",
    "PatchJEPA": "patchjepa",
}


def graph_of(title: str) -> str:
    keys = {"Comp": "computers", "Photo": "photo", "CS": "cs", "Phy": "physics", "arxiv": "arxiv"}
    return next(graph for key, graph in keys.items() if key in title)


def tabular(label: str) -> list[list[str]]:
    """Cells of the tabular before a label."""
    if not TEX.is_file():
        pytest.skip("the paper's TeX source is not beside the repository")
    text = TEX.read_text(encoding="utf-8")
    end = text.index(f"\\label{{{label}}}")
    body = text[text.rindex("\\begin{tabular}", 0, end) : end].split("\\end{tabular}")[0]
    lines = [line.strip().removesuffix("\\\\") for line in body.splitlines() if "&" in line]
    return [[cell.strip() for cell in line.split("&")] for line in lines]


def numbers(cell: str) -> list[float]:
    return [float(number) for number in re.findall(r"[+-]?\d+\.\d+", cell)]


def printed(score) -> list[float]:
    return [] if score is None else [score.mean] if score.std is None else [score.mean, score.std]


@pytest.mark.parametrize("label", ["tab:main", "tab:app-main"])
def test_accuracies_are_the_papers(label):
    header, *rows = tabular(label)
    assert len(rows) == len(paper()["main"]["accuracy"]) == 7
    for name, *cells, rank in rows:
        for title, cell in zip(header[1:6], cells, strict=True):
            assert printed(paper_accuracy(METHODS[name], graph_of(title))) == numbers(cell)
        assert numbers(rank) == [r for r in [paper_average_rank(METHODS[name])] if r is not None]


@pytest.mark.parametrize(
    ("variant", "label"), [("nodejepa", "tab:app-sig-node"), ("patchjepa", "tab:app-sig-patch")]
)
def test_printed_tests_are_the_papers(variant, label):
    _, *rows = tabular(label)
    found = paper_tests(variant)
    assert len(rows) == len(found) == 25
    for (graph, baseline, *cells, test), row in zip(rows, found, strict=True):
        assert (row.dataset, row.baseline, row.test) == (graph_of(graph), METHODS[baseline], test)
        assert [row.mean, row.baseline_mean, row.difference, row.p] == numbers(" ".join(cells))


def test_fewshot_is_the_papers():
    _, *rows = tabular("tab:app-fewshot")
    assert len(rows) == sum(len(graphs) for graphs in paper()["fewshot"]["accuracy"].values())
    for name, graph, *cells in rows:
        for shots, cell in zip((5, 10, 20), cells, strict=True):
            assert printed(paper_fewshot(METHODS[name], graph_of(graph), shots)) == numbers(cell)


@pytest.mark.parametrize("label", ["tab:ablation", "tab:app-ablation"])
def test_ablation_is_the_papers(label):
    header, *rows = tabular(label)
    assert [row[0][0] for row in rows] == list(paper()["ablation"]["variants"])
    for name, *cells in rows:
        for title, cell in zip(header[1:], cells, strict=True):
            assert printed(paper_ablation(name[0], graph_of(title))) == numbers(cell)


@pytest.mark.parametrize("label", ["tab:collapse", "tab:app-collapse"])
def test_effective_ranks_are_the_papers(label):
    header, *rows = tabular(label)
    for name, *cells in rows:
        for title, cell in zip(header[1:], cells, strict=True):
            graph = graph_of(title)
            assert printed(paper_geometry("effective_rank", METHODS[name], graph))[:1] == numbers(cell)
            short = paper()["collapse"]["effective_rank"][METHODS[name]].get(graph)
            assert ([] if short is None else [short]) == numbers(cell)


def test_geometry_is_the_papers():
    _, *rows = tabular("tab:app-collapse-full")
    assert len(rows) == sum(len(methods) for methods in paper()["collapse_full"]["values"].values())
    fields = ("effective_rank", "mean_std", "participation_ratio")
    for graph, name, *cells in rows:
        for field, cell in zip(fields, cells, strict=True):
            assert printed(paper_geometry(field, METHODS[name], graph_of(graph))) == numbers(cell)


def test_times_are_the_papers():
    header, *rows = tabular("tab:app-efficiency")
    assert len(rows) == len(paper()["efficiency"]["total_seconds"])
    for name, *cells in rows:
        for title, cell in zip(header[1:], cells, strict=True):
            assert [paper_total_seconds(METHODS[name], graph_of(title))] == numbers(cell)


def test_seconds_of_an_epoch_are_the_papers():
    if not TEX.is_file():
        pytest.skip("the paper's TeX source is not beside the repository")
    text = " ".join(TEX.read_text(encoding="utf-8").split())
    found = paper()["efficiency"]["epoch_seconds"]
    first, later = found["nodejepa"]
    jump = f"from about ${first:.0f}$s in the first $25$ epochs to about ${later:.0f}$s thereafter"
    assert jump in text
    assert f"PatchJEPA stays near ${found['patchjepa'][0]}$s per epoch" in text


def test_what_the_paper_does_not_print_is_none():
    assert paper_accuracy("sgc", "photo") is None
    assert paper_fewshot("dgi", "arxiv", 5) is None
    assert paper_fewshot("dgi", "photo", 7) is None
    assert paper_ablation("G", "photo") is None
    assert paper_geometry("mean_std", "dgi", "photo") is None
    assert paper_geometry("effective_rank", "dgi", "computers") is None
    assert paper_total_seconds("raw", "photo") is None


def test_table_1_gives_the_papers_average_ranks():
    found = paper_ranks(GRAPHS)
    assert {name: round(rank, 10) for name, rank in found.items()} == {
        "dgi": 5.0,
        "graphmae": 4.0,
        "bgrl": 3.6,
        "cca-ssg": 3.6,
        "nodejepa": 2.4,
        "patchjepa": 2.4,
    }
    assert all(paper_average_rank(name) == pytest.approx(found[name]) for name in SELF_SUPERVISED)


def test_printed_differences_are_those_of_the_printed_means():
    found = check_printed_tests()
    assert len(found) == 50
    assert all(check.difference_fits for check in found)


def test_printed_p_values_follow_only_from_population_deviations():
    """With sample deviations nine of the fifty p values are outside what the table allows, with n none is."""
    outside = {
        (check.printed.variant, check.printed.dataset, check.printed.baseline)
        for check in check_printed_tests()
        if not check.p_fits
    }
    assert outside == {
        ("nodejepa", "computers", "dgi"),
        ("nodejepa", "photo", "dgi"),
        ("nodejepa", "physics", "bgrl"),
        ("nodejepa", "physics", "supervised-gcn"),
        ("patchjepa", "computers", "dgi"),
        ("patchjepa", "photo", "dgi"),
        ("patchjepa", "physics", "cca-ssg"),
        ("patchjepa", "physics", "supervised-gcn"),
        ("patchjepa", "arxiv", "dgi"),
    }
    assert all(check.p_fits for check in check_printed_tests(population_std=True))


def test_welch_rows_are_recomputed():
    """Welch's test needs nothing that is not printed: the range is only rounding."""
    welch = [check for check in check_printed_tests(population_std=True) if check.printed.test == "Welch"]
    assert [check.printed.p for check in welch] == [0.0001, 0.002]
    for check in welch:
        assert check.highest / check.lowest < 1.3
