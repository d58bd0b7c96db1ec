"""Kills, full disks, second processes and damaged files: nothing half-written is ever taken for whole."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import shutil
import signal

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.forked import Forked
from workflow_files import people, write

from nodejepa import embed_graph
from nodejepa.files import output_owned
from nodejepa.methods.estimator import Estimator
from nodejepa.training.logger import Logging
from nodejepa.training.run import load_tensors

SETTINGS = {"encoder.hidden": 8, "predictor.hidden": 8, "epochs": 6}
OPTIONS = (
    *("--method", "nodejepa", "--preset", "paper", "--epochs", "6"),
    *("--set", "encoder.hidden=8", "--set", "predictor.hidden=8"),
    *("--checkpoint-epochs", "2", "--no-report"),
)
PYTHON = {
    "preset": "paper",
    "settings": SETTINGS,
    "report": False,
    "logging": Logging(checkpoint_epochs=2),
}

# runs the command and kills itself at the asked moment
KILLER = """
import os, signal, sys
stage, arguments = sys.argv[1], sys.argv[2:]
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
from nodejepa.cli import main
if stage == "reading":
    import nodejepa.tables.read
    nodejepa.tables.read.number_files = die
elif stage == "partition":
    import nodejepa.structure
    sys.modules["nodejepa.structure.partition"]._metis = die
elif stage.startswith("epoch "):
    from nodejepa.training.run import Run
    append = Run.append
    def die_after(self, record):
        append(self, record)
        if record["epoch"] == int(stage.split()[1]):
            die()
    Run.append = die_after
else:  # the moment in which a finished file is moved to its name
    replace = os.replace
    def die_before(source, target):
        if os.path.basename(target) == stage:
            die()
        replace(source, target)
    os.replace = die_before
main(arguments)
"""


def with_files(folder):
    edges, nodes = people()
    write(edges, folder / "edges.parquet")
    write(nodes.drop_columns(["team"]), folder / "nodes.parquet")
    return folder


@pytest.fixture
def folder(tmp_path):
    return with_files(tmp_path)


def command(folder, *more):
    files = ("--edges", folder / "edges.parquet", "--nodes", folder / "nodes.parquet")
    return ("embed-graph", *files, "--out", folder / "z.parquet", *OPTIONS, *more)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Embeddings (the file's bytes) and weights of each method, never interrupted."""
    made = {}

    def of(method):
        if method not in made:
            folder = made[method] = with_files(tmp_path_factory.mktemp(method))
            files = folder / "edges.parquet", folder / "nodes.parquet"
            embed_graph(*files, out=folder / "z.parquet", method=method, **PYTHON)
        return made[method]

    return of


def weights(folder):
    return {name: t.numpy() for name, t in load_tensors(folder / "z.run" / "model.safetensors")[0].items()}


def is_finished(folder):
    """As a careful reader would decide: the manifest is there and names the digest of the embeddings."""
    if not (folder / "z.json").exists():
        return False
    digest = hashlib.sha256((folder / "z.parquet").read_bytes()).hexdigest()
    return json.loads((folder / "z.json").read_text())["embeddings"]["sha256"] == digest


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "method"),
    [
        ("reading", "nodejepa"),
        ("partition", "patchjepa"),
        ("schema.json", "nodejepa"),
        ("epoch 1", "nodejepa"),
        ("checkpoint.safetensors", "nodejepa"),
        ("epoch 5", "patchjepa"),
        ("model.safetensors", "nodejepa"),
        ("z.parquet", "nodejepa"),
        ("z.json", "nodejepa"),
    ],
)
def test_killed_and_resumed_ends_in_the_bits_of_an_undisturbed_run(run, folder, undisturbed, stage, method):
    arguments = command(folder, "--method", method)
    environment = {**os.environ, "NODEJEPA_CACHE": str(folder / "cache")}
    code, err = Forked(KILLER, stage, *arguments, env=environment).wait()
    assert code == -signal.SIGKILL, err
    assert not is_finished(folder)
    if (folder / "z.parquet").exists():
        assert pq.read_table(folder / "z.parquet").num_rows == 60
    run.ok(*command(folder, "--method", method, "--resume"))
    whole = undisturbed(method)
    assert is_finished(folder)
    assert (folder / "z.parquet").read_bytes() == (whole / "z.parquet").read_bytes()
    for name, values in weights(whole).items():
        np.testing.assert_array_equal(weights(folder)[name], values)
    assert not list(folder.glob(".*")), "what the killed process left is cleared away"


@pytest.mark.slow
@pytest.mark.filterwarnings("default::nodejepa.training.logger.CollapseWarning")
def test_a_kill_while_replacing_leaves_the_old_ones_or_says_unfinished(run, folder):
    assert run(*command(folder))[0] == 0
    before = (folder / "z.parquet").read_bytes()
    arguments = command(folder, "--seed", "4", "--force")
    code, err = Forked(KILLER, "epoch 3", *arguments).wait()
    assert code == -signal.SIGKILL, err
    assert is_finished(folder)
    assert (folder / "z.parquet").read_bytes() == before
    _, err = run.ok(*command(folder, "--seed", "4", "--resume"))
    assert "dimensional collapse" in err
    assert "dimensional collapse" in " ".join(json.loads((folder / "z.json").read_text())["warnings"])
    assert is_finished(folder)
    assert (folder / "z.parquet").read_bytes() != before


