"""Whatever the reader guesses can be said on the command line, in the words that its notes use."""

from __future__ import annotations

import ast
import json
import re
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from workflow_files import TINY, TINY_RUN, write

import nodejepa
from nodejepa import apply_run, embed_graph, read_graph
from nodejepa.cli.screen import in_options
from nodejepa.errors import ConfigError, GraphError
from nodejepa.structure.descriptors import DESCRIPTORS, descriptors
from nodejepa.tables import FeatureSchema, ReadingOptions
from nodejepa.tables.options import COMPARABLE, STRUCTURAL

PACKAGE = Path(nodejepa.__file__).parent
_OPTION = re.compile(r"(?<![\w-])--[a-z]")


@pytest.fixture
def check(run, tmp_path):
    """``embed-graph --check --json`` on edges as text: the report, or what was said against it."""

    def call(text, *options, nodes=None):
        (tmp_path / "edges.csv").write_text(text)
        table = () if nodes is None else ("--nodes", write(nodes, tmp_path / "nodes.csv"))
        code, out, err = run(
            "embed-graph", "--check", "--json", "--edges", tmp_path / "edges.csv", *table, *options
        )
        return json.loads(out) if code == 0 else " ".join(err.split())

    return call


RING, TABS = "a,b\nb,c\nc,d\nd,a\n", "a,1\tb,2\nb,2\tc,3\nc,3\ta,1\n"
WEIGHTED = "source,target,weight\na,b,2\nb,c,3\n"


@pytest.mark.parametrize(
    ("text", "options", "fact", "value"),
    [
        (RING, ["--header"], "edges", 3),
        (RING, ["--no-header"], "edges", 4),
        (TABS, ["--no-header", "--delimiter", "tab"], "nodes", 3),
        (WEIGHTED, [], "weighted", True),
        (WEIGHTED, ["--no-weight"], "weighted", False),
    ],
)
def test_what_is_guessed_can_be_said(check, text, options, fact, value):
    assert check(text, *options)["graph"][fact] == value


def test_weights_are_left_out_or_named(check):
    assert "not both" in check(WEIGHTED, "--no-weight", "--weight", "weight")


def test_the_width_of_hashed_text_is_an_option(check):
    ids = [f"n{i}" for i in range(200)]
    edges = "source,target\n" + "".join(f"{a},{b}\n" for a, b in pairwise(ids))
    nodes = pa.table({"id": ids, "bio": [f"word{i} and word{i * i}" for i in range(200)]})
    for options, width in (((), 512), (("--text-columns", 33), 33)):
        assert check(edges, "--text", "hash", *options, nodes=nodes)["graph"]["feature_columns"] == width


def test_notes_name_options_on_the_screen(run, tmp_path):
    (tmp_path / "e.csv").write_text("a,b\nb,c\nc,a\n")
    out, _ = run.ok("embed-graph", "--check", "--edges", tmp_path / "e.csv")
    assert "say --header if it has" in out
    assert "header=True" not in out


@pytest.mark.parametrize(
    ("python", "shell"),
    [
        ("header=False", "--no-header"),
        ("force=True", "--force"),
        ("drop=COLUMN", "--drop COLUMN"),
        ("id_column=...", "--id"),
        ("training.parts=8", "--set training.parts=8"),
        ("unheard_of=8", "unheard_of=8"),
    ],
)
def test_settings_are_options_on_the_screen(python, shell):
    assert in_options(f"Say {python}; column 'text=\"hash\"' stays.") == (
        f"Say {shell}; column 'text=\"hash\"' stays."
    )


