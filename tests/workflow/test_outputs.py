"""Nothing of ours is replaced by something of another kind, or by another process, without being asked."""

from __future__ import annotations

import json
import warnings

import pytest

from nodejepa import LinearJEPA
from nodejepa.errors import ConfigError
from nodejepa.files import output_owned
from nodejepa.workflow import embed_graph
from nodejepa.workflow.embed import OutputPaths

SMALL = {"encoder.hidden": 8, "predictor.hidden": 8, "training.epochs": 1}


@pytest.mark.slow
def test_a_report_replaces_pages_and_with_force_anything(files, run):
    run.ok(*files.quick())
    made, folder = files.folder / "z.run", files.folder
    of_the_run = ("model.safetensors", "config.json", "history.jsonl")
    for victim in ("z.parquet", "z.json", *(f"z.run/{name}" for name in of_the_run)):
        before = (folder / victim).read_bytes()
        err = run.refused("report", made, "--out", folder / victim)
        assert "holds something else" in err
        assert "--force" in err
        assert (folder / victim).read_bytes() == before
    (folder / "notes.txt").write_text("mine")
    for page, *options in (("page.html",), ("page.html",), ("notes.txt", "--force")):
        run.ok("report", made, "--out", folder / page, *options)
    assert (folder / "notes.txt").read_text().lower().startswith("<!doctype html")


@pytest.mark.parametrize("ending", [".parquet", ".json", ".html"])
def test_what_came_during_the_work_is_not_replaced(files, ending):
    """Between the first look and the write somebody else, who knows no lock, has put a file there."""
    out = files.folder / "z.parquet"
    theirs = out.with_suffix(ending)

    def intrude(_):
        theirs.write_text("precious")

    asked = {"method": "nodejepa", "preset": "paper", "settings": SMALL, "report": False}
    with pytest.raises(ConfigError, match="exists"):
        embed_graph(files.edges, files.nodes, out=out, announce=intrude, **asked)
    assert theirs.read_text() == "precious"
    assert [path for path in OutputPaths.beside(out).written if path.exists()] == [theirs]
    theirs.unlink()
    embed_graph(files.edges, files.nodes, out=out, resume=True, **asked)


def test_warnings_of_training_are_shown_and_stay_in_the_manifest(files, monkeypatch):
    def fit(self, *arguments, **more):
        warnings.warn("the loss went up", stacklevel=1)
        return plain(self, *arguments, **more)

    plain = LinearJEPA.fit
    monkeypatch.setattr(LinearJEPA, "fit", fit)
    with pytest.warns(UserWarning, match="the loss went up"):
        made = embed_graph(files.edges, files.nodes, out=files.folder / "z.parquet", labels="team")
    assert made.scores is not None
    assert json.loads(made.paths.manifest.read_text())["warnings"].count("the loss went up") == 1


def test_a_finished_output_is_seen_also_when_it_came_while_waiting_for_the_lock(files, monkeypatch):
    out = files.folder / "z.parquet"
    monkeypatch.setattr(
        "nodejepa.workflow.embed.output_owned", lambda path: out.write_text("done") and output_owned(path)
    )
    with pytest.raises(ConfigError, match=r"z\.parquet exists"):
        embed_graph(files.edges, files.nodes, out=out, method="nodejepa", preset="paper", settings=SMALL)
