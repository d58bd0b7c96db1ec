"""What becomes of the columns of a node table: which are scaled, which stay, what is said and warned of."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
import scipy.sparse as sp
from workflow_files import TINY

from nodejepa import FeatureSchema, apply_run, load_graph, read_graph
from nodejepa.cli.screen import in_options
from nodejepa.errors import ConfigError

IDS = [f"n{i}" for i in range(8)]
EDGES = pa.table({"source": IDS, "target": [*IDS[1:], IDS[0]]})


def table(**columns):
    return pa.table({"id": IDS, **columns})


def features(nodes, **options):
    matrix = read_graph(EDGES, nodes, structural=False, **options).graph.features
    return matrix.toarray() if sp.issparse(matrix) else matrix


BITS = [0, 1, 1, 0, 0, 1, 0, 1]
AGES = [20.0, 30, 40, 50, 60, 70, 80, 90]
VECTORS = pa.array([[3.0, i] for i in range(8)])


@pytest.mark.parametrize("bits", [BITS, [float(b) for b in BITS]])
def test_zeros_and_ones_and_vectors_stay_the_rest_is_scaled(bits):
    nodes = table(bit=bits, age=AGES, text=VECTORS)
    found = features(nodes)
    np.testing.assert_array_equal(found[:, 0], BITS)
    np.testing.assert_allclose([found[:, 1].mean(), found[:, 1].std()], [0, 1], atol=1e-6)
    np.testing.assert_array_equal(found[:, 2:], VECTORS.to_pylist())
    np.testing.assert_array_equal(features(nodes, scale="none")[:, 1], AGES)
    scaled = features(nodes, scale="standardise")
    np.testing.assert_allclose(scaled[:, [0, 1, 3]].std(axis=0), 1, atol=1e-6)
    with pytest.raises(ConfigError, match="scale is 'z'"):
        features(nodes, scale="z")


@pytest.mark.slow
def test_a_wide_table_of_zeros_and_ones_stays_sparse(tmp_path):
    rng = np.random.default_rng(0)
    bag = (rng.random((8, 300)) < 0.02).astype(np.float32)
    bag[0], bag[1] = 0, 1  # no word is in all documents or in none
    bag[1, :150] = 0
    bag[2, :150] = 1
    bag[2, 150:] = 0
    nodes = table(**{f"w{j}": bag[:, j].astype(int) for j in range(300)})
    pacsv.write_csv(nodes, tmp_path / "nodes.csv")
    by_table = read_graph(EDGES, tmp_path / "nodes.csv")
    assert sp.issparse(by_table.graph.features)
    np.testing.assert_array_equal(by_table.graph.features.toarray(), bag)
    said = [note for note in by_table.notes if "w0" in note]
    assert len(said) == 1
    assert said[0].startswith("features from 300 columns (binary, as they are): 'w0', 'w1'")


def test_missing_values_of_what_stays_are_said_and_marked():
    nodes = table(
        bit=pa.array([None, *BITS[1:]]),
        age=pa.array([None, *AGES[1:]]),
        text=pa.array([None, *VECTORS.to_pylist()[1:]]),
    )
    found = features(nodes, scale="auto")
    np.testing.assert_array_equal(found[0], [0, 1, 0, 1, 3, 4, 1])
    assert features(nodes, scale="none")[0, 2] == np.mean(AGES[1:])


def test_old_schemas_do_as_they_did():
    nodes = table(bit=BITS, text=VECTORS, age=AGES)
    old = {  # as it was written before columns could stay as they are
        "format": "nodejepa feature schema",
        "version": 1,
        "columns": [
            {"name": "bit", "kind": "numeric", "mean": [0.5], "scale": [0.5]},
            {"name": "text", "kind": "vector", "mean": [3.0, 3.5], "scale": [1.0, 2.0]},
        ],
        "matrix_width": None,
        "structural": 0,
        "described_by": ["pagerank", "degree", "clustering", "spectral"],
        "missing": "fill",  # options of that time
        "infinite": "refuse",
    }
    scaled = read_graph(EDGES, nodes, schema=FeatureSchema.from_dict(old)).graph.features
    np.testing.assert_array_equal(scaled[:, 0], 2 * np.array(BITS) - 1)
    np.testing.assert_array_equal(scaled[:, 2], (np.arange(8) - 3.5) / 2)
    assert {group.treatment for group in FeatureSchema.from_dict(old).groups()} == {
        "scaled to mean 0 and standard deviation 1"
    }


def test_notes_speak_of_columns_together():
    gaps = {f"x{j}": pa.array([None] * (1 + j % 2) + AGES[1 + j % 2 :]) for j in range(40)}
    same = {f"c{j}": [float(j)] * 8 for j in range(40)}
    loaded = read_graph(EDGES, table(**gaps, **same))
    assert len(loaded.notes) < 8
    missing = [note for note in loaded.notes if "missing" in note]
    assert len(missing) == 1
    said = "missing values, which a column marks, count as the mean"
    assert missing[0].startswith(f"{said}: 'x0' (1), 'x1' (2), 'x2' (1)")
    assert missing[0].endswith(", ... (40 columns).")
    assert any(n.startswith("left out (the same value everywhere): 'c0', 'c1'") for n in loaded.notes)
    alone = read_graph(EDGES, table(x=gaps["x0"], c=same["c3"])).notes
    assert {f"{said}: 'x' (1).", "left out (the same value everywhere): 'c'."} <= set(alone)


@pytest.mark.parametrize("name", ["label", "Class", "target_id", "y", "node_category", "paperClass", "TOPIC"])
@pytest.mark.parametrize("values", [list("aabbaabb"), [0, 1, 2, 0, 1, 2, 0, 1], [True, False] * 4])
def test_columns_that_look_like_a_target_are_warned_of(name, values):
    nodes = table(**{name: values, "age": AGES})
    loaded = read_graph(EDGES, nodes)
    (warning,) = loaded.report.warnings
    assert f"column {name!r} looks like a target" in warning
    assert warning in loaded.notes
    assert f"--labels {name} to score by it, or --drop {name}" in in_options(warning)
    with pytest.warns(UserWarning, match="looks like a target"):
        load_graph(EDGES, nodes)
    for options in ({"labels": name}, {"drop": name}, {"ignore": [name]}, {"columns": [name]}):
        assert read_graph(EDGES, nodes, **options).report.warnings == []


@pytest.mark.parametrize(
    "column",
    [
        {"classification_score": AGES},
        {"year": [1, 2] * 4},
        {"label": AGES},
        {"target": [0.5, 1.5] * 4},
        {"targets": VECTORS},
    ],
)
def test_other_columns_are_not_warned_of(column):
    assert read_graph(EDGES, table(**column)).report.warnings == []


@pytest.mark.slow
def test_terminal_report_and_manifest_say_what_was_done(run, tmp_path):
    edges, nodes = tmp_path / "e.csv", tmp_path / "n.csv"
    pacsv.write_csv(EDGES, edges)
    pacsv.write_csv(table(bit=BITS, bat=BITS, age=AGES, label=list("aabbaabb")), nodes)
    files = ("--edges", edges, "--nodes", nodes, "--out", tmp_path / "z.parquet")
    command = ("embed-graph", *files, *TINY, "--report")
    _, err = run.ok(*command)
    said = " ".join(err.split())
    page = (tmp_path / "z.html").read_text()
    manifest = json.loads((tmp_path / "z.json").read_text())
    for text in (said, " ".join(manifest["read"]["notes"])):
        assert "features from 2 columns (binary, as they are): 'bit', 'bat'" in text
        assert "features from 1 column (numeric, scaled to mean 0 and standard deviation 1): 'age'" in text
    assert "binary, as they are" in page
    assert [c["treatment"] for c in manifest["features"]["columns"]][:2] == ["as they are"] * 2
    assert said.count("looks like a target") == 1
    assert "--labels label" in said
    assert "looks like a target" in manifest["warnings"][0]
    code, _, err = run(*command, "--force", "--drop", "label", "--scale", "none")
    assert (code, "looks like" in err) == (0, False)
    manifest = json.loads((tmp_path / "z.json").read_text())
    assert [c["name"] for c in manifest["features"]["columns"]] == ["bit", "bat", "age"]
    applied = apply_run(tmp_path / "z.run", EDGES, table(bit=BITS, bat=BITS, age=AGES)).loaded.graph
    np.testing.assert_array_equal(applied.features[:, 2], AGES)
