"""Commands, what they print where, and exit codes that scripts can trust."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import numpy as np
import pyarrow.parquet as pq
import pytest

import nodejepa
from nodejepa.config import parse_seeds
from nodejepa.data import load_dataset
from nodejepa.data.catalogue import CATALOGUE
from nodejepa.errors import ConfigError
from nodejepa.evaluation import scoring
from nodejepa.methods import METHODS, make_method

QUICK = ("probe", "digits", "--method", "raw", "--seeds", "1-2", "--probe", "paper")


def test_version(run):
    assert run("--version") == (0, nodejepa.__version__ + "\n", "")


@pytest.mark.parametrize(
    "command",
    ["", "demo", "pretrain", "embed", "probe", "report", "neighbours", "datasets", "methods"],
)
def test_help(run, command):
    code, out, err = run(*command.split(), "--help")
    assert (code, err) == (0, "")
    assert "Usage: nodejepa" in out
    assert ("Example" in out) == (command not in ("", "demo", "datasets", "methods"))


@pytest.mark.slow
def test_datasets_lists_all_and_says_what_is_here(run, tmp_path):
    out, _ = run.ok("datasets", "--data-root", str(tmp_path))
    for name in CATALOGUE:
        row = next(line for line in out.splitlines() if name in line.split())
        assert ("built in" in row) == (not CATALOGUE[name].files)
    for file in CATALOGUE["photo"].files:
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).touch()
    _, out, _ = run("datasets", "--data-root", str(tmp_path))
    assert "yes" in next(line for line in out.splitlines() if "photo" in line.split())


def test_methods_lists_all_with_presets_and_citations(run):
    out, _ = run.ok("methods")
    for entry in METHODS.values():
        row = next(line for line in out.splitlines() if entry.name in line.split())
        assert all(preset in row for preset in entry.presets)


GRAPH = "synthetic:nodes=240,edges=900,features=8,classes=3"
PAPER = ("--method", "nodejepa", "--preset", "paper")
TINY = ("--set", "encoder.hidden=16", "--set", "predictor.hidden=16", "--set", "epochs=3", "--seed", "5")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("nodejepa", {"encoder.hidden": 16, "predictor.hidden": 16, "epochs": 3}),
        ("random-gcn", {"hidden": 16}),
    ],
)
def test_pretrain_embed_and_probe_work_on_one_run(run, tmp_path, method, settings):
    folder, z = str(tmp_path / "run"), tmp_path / "z.parquet"
    changes = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    out, _ = run.ok("pretrain", GRAPH, "--method", method, "--out", folder, "--seed", "5", *changes)
    assert "model.safetensors" in out
    out, _ = run.ok("embed", folder, GRAPH, "--out", str(z))
    assert "240 nodes x 16" in out
    table = pq.read_table(z)
    assert table.column_names == ["id", *(f"z{i}" for i in range(16))]
    assert table["id"].to_pylist() == list(range(240))
    graph = load_dataset(GRAPH).graph
    wanted = make_method(method, seed=5, settings=settings).fit(graph).transform(graph)
    np.testing.assert_array_equal(np.stack(table.columns[1:], axis=1), wanted)
    out, _ = run.ok("probe", GRAPH, "--run", folder, "--seeds", "1-2", "--probe", "paper", "--json")
    assert json.loads(out)["method"] == method


@pytest.mark.slow
def test_pretrain_refuses_what_it_cannot_do(run, tmp_path):
    folder = str(tmp_path / "run")
    assert run("pretrain", GRAPH, *PAPER, "--out", folder, *TINY)[0] == 0
    for arguments, says in [
        (("--out", folder), "already holds a run"),
        (("--out", folder, "--resume", "--set", "masking.hops=1"), "another config"),
        (("--out", str(tmp_path / "x"), "--set", "masking.hopps=1"), "Did you mean masking.hops"),
        (("--out", str(tmp_path / "x"), "--set", "masking.hops=many"), "must be a whole number"),
        (("--out", str(tmp_path / "x"), "--set", "hops"), "not of the form name=value"),
        (("--out", str(tmp_path / "x"), "--preset", "papr"), "no preset 'papr'"),
        (("--out", str(tmp_path / "x"), "--device", "tpu"), "device 'tpu' is unknown"),
    ]:
        err = run.refused("pretrain", GRAPH, "--method", "nodejepa", *arguments)
        assert says in err, arguments
    err = run.refused("embed", str(tmp_path / "nowhere"), "digits", "--out", str(tmp_path / "z.parquet"))
    assert "no such file" in err
    assert not (tmp_path / "z.parquet").exists()


def test_an_empty_out_is_not_the_current_folder(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "path is empty" in run.refused("pretrain", "digits", "--out", "", *TINY)
    assert list(tmp_path.iterdir()) == []


def test_embeddings_come_as_the_ending_says(run, tmp_path):
    folder = tmp_path / "run"
    out, _ = run.ok("pretrain", GRAPH, *PAPER, "--out", str(folder), *TINY, "--set", "epochs=0")
    assert "history.jsonl" not in out  # nothing was trained, so there is none
    assert not (folder / "history.jsonl").exists()
    assert run("embed", str(folder), GRAPH, "--out", str(tmp_path / "z.npy"))[0] == 0
    assert np.load(tmp_path / "z.npy").shape == (240, 16)
    assert ".parquet" in run.refused("embed", str(folder), GRAPH, "--out", str(tmp_path / "z.csv"))
    assert not (tmp_path / "z.csv").exists()


def test_probe_prints_a_table(run):
    out, _ = run.ok("probe", GRAPH, *QUICK[2:])
    assert f"raw (default) on {GRAPH}, split 20-30, paper probe" in " ".join(out.split())
    assert "mean ± std" in out


@pytest.mark.slow
def test_probe_prints_only_json_on_stdout(run):
    code, out, _ = run(*QUICK, "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["dataset"], found["method"], found["preset"]) == ("digits", "raw", "default")
    assert (found["probe"], found["split"], found["seeds"]) == ("paper", "20-30", [1, 2])
    tests = [score["test_accuracy"] for score in found["scores"]]
    assert found["test_accuracy_mean"] == pytest.approx(sum(tests) / 2)
    assert found["test_accuracy_std"] == pytest.approx(abs(tests[0] - tests[1]) / 2**0.5)
    assert 80 < found["test_accuracy_mean"] < 100  # percent
    assert len({score["split_hash"] for score in found["scores"]}) == 2
    assert found["scores"][0].keys() >= {"seed", "val_accuracy", "scaling", "C"}
    assert found.keys() >= {"val_accuracy_mean", "val_accuracy_std", "diagnostics", "seconds", "versions"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("probe", "digts"), "Did you mean 'digits'?"),
        (("probe", "digits", "--method", "sgx"), "Did you mean sgc?"),
        (("probe", "digits", "--seeds", "46-42"), "no range"),
        (("probe", "digits", "--split", "weird"), "split 'weird' is unknown"),
        (("probe", "digits", "--split", "official"), "no official split"),
        (("probe", "digits", "--preset", "best"), "no preset 'best'"),
        (("probe", "[red]markup[/red]"), "[red]markup[/red]"),
        (("probe",), "Missing argument"),
        (("probe", "digits", "--probe", "unfair"), "'unfair' is not one of"),
        (("probe", "digits", "--sedes", "1"), "No such option"),
        (("prob",), "No such command"),
        (("demo", "--out", "/dev/null/demo"), "/dev/null"),
    ],
)
def test_mistakes_end_in_two_and_advice(run, arguments, says):
    code, out, err = run(*arguments)
    assert code == 2
    assert says in err
    assert out == ""


def test_missing_data_says_which_file_to_put_where(run, tmp_path, monkeypatch):
    def offline(*_: object, **__: object) -> None:
        raise urllib.error.URLError("no route to host")

    monkeypatch.setattr(urllib.request.OpenerDirector, "open", offline)
    code, out, err = run("probe", "photo", "--data-root", str(tmp_path))
    assert code == 2
    assert out == ""
    assert "no route to host" in err
    assert f"where: data root {tmp_path}\n" in err
    (file,) = CATALOGUE["photo"].files
    assert f"Put into that folder: {file} (from https://" in err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def broken(error: BaseException):
    def score_method(*_: object, **__: object) -> None:
        raise error

    return score_method


@pytest.mark.slow
def test_a_bug_ends_in_one_and_asks_for_a_report(run, monkeypatch):
    monkeypatch.setattr(scoring, "score_method", broken(ZeroDivisionError("oops")))
    code, out, err = run(*QUICK)
    assert code == 1
    assert out == ""
    assert "ZeroDivisionError: oops" in err
    assert "report" in err
    assert "Traceback" in run("--debug", *QUICK)[2]
    monkeypatch.setenv("NODEJEPA_DEBUG", "1")
    assert "Traceback" in run(*QUICK)[2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("pretrain", "digits", "--out", "x"), "with --resume goes on"),
        (("embed-graph", "--edges", "e.csv", "--out", "z.npy"), "with --resume goes on"),
        (("embed-graph", "--edges", "e.csv", "--out", "z.npy", "--force"), "--resume in place of --force"),
        (("study", "run", "studies/main.toml"), "The same command goes on"),
        (("prepare", "--edges", "e.csv", "--out", "g.store"), "Stopped.\n"),
        (("prepare", "--verify", "g.store"), "Stopped.\n"),
        (("compare", "--edges", "e.csv", "--out", "c"), "with --resume keeps the methods"),
        (("embed-graph", "--edges", "e.csv", "--check"), "Stopped.\n"),
        (("neighbours", "z.npy", "--id", "1"), "Stopped.\n"),
    ],
)
def test_an_interrupt_says_how_to_go_on(run, monkeypatch, arguments, said):
    # typer makes an exit code of the interrupt; a library that is loaded may make any error of it
    for shown in (SystemExit(130), KeyboardInterrupt(), ImportError("broken off")):

        def typer(shown=shown, **_):
            raise shown from KeyboardInterrupt()

        monkeypatch.setattr("nodejepa.cli.app", typer)
        code, out, err = run(*arguments)
        assert (code, out) == (130, "")
        assert said in err


def test_a_real_interrupt_ends_in_130(run, monkeypatch):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    monkeypatch.setattr(scoring, "score_method", lambda *_, **__: os.kill(os.getpid(), signal.SIGINT))
    try:
        assert run(*QUICK) == (130, "", "Stopped.\n")
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_module_and_script_are_the_same_command():
    done = subprocess.run(
        [sys.executable, "-m", "nodejepa", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == nodejepa.__version__


@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("nodejepa probe ph", ["photo", "physics"]),
        ("nodejepa probe pho", ["photo"]),
        ("nodejepa pretrain digits --method node", ["nodejepa"]),
        ("nodejepa pre", ["prepare", "pretrain"]),
    ],
)
def test_shell_completion_knows_commands_datasets_and_methods(run, monkeypatch, line, offers):
    """What bash asks when the tabulator key is pressed."""
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_NODEJEPA_COMPLETE": "complete_bash"}
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    assert run()[1].split() == offers


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("42-46", [42, 43, 44, 45, 46]), ("1,2,5", [1, 2, 5]), ("7", [7]), (" 3 - 4 , 0", [3, 4, 0])],
)
def test_seed_grammar(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize(
    "text", ["", ",", "1,,2", "a", "1-", "-1", "1--2", "1.5", "5-1", "1,1", "1-3,2", "0-99999", "٣"]
)
def test_seed_mistakes_are_explained(text):
    with pytest.raises(ConfigError, match="42-46"):
        parse_seeds(text)


@pytest.mark.slow
def test_pretrain_knows_beforehand_that_it_does_not_fit(run, tmp_path):
    err = run.refused("pretrain", "digits", "--out", str(tmp_path / "run"), "--memory-limit", "0.01")
    assert "10 MB were allowed" in err
    assert "--memory-limit" in err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "error", [MemoryError("4 GB"), RuntimeError("DefaultCPUAllocator: can't allocate memory: 99 bytes")]
)
def test_no_memory_left_is_not_a_bug_of_ours(run, monkeypatch, error):
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("nodejepa.data.load_dataset", fail)
    err = run.refused("probe", "digits", "--method", "raw")
    assert "not enough memory" in err
    assert "ulimit" in err
    assert "bug" not in err


def test_help_of_embed_graph_shows_first_what_most_need(run):
    first, *others = run("embed-graph", "--help")[1].split("╭─ ")[1:]
    assert first.startswith("Options ")
    assert {"--edges", "--nodes", "--out", "--labels", "--check"} <= set(first.split())
    assert first.count("--") <= 16
    assert [panel.partition(" ─")[0] for panel in others] == [
        "Reading the files",
        "Training",
        "Machine",
        "Output",
    ]
