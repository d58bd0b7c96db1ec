"""What a report says of runs."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from nodejepa.cli import main
from nodejepa.data import load_dataset
from nodejepa.errors import CheckpointError, NodeJEPAError
from nodejepa.methods import make_method
from nodejepa.report import maps as maps_module
from nodejepa.report import render, write_report
from nodejepa.report.runs import build_report, find_dataset
from nodejepa.report.sections import (
    Chapter,
    ConfusionMatrix,
    Curves,
    EmbeddingMap,
    Facts,
    Text,
)

pytestmark = pytest.mark.slow


def of_kind(chapter: Chapter, kind: type) -> list:
    return [section for section in chapter.sections if isinstance(section, kind)]


def words_of(chapter: Chapter) -> str:
    return " ".join(p for section in of_kind(chapter, Text) for p in section.paragraphs)


@pytest.fixture(scope="module")
def digits_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "digits"
    small = {"encoder.hidden": 16, "predictor.hidden": 16, "epochs": 10}
    make_method("nodejepa", preset="paper", seed=3, settings=small).fit(
        load_dataset("digits").graph, out=folder
    )
    return folder


@pytest.fixture(scope="module")
def digits_report(digits_run):
    return build_report([digits_run])


@pytest.fixture
def digits_chapter(digits_report):
    return digits_report.chapters[0]


@pytest.fixture(autouse=True, scope="module")
def _small_tsne():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maps_module, "MAX_NEIGHBOUR_POINTS", 50)
        yield


def test_a_run_is_shown_with_the_graph_its_hash_names(digits_run, digits_chapter):
    assert digits_chapter.title == "nodejepa on digits, seed 3"
    assert digits_chapter.subtitle == str(digits_run)
    (found,) = of_kind(digits_chapter, EmbeddingMap)
    assert len(found.ids) == 1797
    assert list(found.projections) == ["principal components", "neighbours (t-SNE)"]
    words = words_of(digits_chapter)
    assert "Embeddings: healthy" in words
    tested = found.predicted >= 0
    right = 100 * np.mean(found.predicted[tested] == found.labels[tested])
    assert f"seed 42: {right:.1f} % of {tested.sum():,} test nodes are right" in words
    (matrix,) = of_kind(digits_chapter, ConfusionMatrix)
    assert matrix.counts.sum() == tested.sum()


def test_a_run_shows_its_history_and_settings(digits_run, digits_chapter):
    history = [json.loads(line) for line in (digits_run / "history.jsonl").read_text().splitlines()]
    (curves,) = of_kind(digits_chapter, Curves)
    loss = curves.panels["loss and its terms"][0]
    assert (loss.name, list(loss.x)) == ("loss", list(range(1, 11)))
    assert list(loss.y) == [record["loss"] for record in history]
    assert list(curves.panels["effective rank"][0].x) == [10]
    overview, settings = of_kind(digits_chapter, Facts)
    assert overview.values["graph"] == "1,797 nodes, 24,678 edges, 64 features"
    assert overview.values["epochs"] == "10"
    assert overview.values["peak memory"] == f"{max(r['peak_memory_mb'] for r in history):,.0f} MB"
    assert settings.values["encoder.hidden"] == "16"


def test_a_run_of_an_unknown_graph_has_no_map_and_says_so(toy_graph, tmp_path):
    small = {"encoder.hidden": 8, "predictor.hidden": 8, "epochs": 10}
    make_method("nodejepa", preset="paper", settings=small).fit(toy_graph, out=tmp_path / "run")
    (chapter,) = build_report([tmp_path / "run"]).chapters
    assert not of_kind(chapter, EmbeddingMap)
    assert "Name the folder of its data" in words_of(chapter)


def test_a_graph_is_found_by_its_hash_and_nothing_else(digits_run):
    graph = json.loads((digits_run / "config.json").read_text())["graph"]
    assert find_dataset(graph).name == "digits"
    assert find_dataset({**graph, "hash": "0" * 64}) is None
    assert find_dataset({**graph, "nodes": 5}) is None
    assert find_dataset({}) is None


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda _: [], NodeJEPAError, "nothing to report on"),
        (lambda folder: [folder], NodeJEPAError, "no run or embeddings"),
        (lambda folder: [folder / "nowhere"], NodeJEPAError, "no such folder"),
        (lambda folder: [broken(folder, "config.json", "{}")], NodeJEPAError, "the run is not finished"),
        (lambda folder: [broken(folder, "model.safetensors", "[")], CheckpointError, "the file is damaged"),
    ],
)
def test_mistakes_are_explained(tmp_path, make, error, says):
    with pytest.raises(error, match=says):
        build_report(make(tmp_path))


def broken(folder, name, text):
    (folder / name).write_text(text)
    return folder


def test_the_command_writes_the_page(digits_run, tmp_path, capsys):
    out = tmp_path / "deep" / "report.html"
    with pytest.raises(SystemExit) as left:
        main(["report", str(digits_run), str(digits_run), "--out", str(out)])
    assert left.value.code == 0
    assert str(out) in capsys.readouterr().out
    data = json.loads(re.search(r'id="data">(.*?)</script>', out.read_text(encoding="utf-8"), re.DOTALL)[1])
    assert [chapter["title"] for chapter in data["chapters"]] == ["nodejepa on digits, seed 3"]
    with pytest.raises(SystemExit) as left:
        main(["report", str(tmp_path / "none"), "--out", str(out)])
    assert left.value.code == 2
    assert "no such folder" in capsys.readouterr().err


def test_the_same_folders_give_the_same_page(digits_run, digits_report, tmp_path):
    write_report(build_report([digits_run]), tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == render(digits_report)
