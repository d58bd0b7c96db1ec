"""Graphs and features at the edge of what there is: a correct result or a clear error, never a traceback."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from workflow_files import QUICK, write

pytestmark = pytest.mark.filterwarnings("ignore::nodejepa.training.logger.CollapseWarning")


def embedded(run, tmp_path, edges, nodes=None, *more):
    """Exit code, embeddings and what was said."""
    command = [
        "embed-graph",
        "--edges",
        write(edges, tmp_path / "e.parquet"),
        "--out",
        tmp_path / "z.parquet",
    ]
    if nodes is not None:
        command += ["--nodes", write(nodes, tmp_path / "n.parquet")]
    code, _, err = run(*command, *QUICK, *more)
    assert "bug in nodejepa" not in err, err
    table = pq.read_table(tmp_path / "z.parquet") if code == 0 else None
    assert (tmp_path / "z.json").exists() == (code == 0)
    return code, table, err


def pairs(*edges):
    return pa.table({"source": [a for a, _ in edges], "target": [b for _, b in edges]})


SHAPES = {
    "star": pairs(*[("hub", f"leaf-{i}") for i in range(40)]),
    "path": pairs(*[(i, i + 1) for i in range(40)]),
    "clique": pairs(*[(i, j) for i in range(20) for j in range(i)]),
    "two components": pairs(*[(i, (i + 1) % 10) for i in range(10)], *[(i, i + 1) for i in range(20, 30)]),
    "one edge": pairs(("a", "b")),
    "self-loops and one edge": pairs(*[(i, i) for i in range(9)], (0, 1)),
}


@pytest.mark.parametrize("method", ["nodejepa", "patchjepa"])
@pytest.mark.parametrize("shape", SHAPES)
def test_odd_shapes_are_embedded(run, tmp_path, shape, method):
    code, table, err = embedded(run, tmp_path, SHAPES[shape], None, "--method", method)
    assert code == 0, err
    names = [str(v) for column in ("source", "target") for v in SHAPES[shape][column].to_pylist()]
    assert sorted(map(str, table["id"].to_pylist())) == sorted(set(names))
    z = np.column_stack([table[f"z{j}"].to_numpy() for j in range(8)])
    assert np.isfinite(z).all()


def test_isolated_nodes_only(run, tmp_path):
    nodes = pa.table({"id": ["a", "b", "c", "d"], "x": [1.0, 2.0, 3.0, 5.0]})
    code, table, err = embedded(run, tmp_path, pairs(("a", "a")), nodes)
    assert code == 0, err
    assert table["id"].to_pylist() == ["a", "b", "c", "d"]
    assert "no edges" in " ".join(json.loads((tmp_path / "z.json").read_text())["warnings"])


@pytest.mark.parametrize(
    ("edges", "said"),
    [
        (pa.table({"source": pa.array([], pa.string()), "target": pa.array([], pa.string())}), "no"),
        (pa.table({"source": ["a"]}), "column"),
    ],
    ids=["empty", "one column"],
)
def test_what_cannot_be_a_graph_to_learn_from_is_refused(run, tmp_path, edges, said):
    code, _, err = embedded(run, tmp_path, edges)
    assert code == 2
    assert said in err
    assert not (tmp_path / "z.parquet").exists()


HOSTILE = [
    "<script>alert(1)</script>",
    "=cmd|' /C calc'!A0",
    "../../etc/passwd",
    "</script><img src=x onerror=alert(1)>",
    "Ünïcødé \u202e \U0001f600",
    "a'b\"c`d$(rm -rf /)",
    "line\nbreak\ttab",
    " leading space",
    "%s %n {0} ${x}",
    "\u2028\u2029",
    "[bold red]markup[/]",
    "NULL-ish",
]


@pytest.mark.slow
def test_hostile_strings_stay_verbatim_in_parquet_and_harmless_on_the_page(run, tmp_path):
    edges = pairs(*[(HOSTILE[i], HOSTILE[(i + 1) % 12]) for i in range(12)])
    nodes = pa.table(
        {
            "id": HOSTILE,
            "<b onload=alert(2)>": [float(i) for i in range(12)],
            "../label": [HOSTILE[i % 2] for i in range(12)],
        }
    )
    arguments = ("--labels", "../label", "--report", "--id", "id")
    code, table, err = embedded(run, tmp_path, edges, nodes, *arguments)
    assert code == 0, err
    assert table["id"].to_pylist() == HOSTILE
    page = (tmp_path / "z.html").read_text(encoding="utf-8")
    for text in ("<script>alert(1)", "<img src=x", "<b onload"):
        assert text not in page
    assert "\\u003cscript\\u003ealert(1)" in page  # it is there, as data
    manifest = json.loads((tmp_path / "z.json").read_text(encoding="utf-8"))
    assert list(manifest["scores"]["class_sizes"]) == sorted(HOSTILE[:2])
    assert manifest["read"]["feature_columns"] == {"<b onload=alert(2)>": "numeric"}
    assert {path.name for path in tmp_path.iterdir()} == {
        *("e.parquet", "n.parquet", "z.parquet", "z.json", "z.html", "z.run")
    }