def no_space(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.slow
@pytest.mark.parametrize(
    "place",
    [
        "nodejepa.tables.embeddings.pq.ParquetWriter.write_table",
        "nodejepa.training.run.Run.append",
        "nodejepa.files.os.fsync",
        "nodejepa.workflow.embed.tempfile.TemporaryFile",
    ],
)
def test_a_full_disk_is_told_and_costs_nothing(run, folder, monkeypatch, place, undisturbed):
    with monkeypatch.context() as patch:
        patch.setattr(place, no_space)
        code, _, err = run(*command(folder))
    assert code == 2
    assert "No space left on device" in err
    assert not is_finished(folder)
    assert not (folder / "z.parquet").exists()
    assert run(*command(folder, "--resume"))[0] == 0
    assert (folder / "z.parquet").read_bytes() == (undisturbed("nodejepa") / "z.parquet").read_bytes()


def test_no_room_for_the_embeddings_is_told_before_training(run, folder, monkeypatch):
    monkeypatch.setattr(
        "nodejepa.workflow.embed.shutil.disk_usage", lambda _: shutil._ntuple_diskusage(9, 9, 9)
    )
    assert "are free" in run.refused(*command(folder))
    assert not (folder / "z.run" / "config.json").exists()


def test_where_nothing_can_be_written_nothing_is_begun(run, folder):
    (folder / "file").write_text("in the way")
    assert "File exists" in run.refused(*command(folder), "--out", folder / "file" / "z.parquet")
    (folder / "z.run").write_text("in the way")
    assert "is a file" in run.refused(*command(folder))
    (folder / "z.run").unlink()
    (folder / "z.json").mkdir()
    assert "is a folder" in run.refused(*command(folder))


@pytest.mark.slow
def test_a_second_process_is_refused(run, folder):
    with output_owned(folder / "z.run"):
        code, _, err = run(*command(folder))
    assert code == 2
    assert "another process is writing the same output" in " ".join(err.split())
    assert not (folder / "z.parquet").exists()


def interrupted(folder, monkeypatch):
    """A run that ended after its last checkpoint and before its model."""

    def stop(*_):
        raise KeyboardInterrupt

    files = folder / "edges.parquet", folder / "nodes.parquet"
    with monkeypatch.context() as patch:
        patch.setattr(Estimator, "save", stop)
        with pytest.raises(KeyboardInterrupt):
            embed_graph(*files, out=folder / "z.parquet", method="nodejepa", **PYTHON)
    return folder / "z.run" / "checkpoint.safetensors"


class Explosive:
    """Whoever unpickles this makes a file."""

    def __reduce__(self):
        return (open, ("was-executed", "w"))


DAMAGES = {
    "truncated": lambda content: content[: len(content) // 2],
    "empty": lambda _: b"",
    "bit flipped": lambda content: content[:-40] + bytes([content[-40] ^ 4]) + content[-39:],
    "header flipped": lambda content: content[:30] + bytes([content[30] ^ 1]) + content[31:],
    "pickle": lambda _: pickle.dumps(Explosive()),
    "torch pickle": lambda _: b"PK\x03\x04" + pickle.dumps(Explosive()),
}


@pytest.mark.slow
def test_a_damaged_run_is_refused_and_never_executed(run, folder, monkeypatch):
    monkeypatch.chdir(folder)
    checkpoint = interrupted(folder, monkeypatch)
    config, good = folder / "z.run" / "config.json", checkpoint.read_bytes()
    for damage in DAMAGES.values():
        checkpoint.write_bytes(damage(good))
        assert "checkpoint.safetensors" in run.refused(*command(folder, "--resume"))
    checkpoint.write_bytes(good)
    settings = config.read_bytes()
    config.write_text('{"method": "nodejepa", "confi')
    assert "config.json is damaged" in run.refused(*command(folder, "--resume"))
    config.write_bytes(settings)
    assert not (folder / "z.parquet").exists()
    run.ok(*command(folder, "--resume"))
    model = folder / "z.run" / "model.safetensors"
    good, embed = model.read_bytes(), ("embed", folder / "z.run", "--edges", folder / "edges.parquet")
    for damage in DAMAGES.values():
        model.write_bytes(damage(good))
        for attempt in (command(folder, "--resume"), (*embed, "--out", folder / "z2.npy")):
            assert "model.safetensors" in run.refused(*attempt)
    assert not (folder / "was-executed").exists()
    model.write_bytes(good)
    assert is_finished(folder), "the embeddings that were there are still there"


def test_the_explosive_explodes(tmp_path, monkeypatch):
    """The test above would pass with a harmless pickle."""
    monkeypatch.chdir(tmp_path)
    pickle.loads(pickle.dumps(Explosive())).close()
    assert (tmp_path / "was-executed").exists()


def renamed(folder):
    """The same numbers under another name: the same graph, made of another table."""
    table = pq.read_table(folder / "nodes.parquet")
    names = [{"age": "years"}.get(name, name) for name in table.column_names]
    pq.write_table(table.rename_columns(names), folder / "nodes.parquet")


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["checkpoint.safetensors", "model.safetensors"])
def test_a_killed_run_gone_on_with_another_table_never_keeps_the_old_schema(run, folder, stage):
    """Before the first checkpoint it is simply another run; with one it is refused."""
    code, err = Forked(KILLER, stage, *command(folder)).wait()
    assert code == -signal.SIGKILL, err
    renamed(folder)
    code, _, err = run(*command(folder, "--resume"))
    begun = (folder / "z.run" / "checkpoint.safetensors").exists() and stage == "model.safetensors"
    assert code == (2 if begun else 0), err
    if begun:
        assert "read in another way" in err
    schema = json.loads((folder / "z.run" / "schema.json").read_text())
    named = [column["name"] for column in schema["features"]["columns"]]
    assert named[0] == ("age" if begun else "years")
