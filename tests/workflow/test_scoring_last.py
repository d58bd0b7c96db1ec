"""Embeddings, model, map and manifest are on disk before the first classifier is fitted."""

from __future__ import annotations

import json

import pytest

from nodejepa import embed_graph
from nodejepa.tables import read_embeddings
from nodejepa.tables.prepare import prepare_store
from nodejepa.workflow import ScoringInterrupted

SCORE = "nodejepa.workflow.embed.score_embeddings"


@pytest.fixture(params=["files", "store"])
def given(request, files):
    """The same graph in memory and on disk, with labels."""
    if request.param == "files":
        return ["--edges", files.edges, "--nodes", files.nodes, "--labels", "team"]
    store = prepare_store(files.edges, files.nodes, out=files.folder / "g.store", labels="team")
    return ["--edges", store.folder]


def everything_is_there(folder):
    assert read_embeddings(folder / "z.parquet").matrix.shape[0] == 60
    assert (folder / "z.run" / "model.safetensors").exists()
    page = (folder / "z.html").read_text(encoding="utf-8")
    assert "Map of the embeddings" in page
    return json.loads((folder / "z.json").read_text()), page


def raising(error):
    def score(*_, **__):
        raise error

    return score


@pytest.mark.slow
def test_ctrl_c_while_scoring_keeps_everything_and_resuming_scores(run, files, given, monkeypatch):
    asked = ["embed-graph", *given, "--out", files.folder / "z.parquet"]
    with monkeypatch.context() as patch:
        patch.setattr(SCORE, raising(KeyboardInterrupt()))
        code, _, err = run(*asked)
    assert code == 130
    line = err.strip().splitlines()[-1]
    assert line.startswith("Stopped while scoring:")
    assert "z.parquet, the model and the report are written" in line
    assert "--resume goes on with the scores" in line
    manifest, page = everything_is_there(files.folder)
    assert manifest["scores"] is None
    assert "Not scored" in page
    before = (files.folder / "z.parquet").read_bytes()
    out, _ = run.ok(*asked, "--resume")
    assert "What the embeddings are worth" in out
    manifest, page = everything_is_there(files.folder)
    assert manifest["scores"]["means"]
    assert "Not scored" not in page
    assert "What the embeddings are worth" in page
    assert (files.folder / "z.parquet").read_bytes() == before


def test_an_error_while_scoring_is_a_warning_and_a_bug_is_shown(run, files, given, monkeypatch):
    asked = ["embed-graph", *given, "--out", files.folder / "z.parquet"]
    monkeypatch.setattr(SCORE, raising(OSError(28, "No space left on device")))
    _, err = run.ok(*asked)
    assert "No scores" in err
    manifest, page = everything_is_there(files.folder)
    assert "No space left" in manifest["warnings"][-1]
    assert "No space left" in page
    monkeypatch.setattr(SCORE, raising(ZeroDivisionError()))
    assert run(*asked, "--force")[0] == 1
    assert everything_is_there(files.folder)[0]["scores"] is None


def test_in_python_an_interrupt_stays_one(files, monkeypatch):
    monkeypatch.setattr(SCORE, raising(KeyboardInterrupt()))
    with pytest.raises(ScoringInterrupted):
        embed_graph(files.edges, files.nodes, out=files.folder / "z.parquet", labels="team")
    everything_is_there(files.folder)


def test_scores_can_be_left_out(run, files, given, monkeypatch):
    monkeypatch.setattr(SCORE, raising(AssertionError("not asked for")))
    run.ok("embed-graph", *given, "--out", files.folder / "z.parquet", "--no-score")
    assert "Not scored" not in everything_is_there(files.folder)[1]
