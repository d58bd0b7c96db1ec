"""Files of embeddings in one report: each under its name, with its map."""

from __future__ import annotations

import json

import numpy as np
import pytest

from nodejepa.errors import CheckpointError, NodeJEPAError
from nodejepa.graph import Graph
from nodejepa.report import render
from nodejepa.report.runs import EmbeddingsFile, build_report
from nodejepa.tables import write_embeddings

RING = Graph.from_edges(np.arange(12), (np.arange(12) + 1) % 12, features=np.eye(12))


def embedded(path, **columns):
    """A file of embeddings, as ``embed`` writes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    z = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
    write_embeddings(path, RING, z, columns)
    return path


def own_run(path, method="linear-jepa", graph="g1"):
    """What embed-graph leaves behind, without the work."""
    manifest = {
        "format": "nodejepa embeddings",
        "version": 1,
        "method": method,
        "embeddings": {"file": path.name, "dimensions": 4},
        "report": {"file": "z.html"},
        "run": {"folder": str(path.with_suffix(".run"))},
        "inputs": {"edges": {"path": f"data/{graph}.csv", "sha256": graph}},
        "config": {"dim": 4},
    }
    embedded(path)
    path.with_suffix(".json").write_text(json.dumps(manifest))
    return path


def kinds(chapter):
    return [section.kind for section in chapter.sections]


def test_a_run_is_shown_whichever_of_its_files_is_named(tmp_path):
    z = own_run(tmp_path / "z.parquet")
    (tmp_path / "z.html").touch()
    for source in (z, tmp_path / "z.json", tmp_path / "z.html"):
        (chapter,) = build_report([source]).chapters
        assert chapter.title == "z: linear-jepa on g1.csv"
        assert kinds(chapter) == ["text", "map", "text", "facts"]
        assert chapter.sections[1].ids == [str(i) for i in range(12)]


def test_embeddings_without_a_manifest_have_a_map(tmp_path):
    labels = ["b", None, "a"] * 4
    (chapter,) = build_report([embedded(tmp_path / "z.parquet", label=labels)]).chapters
    drawn = chapter.sections[1]
    assert (chapter.title, kinds(chapter)) == ("z", ["text", "map"])
    assert (drawn.labels.tolist(), drawn.names) == ([1, -1, 0] * 4, ("a", "b"))
    assert drawn.degrees is None
    (bare,) = build_report([embedded(tmp_path / "bare.npy")]).chapters
    assert bare.sections[1].labels is None


def test_several_are_named(tmp_path):
    runs = [
        own_run(tmp_path / "a/z.parquet"),
        own_run(tmp_path / "b/z.parquet", "nodejepa"),
        own_run(tmp_path / "other.npy", graph="g2"),
    ]
    built = build_report([*runs, tmp_path / "a/z.json"])  # the same run twice is one
    assert [chapter.title for chapter in built.chapters] == [
        "z: linear-jepa on g1.csv",
        "z: nodejepa on g1.csv",
        "other: linear-jepa on g2.csv",
    ]
    assert [chapter.subtitle for chapter in built.chapters] == [str(run) for run in runs]
    assert "linear-jepa on g2.csv" in render(built)


def test_what_is_no_run_is_refused_with_what_was_meant(tmp_path):
    own_run(tmp_path / "vectors.parquet")
    with pytest.raises(NodeJEPAError, match=r"Did you mean .*vectors\.(parquet|html|json)"):
        build_report([tmp_path / "vector.parquet"])
    (tmp_path / "plain.json").write_text("{}")
    with pytest.raises(NodeJEPAError, match="no run or embeddings"):
        build_report([tmp_path / "plain.json"])
    (tmp_path / "vectors").mkdir()  # a folder of that name that is not the run's
    assert EmbeddingsFile.find(tmp_path / "vectors") is None
    (tmp_path / "vectors.json").write_text('{"format": "nodejepa embeddings", "method": 3}')
    with pytest.raises(CheckpointError, match="manifest of the embeddings is damaged"):
        build_report([tmp_path / "vectors.parquet"])
