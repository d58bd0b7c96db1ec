"""``nodejepa neighbours``: what it prints, and exit codes for what goes wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest

from nodejepa.graph import Graph
from nodejepa.tables import write_embeddings

Z = np.array([[1, 0], [0.9, 0.1], [0, 1], [-1, 0], [0, 0]], dtype=np.float32)
NAMES = ["ann", "bob", "\x1b[31mred\x07", "=[bold]eve[/bold]", "nobody"]


@pytest.fixture(autouse=True)
def _folder(monkeypatch, tmp_path):
    """A folder with embeddings to work in."""
    monkeypatch.chdir(tmp_path)
    for name, ids in {"z.parquet": NAMES, "whole.parquet": [2**60, -7, 0, 1, 2], "z.npy": None}.items():
        write_embeddings(tmp_path / name, Graph.from_edges([0], [1], num_nodes=5, node_ids=ids), Z)


def test_neighbours_as_a_table(run):
    code, out, err = run("neighbours", "z.parquet", "--id", "ann", "-k", "4")
    assert (code, err) == (0, "")
    rows = [line for line in out.splitlines() if line.startswith("│")]
    assert [row.split("│")[2].strip() for row in rows] == [
        "bob",
        r"\x1b[31mred\x07",  # nothing that could drive the terminal
        "nobody",
        "=[bold]eve[/bold]",
    ]
    assert "0.9939" in rows[0]


def test_neighbours_as_json(run):
    code, out, err = run("neighbours", "whole.parquet", "--id", str(2**60), "--metric", "euclidean", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["id"], found["row"], found["metric"]) == (2**60, 0, "euclidean")
    assert [one["id"] for one in found["neighbours"]] == [-7, 2, 0, 1]
    assert found["neighbours"][1] == {"id": 2, "row": 4, "distance": 1.0}
    assert json.loads(run("neighbours", "whole.parquet", "--id", "-7", "--json")[1])["row"] == 1
    assert json.loads(run("neighbours", "z.parquet", "--id", NAMES[2], "--json")[1])["id"] == NAMES[2]


def test_neighbours_of_one_type(run, tmp_path):
    graph, kinds = Graph.from_edges([0], [1], num_nodes=5), ["user", "user", "item", "item", None]
    for name, column in (("sides.parquet", "side"), ("classes.parquet", "label")):
        write_embeddings(tmp_path / name, graph, Z, {column: kinds})
        out, _ = run.ok("neighbours", name, "--id", "0", "--among", "item", "--json")
        assert [one["id"] for one in json.loads(out)["neighbours"]] == [2, 3]
    code, _, err = run("neighbours", "sides.parquet", "--id", "0", "--among", "items")
    assert (code, "There are: item, user" in err) == (2, True)


def test_neighbours_of_npy_rows(run):
    out, _ = run.ok("neighbours", "z.npy", "--id", "0", "-k", "1", "--json")
    assert json.loads(out)["neighbours"][0]["id"] == 1


def test_a_zero_embedding_is_pointed_out(run):
    code, out, err = run("neighbours", "z.parquet", "--id", "nobody", "-k", "1", "--json")
    assert (code, json.loads(out)["neighbours"][0]["similarity"]) == (0, 0)
    assert "all zeros" in err
    assert "all zeros" not in run("neighbours", "z.parquet", "--id", "nobody", "--metric", "euclidean")[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("neighbours", "z.parquet", "--id", "Bob"), "Did you mean 'bob'?"),
        (("neighbours", "whole.parquet", "--id", "ann"), "whole numbers from -7"),
        (("neighbours", "z.npy", "--id", "5"), "from 0 to 4"),
        (("neighbours", "none.parquet", "--id", "a"), "no such file"),
        (("neighbours", "z.parquet", "--id", "ann", "-k", "0"), "-k"),
        (("neighbours", "z.parquet", "--id", "ann", "--metric", "dot"), "--metric"),
        (("neighbours", "z.parquet"), "--id"),
    ],
)
def test_mistakes_end_with_advice_and_exit_code_2(run, tmp_path, arguments, message):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert {path.name for path in tmp_path.iterdir()} == {"z.parquet", "whole.parquet", "z.npy"}


def test_neighbors_is_answered_with_its_name_here(run):
    assert "Did you mean 'neighbours'?" in run.refused("neighbors", "z.npy", "--id", "0")
