"""What a page is made of, and that data stays data on it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support
from studies.render.latex import escape_latex, to_latex
from studies.render.tables.shared import p_cell

from nodejepa.errors import EvaluationError
from nodejepa.graph import Graph
from nodejepa.report import maps as maps_module
from nodejepa.report import render
from nodejepa.report.maps import embedding_map, error_sections, neighbour_plane, principal_plane
from nodejepa.report.sections import (
    Chapter,
    Column,
    ConfusionMatrix,
    Dot,
    DotPlot,
    Facts,
    Report,
    ReportTable,
    SortableTable,
    Summary,
    TableCell,
    Text,
    embedded_json,
    plain,
    to_markdown,
    training_curves,
)

HOSTILE = "</script><script>alert('x')</script><!--&\"\u2028"


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.links: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]


# ---------------------------------------------------------------- the page


def test_the_page_fetches_nothing_and_runs_only_its_own_script():
    page = render(
        Report(HOSTILE, (Chapter(HOSTILE, (Text((HOSTILE,)), Facts(HOSTILE, {HOSTILE: HOSTILE}))),))
    )
    tags = Tags(page)
    assert tags.names.count("script") == page.count("</script>") == 2  # the data and our own
    assert tags.links == ["data:,"]
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page
    style, script = (re.search(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[1] for tag in ("style", "script"))
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]
    for text in (style, script):
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert data["chapters"][0]["sections"][0]["paragraphs"] == [HOSTILE]


@given(st.text())
def test_embedded_json_cannot_end_its_script(text):
    embedded = embedded_json({"id": text})
    assert not set(embedded) & set("<>&\u2028\u2029")
    assert json.loads(embedded) == {"id": text}


def test_scripts_insert_text_only():
    page = render(Report("", ()))
    assert "document.createElement" in page
    for way_in in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert way_in not in page


def test_a_mean_is_not_rounded_twice():
    """Physics of the ablation: 90.949975 is 90.9 in a figure, and must not become 90.95 and then 91.0."""
    dots = DotPlot("Accuracy", "%", {"physics": [Dot("E", 90.949975, 1.2649999)]})
    ((_, (row,)),) = plain(dots)["panels"]
    assert f"{row['value']:.1f} ± {row['spread']:.2f}" == "90.9 ± 1.26"


def test_long_histories_are_thinned_but_keep_their_ends():
    history = [{"epoch": i + 1, "loss": 1.0 / (i + 1)} for i in range(4321)]
    (curves,) = training_curves(history)
    (loss,) = curves.panels["loss and its terms"]
    assert len(loss.x) <= 1001
    assert (loss.x[0], loss.x[-1]) == (1, 4321)
    assert "4,321 epochs" in curves.caption
    assert training_curves([]) == ()


def test_a_table_sorts_by_numbers_and_shows_text():
    cells = (
        (TableCell.name("b"), TableCell.number(1234.5, decimals=1, mark="†")),
        (TableCell.name("a"), TableCell.number(None)),
    )
    table = ReportTable("t", "title", (Column.name("name"), Column("value")), (cells,), ("note",))
    content = plain(SortableTable(table))
    assert content["rows"] == [
        [["b", None, False], ["1,234.5†", 1234.5, False]],
        [["a", None, False], ["", None, False]],
    ]
    assert [column["numeric"] for column in content["columns"]] == [False, True]


# ---------------------------------------------------------------- maps


@pytest.mark.parametrize("columns", [5, 1030])  # all eigenvectors; Lanczos
def test_principal_plane_is_that_of_scikit_learn(columns):
    z = np.random.default_rng(0).normal(size=(30, columns)).astype(np.float32)
    z[:, 0] *= 5  # axes well apart
    z[:, 1] *= 3
    expected = PCA(2, svd_solver="full").fit_transform(z.astype(np.float64))
    for embeddings in (z, sp.csr_array(z)):
        plane = principal_plane(embeddings)
        np.testing.assert_allclose(np.abs(plane), np.abs(expected), atol=1e-4)
        np.testing.assert_array_equal(plane, principal_plane(embeddings))


@pytest.mark.parametrize(
    "embeddings", [np.ones((3, 4)), np.ones((3, 1)), np.arange(3.0)[:, None], np.ones((1, 2000))]
)
def test_a_collapsed_map_is_still_a_picture(embeddings):
    for plane in (principal_plane(embeddings), neighbour_plane(embeddings)):
        assert plane.shape == (len(embeddings), 2)
        assert np.isfinite(plane).all()


def test_neighbours_stay_together():
    rng = np.random.default_rng(1)
    z = np.concatenate([centre + rng.normal(size=(20, 8)) for centre in (0.0, 20.0)])
    plane = neighbour_plane(z)
    groups = plane[:20], plane[20:]
    apart = np.linalg.norm(groups[0].mean(axis=0) - groups[1].mean(axis=0))
    assert apart > 2 * max(group.std(axis=0).max() for group in groups)
    np.testing.assert_array_equal(plane, neighbour_plane(z))


def test_a_map_names_nodes_classes_and_degrees(toy_graph):
    labels = np.repeat([0, 1], 30)
    found = embedding_map(
        toy_graph, toy_graph.features, labels=labels, predicted=1 - labels, neighbours=False
    )
    content = plain(found)
    assert content["ids"] == [str(i) for i in range(60)]
    assert content["degrees"] == toy_graph.degrees.astype(int).tolist()
    assert content["names"] == ["0", "1"]
    assert content["labels"] == labels.tolist()
    assert content["predicted"] == (1 - labels).tolist()
    ((_, plane),) = content["projections"]
    np.testing.assert_allclose(plane, principal_plane(toy_graph.features), rtol=1e-4, atol=1e-6)
    json.dumps(content, allow_nan=False)


def test_a_large_graph_is_sampled_and_says_so(monkeypatch, toy_graph):
    monkeypatch.setattr(maps_module, "MAX_POINTS", 40)
    monkeypatch.setattr(maps_module, "MAX_NEIGHBOUR_POINTS", 25)
    named = Graph(toy_graph.adjacency, toy_graph.features, np.array([f"n{i}" for i in range(60)]))
    found = embedding_map(named, named.features, labels=np.repeat([0, 1], 30))
    assert len(found.ids) == len(set(found.ids)) == 40
    assert "sample of 40 of 60 nodes" in found.notes[0]
    pca, tsne = found.projections.values()
    assert np.isfinite(pca).all()
    assert np.isfinite(tsne).all(axis=1).sum() == 25
    shown = [int(node[1:]) for node in found.ids]
    np.testing.assert_array_equal(found.labels, np.repeat([0, 1], 30)[shown])
    assert sum(point == [None, None] for point in plain(found)["projections"][1][1]) == 15
    assert found.ids == embedding_map(named, named.features).ids


def test_a_map_refuses_arrays_of_another_graph(toy_graph):
    with pytest.raises(EvaluationError, match="59 labels for 60 nodes"):
        embedding_map(toy_graph, toy_graph.features, labels=np.zeros(59, dtype=np.int64))


def test_scores_by_class_are_those_of_scikit_learn():
    rng = np.random.default_rng(2)
    labels, predicted = rng.integers(-1, 4, size=(2, 200))
    tested = (labels >= 0) & (predicted >= 0)
    matrix, table = error_sections(labels, predicted, ["a", "b", "c", "d"])
    assert isinstance(matrix, ConfusionMatrix)
    np.testing.assert_array_equal(matrix.counts, confusion_matrix(labels[tested], predicted[tested]))
    wanted = precision_recall_fscore_support(labels[tested], predicted[tested])
    for i, row in enumerate(table.table.rows):
        assert [cell.text for cell in row] == [
            "abcd"[i],
            str(wanted[3][i]),
            *(f"{100 * wanted[measure][i]:.1f}" for measure in range(3)),
        ]


# ---------------------------------------------------------------- tables


def test_latex_and_markdown_escape_what_records_say():
    row = (
        TableCell.name("a_b & <c>|*"),
        TableCell.score(Summary(80.0, None, 1), best=Summary(80.0, None, 1)),
    )
    note = r"C:\tmp $HOME #1 ~^ [x](y)"
    table = ReportTable("t", "T", (Column.name("50%_{x}"), Column.score("s")), ((row,),), (note,))
    assert r"a\_b \& \textless{}c\textgreater{}|*" in to_latex(table)
    assert r"50\%\_\{x\}" in to_latex(table)
    assert r"C:\textbackslash{}tmp \$HOME \#1 \textasciitilde{}\textasciicircum{}" in to_latex(table)
    assert r"| a\_b & \<c\>\|\* | **80.00 (1)** |" in to_markdown(table)
    assert r"\[x\](y)" in to_markdown(table)
    assert escape_latex("[2pt] a\nb") == "{[}2pt{]} a b"  # a bracket would be an argument of the line break


def test_numbers_in_cells():
    assert TableCell.number(-0.004, signed=True).text == "-0.00"
    assert TableCell.number(1234.5, decimals=1).text == "1,234.5"
    assert TableCell.number(None).text == "-"
    assert p_cell(0.00001).text == "< 0.0001"
    assert p_cell(0.04999).bold
    assert not p_cell(0.05).bold
    assert TableCell.score(Summary(80.0, None, 1)).values == ("80", "", "1")
    minus = ReportTable(
        "t",
        "T",
        (Column.name("a"), Column.name("b")),
        (((TableCell.number(-1.5), TableCell.name("3-5")),),),
        (),
    )
    assert "$-$1.50 & 3-5" in to_latex(minus)


def test_a_table_refuses_rows_that_do_not_fit():
    with pytest.raises(ValueError, match="does not fit"):
        ReportTable("t", "T", (Column.name("a"),), (((TableCell.name("x"), TableCell.name("y")),),), ())
