"""Nothing of ours is replaced by something of another kind, or by another process, without being asked."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings

import pytest

from nodejepa import LinearJEPA
from nodejepa.errors import ConfigError
from nodejepa.files import output_owned
from nodejepa.workflow import embed_graph
from nodejepa.workflow.embed import OutputPaths

SMALL = {"encoder.hidden": 8, "predictor.hidden": 8, "training.epochs": 1}


@pytest.fixture
def made(files, run):
    """A finished run: z.parquet, z.json and z.run."""
    assert run(*files.quick())[0] == 0
    return files.folder


@pytest.mark.parametrize(
    "victim", ["z.run/model.safetensors", "z.run/config.json", "z.run/history.jsonl", "z.parquet", "z.json"]
)
def test_a_report_replaces_pages_only(made, run, victim):
    before = (made / victim).read_bytes()
    err = run.refused("report", made / "z.run", "--out", made / victim)
    assert "holds something else" in err
    assert "--force" in err
    assert (made / victim).read_bytes() == before


@pytest.mark.slow
def test_a_report_replaces_a_report_and_with_force_anything(made, run):
    (made / "notes.txt").write_text("mine")
    for out, options, code in (
        ("page.html", (), 0),
        ("page.html", (), 0),
        ("notes.txt", (), 2),
        ("notes.txt", ("--force",), 0),
    ):
        assert run("report", made / "z.run", "--out", made / out, *options)[0] == code
    assert (made / "notes.txt").read_text().lower().startswith("<!doctype html")


@pytest.mark.slow
def test_embeddings_of_a_named_graph_replace_nothing_unasked(tmp_path, run):
    run_folder, out = tmp_path / "run", tmp_path / "z.parquet"
    assert run("pretrain", "digits", "--out", run_folder)[0] == 0
    for options, code in (((), 0), ((), 2), (("--force",), 0)):
        assert run("embed", run_folder, "digits", "--out", out, *options)[0] == code


def test_a_second_process_with_the_same_out_is_refused(files):
    holder = (
        "import sys; from pathlib import Path; from nodejepa.files import output_owned\n"
        "with output_owned(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    out = files.folder / "z.parquet"
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(out.with_suffix(".run"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(ConfigError, match="another process is writing the same output"):
            embed_graph(
                files.edges,
                files.nodes,
                out=out,
                method="nodejepa",
                preset="paper",
                settings=SMALL,
            )
        process.stdin.close()
    assert not out.exists()


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