def test_an_error_reads_in_python_and_is_shown_in_options(run, tmp_path):
    (tmp_path / "e.csv").write_text("source,target,weight\na,b,1\nb,c,-2\n")
    with pytest.raises(GraphError, match="with weight=False; rows"):
        read_graph(tmp_path / "e.csv")
    code, _, err = run("embed-graph", "--check", "--edges", tmp_path / "e.csv")
    assert (code, "with --no-weight; rows" in " ".join(err.split())) == (2, True)
    code, _, err = run("embed-graph", "--check", "--edges", tmp_path / "e.csv", "--source", "from")
    assert (code, "e.csv, --source" in "".join(err.split("\n"))) == (2, True)


@pytest.mark.slow
def test_a_library_message_names_no_option():
    """Messages name settings as ``name=value``; only the command line knows what its options are called."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        texts = [n for n in nodes if isinstance(n, ast.Constant) and id(n) not in docstrings]
        # torchrun is started by its own options
        torchrun = ("--standalone", "--nproc-per-node=", "--max-restarts=")
        texts = [n for n in texts if n.value not in torchrun]
        if path.relative_to(PACKAGE).parts[0] not in ("cli", "worker.py"):
            found += [(path.name, n.lineno) for n in texts if _OPTION.search(str(n.value))]
    assert found == []


def test_unknown_options_of_reading_are_refused_by_name():
    assert ReadingOptions().changed({"ignore": "a"}).drop == ("a",)
    assert (
        ReadingOptions(structural=True).structural
        == DESCRIPTORS
        == ReadingOptions(structural="all").structural
    )
    with pytest.raises(ConfigError, match=r"'lables' is no option of reading.*labels"):
        read_graph("e.csv", lables="x")


def test_a_run_without_weights_reads_none_from_other_files_either(tmp_path):
    edges = pa.table({"source": list("abc"), "target": list("bca"), "weight": [1.0, 2.0, 3.0]})
    file = write(edges, tmp_path / "e.csv")
    embed_graph(file, out=tmp_path / "z.npy", weight=False, **TINY_RUN)
    assert not apply_run(tmp_path / "z.run", file).loaded.graph.is_weighted


def test_embed_takes_the_same_options(run, tmp_path):
    (tmp_path / "e.csv").write_text("a,b\nb,c\nc,d\nd,a\n")
    embed_graph(tmp_path / "e.csv", out=tmp_path / "z.npy", header=False, structural="all", **TINY_RUN)
    command = ("embed", tmp_path / "z.run", "--edges", tmp_path / "e.csv", "--out")
    code, out, err = run(*command, tmp_path / "a.parquet", "--header", "--delimiter", "comma")
    assert (code, "4 nodes" in out) == (0, True), err
    err = run.refused("embed", tmp_path / "z.run", "digits", "--out", tmp_path / "b.npy", "--no-header")
    assert "belong to --edges" in " ".join(err.split())


def test_structural_features_by_name(run, tmp_path):
    edges = pa.table({"source": list("abcd"), "target": list("bcda")})
    file = write(edges, tmp_path / "e.csv")
    loaded = read_graph(file, structural=["degree", "pagerank"])
    assert (loaded.graph.features == descriptors(loaded.graph, ("pagerank", "degree"))).all()
    assert FeatureSchema.from_dict(loaded.schema.to_dict()) == loaded.schema
    with pytest.raises(ConfigError, match="Choose from pagerank"):
        read_graph(file, structural=["degre"])
    command = ("embed-graph", "--edges", file, "--out", tmp_path / "z.npy", *TINY)
    _, err = run.ok(*command, "--structural", "degree,clustering")
    assert "features are structural: degree and clustering" in err
    assert apply_run(tmp_path / "z.run", file).loaded.graph.num_features == 2


def test_the_reader_knows_the_descriptors_that_there_are():
    assert COMPARABLE == DESCRIPTORS
    assert tuple(STRUCTURAL) == (*DESCRIPTORS, "adjacency")


def test_schemas_from_before_descriptors_had_names_are_read():
    content = FeatureSchema(structural=11).to_dict()
    del content["described_by"]
    assert FeatureSchema.from_dict(content) == FeatureSchema(structural=11)
