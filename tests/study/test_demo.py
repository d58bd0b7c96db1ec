"""The demo: scores, files, and a page in which data stays data."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA

from nodejepa.data import Dataset
from nodejepa.evaluation.probe_result import ProbeResult, SplitScore
from nodejepa.graph import Graph
from nodejepa.study.demo import SHOTS, compare_with_floors, run_demo
from nodejepa.study.page import Section, demo_page
from nodejepa.study.scatter import principal_plane, scatter_svg
from nodejepa.study.scoring import embed_seeds, score_method

HOSTILE = "</svg><script>alert('x')</script>&\""


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.links: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]


def test_demo_scores_every_method_and_writes_its_files(tmp_path):
    demo = run_demo(tmp_path, methods=("raw", "sgc"), draws=1)
    raw, sgc = demo.rows
    for shots in SHOTS:
        assert sgc.few_shot[shots].test_accuracy_mean > raw.few_shot[shots].test_accuracy_mean > 50
    table = pq.read_table(sgc.path)
    assert table.column_names == ["id", *(f"z{j}" for j in range(64))]
    np.testing.assert_array_equal(table["z0"].to_numpy(), sgc.embeddings[:, 0])
    page = demo.report.read_text(encoding="utf-8")
    assert Tags(page).names.count("circle") == 2 * demo.dataset.graph.num_nodes
    assert Tags(page).links == []  # nothing is fetched


def scores(mean: float, spread: float) -> ProbeResult:
    """Two draws with this mean and standard deviation."""
    half = spread / 2**0.5
    rows = (SplitScore("5-0", 0, "", None, value, "none", 1.0, True) for value in (mean - half, mean + half))
    return ProbeResult("fair", tuple(rows))


@pytest.mark.parametrize(
    ("gains", "says", "shows"),
    [
        (
            (-0.7, 0.2),
            "0.7 points below random-gcn with 5 labels per class (within one standard deviation) and "
            "0.2 points above sgc with 20 labels per class (within one standard deviation)",
            False,
        ),
        ((3.0, 0.2), "3.0 points above random-gcn with 5 labels per class (more than one", True),
        ((-3.0, -0.2), "3.0 points below random-gcn with 5 labels per class (more than one", False),
    ],
)
def test_the_demo_says_whether_training_beat_the_floors(gains, says, shows):
    results = {
        "nodejepa": {5: scores(90 + gains[0], 1), 20: scores(95 + gains[1], 1)},
        "sgc": {5: scores(89, 1), 20: scores(95, 1)},
        "random-gcn": {5: scores(90, 1), 20: scores(94, 1)},
    }
    text = compare_with_floors(results)
    assert says in text
    assert ("does not show that training helps" in text) == (not shows)
    assert compare_with_floors({"sgc": results["sgc"]}) == ""


def test_everything_from_data_is_escaped():
    graph = Graph.from_edges([0], [1], features=np.eye(2), node_ids=[HOSTILE, "b"])
    dataset = Dataset(HOSTILE, graph, np.array([0, 1]), class_names=(HOSTILE, "two"))
    section = Section(HOSTILE, HOSTILE, {HOSTILE: HOSTILE}, HOSTILE, HOSTILE, np.eye(2, dtype=np.float32))
    page = demo_page(dataset, [section], draws=1, comparison=HOSTILE)
    assert "script" not in Tags(page).names
    assert Tags(page).names.count("svg") == page.count("</svg>") == 1


def test_principal_plane_is_that_of_scikit_learn():
    z = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
    expected = PCA(2).fit_transform(z.astype(np.float64))
    for embeddings in (z, sp.csr_array(z)):
        np.testing.assert_allclose(np.abs(principal_plane(embeddings)), np.abs(expected), atol=1e-6)


@pytest.mark.parametrize("embeddings", [np.ones((3, 4)), np.ones((3, 1)), np.arange(3.0)[:, None]])
def test_a_collapsed_map_is_still_a_picture(embeddings):
    svg = scatter_svg(embeddings.astype(np.float32), np.array([0, 1, -1]))
    assert svg.count("<circle") == 3
    assert "nan" not in svg
    assert "unknown" in svg


def test_seedless_methods_are_embedded_once(toy_graph):
    first, second = embed_seeds(toy_graph, "sgc", [1, 2])
    assert first is second
    first, second = embed_seeds(toy_graph, "random-gcn", [1, 2])
    assert not np.array_equal(first, second)


def test_a_score_is_reproducible(toy_graph):
    dataset = Dataset("toy", toy_graph, np.repeat([0, 1], 30))
    one, other = (score_method(dataset, "random-gcn", [3, 4], split="5-5").to_dict() for _ in range(2))
    assert one["scores"] == other["scores"]
    assert one["diagnostics"] == other["diagnostics"]
    assert [score["seed"] for score in one["scores"]] == [3, 4]
