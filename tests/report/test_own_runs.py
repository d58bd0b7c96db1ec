"""Runs of ``embed-graph`` in one report: each under its name, with its map, and compared."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

from nodejepa.errors import CheckpointError, NodeJEPAError
from nodejepa.graph import Graph
from nodejepa.report import Chapter, Report, render, write_report
from nodejepa.report.charts import DotPlot
from nodejepa.report.maps import embedding_map
from nodejepa.report.runs import find_own_run
from nodejepa.report.sections import SortableTable, Text
from nodejepa.study.page import build_report

RING = Graph.from_edges(np.arange(12), (np.arange(12) + 1) % 12, features=np.eye(12))


def own_run(path, method="linear-jepa", accuracies=(80.0, 82.0), graph="g1", page=True, floor=75.0):
    """What embed-graph leaves behind, without the work."""
    path.parent.mkdir(parents=True, exist_ok=True)
    html = path.with_suffix(".html")
    drawn = embedding_map(RING, np.eye(12), neighbours=False)
    write_report(Report("t", (Chapter("c", (Text((f"said of {path.stem}",)), drawn)),)), html)
    digest = hashlib.sha256(html.read_bytes()).hexdigest()

    def rows(values):
        return {"scores": [{"test_accuracy": v, "balanced_accuracy": v - 1, "roc_auc": None} for v in values]}

    manifest = {
        "format": "nodejepa embeddings",
        "version": 1,
        "method": method,
        "embeddings": {"file": path.name, "dimensions": 256},
        "report": {"file": html.name, "sha256": digest} if page else None,
        "run": {"folder": str(path.with_suffix(".run"))},
        "inputs": {"edges": {"path": f"data/{graph}.csv", "sha256": graph}},
        "seconds": {"training": 2.5},
        "diagnostics": {"verdict": "healthy: all well."},
        "scores": {"probe": {method: rows(accuracies), "sgc": rows([floor, floor]), "raw": rows([50.0])}}
        if accuracies
        else None,
    }
    path.with_suffix(".json").write_text(json.dumps(manifest))
    return path


def test_one_run_is_its_page_under_its_name(tmp_path):
    z = own_run(tmp_path / "z.parquet")
    (tmp_path / "z.run").mkdir()
    for source in (z, tmp_path / "z.json", tmp_path / "z.html", tmp_path / "z.run"):
        (chapter,) = build_report([source]).chapters
        assert chapter.title == "z: linear-jepa on g1.csv"
        kinds = [section.to_json()["kind"] for section in chapter.sections]
        assert kinds == ["text", "map"]
        assert chapter.sections[1].to_json()["ids"] == [str(i) for i in range(12)]


def test_several_are_compared_and_named(tmp_path):
    runs = [
        own_run(tmp_path / "a/z.parquet", accuracies=(80.0, 82.0)),
        own_run(tmp_path / "b/z.parquet", "nodejepa", (70.0, 71.0)),
        own_run(tmp_path / "other.npy", graph="g2", accuracies=(90.0, 99.0)),
        own_run(tmp_path / "bare.parquet", accuracies=None, page=False),
    ]
    built = build_report([*runs, tmp_path / "a/z.json"])  # the same run twice is one
    compared, *chapters = built.chapters
    assert [chapter.title.partition(":")[0] for chapter in chapters] == [
        "a/z",
        "b/z",
        f"{tmp_path.name}/other",
        f"{tmp_path.name}/bare",
    ]
    words, dots, table = compared.sections
    assert isinstance(dots, DotPlot)
    assert [dot.label for dot in dots.panels["g1.csv"]] == ["a/z", "b/z", "best floor (sgc)"]
    assert (
        "a/z has the highest accuracy, 81.0 %, 10.5 points above b/z: more than the spread"
        in (words.paragraphs[0])
    )
    assert isinstance(table, SortableTable)
    assert [cell.text for cell in table.table.rows[0]][:4] == [
        "a/z",
        "linear-jepa",
        "g1.csv",
        "81.0 ± 1.4",
    ]
    assert "ROC-AUC %" not in [column.title for column in table.table.columns]
    assert len(table.table.rows) == 4
    assert "without its page" in " ".join(chapters[-1].sections[1].paragraphs)
    assert "said of other" in render(built)


def test_a_page_that_was_changed_is_not_shown(tmp_path):
    z = own_run(tmp_path / "z.parquet")
    page = tmp_path / "z.html"
    page.write_text(page.read_text().replace("said of z", "said of y"))
    with pytest.raises(CheckpointError, match="not the one that the manifest tells of"):
        build_report([z])
    page.unlink()
    assert "without its page" in " ".join(build_report([z]).chapters[0].sections[1].paragraphs)


def test_what_is_no_run_is_refused_with_what_was_meant(tmp_path):
    own_run(tmp_path / "vectors.parquet")
    with pytest.raises(NodeJEPAError, match=r"Did you mean .*vectors\.(parquet|html|json)"):
        build_report([tmp_path / "vector.parquet"])
    (tmp_path / "plain.json").write_text("{}")
    with pytest.raises(NodeJEPAError, match="neither a run nor a study"):
        build_report([tmp_path / "plain.json"])
    (tmp_path / "else").mkdir()
    assert find_own_run(tmp_path / "else") is None
    (tmp_path / "vectors").mkdir()  # a folder of that name that is not the run's
    assert find_own_run(tmp_path / "vectors") is None
