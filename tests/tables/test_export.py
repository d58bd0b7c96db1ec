"""Every export reads back, with the tool it is for where that is installed: same ids, same bits."""

from __future__ import annotations

import csv
import json
import re
import uuid
from typing import get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nodejepa.cli.explore import Format
from nodejepa.errors import DataError, NodeJEPAError
from nodejepa.graph import Graph
from nodejepa.tables import (
    EXPORT_FORMATS,
    embeddings,
    export_embeddings,
    read_columns,
    read_embeddings,
    write_embeddings,
)

Z = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
HOSTILE = ["=1+1", "a\tb\nc", '"quoted", and,more', "<script>", "../../etc", "é\U0001f600 \u2028"]
WHOLE = [2**62, -5, 0, 1, 2, -(2**63)]


def read_id_lines(path):
    return [json.loads(line) for line in path.with_name(path.name + ".ids.jsonl").read_text().splitlines()]


def read_back(path, to):
    """Ids and matrix by means that share nothing with the writer."""
    if to == "parquet":
        table = pq.read_table(path)
        return table["id"].to_pylist(), np.array(table["vector"].to_pylist(), dtype=np.float32)
    if to == "jsonl":
        lines = [json.loads(line) for line in path.read_bytes().decode().split("\n")[:-1]]
        return [line["id"] for line in lines], np.array([line["vector"] for line in lines], dtype=np.float32)
    if to == "csv":
        with path.open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        assert header == ["id", *(f"z{j}" for j in range(len(header) - 1))]
        return [row[0] for row in rows], np.array([[np.float32(v) for v in row[1:]] for row in rows])
    return read_id_lines(path), np.load(path)


FILES = list(EXPORT_FORMATS)


@pytest.mark.parametrize("to", FILES)
@pytest.mark.parametrize("ids", [HOSTILE, WHOLE, [2**64 - 1, *range(5)], None])
def test_round_trip(tmp_path, to, ids):
    path = tmp_path / "new" / f"z.{to}"
    exported = export_embeddings(path, ids, Z, to=to)
    assert exported.files[0] == path
    assert all(file.is_file() for file in exported.files)
    read_ids, z = read_back(path, to)
    expected = list(range(6)) if ids is None else ids
    assert read_ids == ([str(name) for name in expected] if to == "csv" else expected)
    np.testing.assert_array_equal(z, Z)


@pytest.mark.slow
@pytest.mark.parametrize("to", FILES)
@given(
    z=hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 5), st.integers(1, 4)),
        elements=st.floats(width=32, allow_nan=False, allow_infinity=False),
    ),
    data=st.data(),
)
def test_any_text_and_any_number_survive(tmp_path_factory, to, z, data):
    text = st.text(st.characters(exclude_categories=["Cs"]))
    ids = data.draw(st.lists(text, min_size=len(z), max_size=len(z)))
    path = tmp_path_factory.mktemp("export") / f"z.{to}"
    export_embeddings(path, ids, z, to=to)
    read_ids, read = read_back(path, to)
    assert read_ids == ids
    np.testing.assert_array_equal(read, z)
    np.testing.assert_array_equal(np.signbit(read), np.signbit(z))


@pytest.mark.parametrize("to", EXPORT_FORMATS)
def test_small_blocks_write_the_same_bytes(tmp_path, to, monkeypatch):
    def contents(folder):
        out = folder / f"z.{to}"
        return [file.read_bytes() for file in export_embeddings(out, HOSTILE, Z, to=to).files]

    whole = contents(tmp_path / "a")
    monkeypatch.setattr(embeddings, "_VALUES_AT_ONCE", 6)
    assert contents(tmp_path / "b") == whole


def test_vectors_are_what_stores_take_for_vectors(tmp_path):
    export_embeddings(tmp_path / "v.parquet", WHOLE, Z, to="parquet")
    schema = pq.read_schema(tmp_path / "v.parquet")
    assert schema.field("vector").type == pa.list_(pa.float32(), 3)
    assert schema.field("id").type == pa.int64()
    np.testing.assert_array_equal(np.stack(pd.read_parquet(tmp_path / "v.parquet")["vector"]), Z)
    ids, z = read_embeddings(tmp_path / "v.parquet")
    assert ids.tolist() == WHOLE
    np.testing.assert_array_equal(z, Z)


def test_pandas_reads_the_csv(tmp_path):
    export_embeddings(tmp_path / "z.csv", WHOLE, Z, to="csv")
    frame = pd.read_csv(
        tmp_path / "z.csv", index_col="id", dtype=dict.fromkeys(["z0", "z1", "z2"], np.float32)
    )
    assert frame.index.tolist() == WHOLE
    np.testing.assert_allclose(frame.to_numpy(), Z, rtol=1e-6)


@pytest.mark.parametrize(
    ("ids", "to", "note"),
    [
        (HOSTILE, "csv", "1 ids begin like a formula"),
        (WHOLE, "jsonl", r"above 2\^53"),
        ([uuid.UUID(int=i) for i in range(6)], "jsonl", "written as text"),
        ([-1, 2**64 - 1, 1, 2, 3, 4], "parquet", "written as text"),
    ],
)
def test_what_a_reader_should_know_is_said(tmp_path, ids, to, note):
    notes = export_embeddings(tmp_path / f"z.{to}", ids, Z, to=to).notes
    assert len(notes) == 1

    assert re.search(note, notes[0])


def test_nothing_to_note_for_plain_ids(tmp_path):
    for to in EXPORT_FORMATS:
        assert export_embeddings(tmp_path / to / f"z.{to}", list("abcdef"), Z, to=to).notes == ()


def test_sparse_and_double_embeddings_become_float32(tmp_path):
    for z in (sp.csr_array(Z), Z.astype(np.float64), np.asfortranarray(Z)):
        export_embeddings(tmp_path / "z.npy", None, z, to="npy")
        np.testing.assert_array_equal(np.load(tmp_path / "z.npy"), Z)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"to": "xml"}, "'xml' is unknown.*parquet"),
        ({"out": "z.txt"}, r"End the name in \.csv"),
        ({"out": "z"}, r"End the name in \.csv"),
        ({"ids": ["a"]}, "1 ids for 6 rows"),
        ({"ids": "abcdef"}, "node_ids is a str"),
        ({"ids": ["\ud800", *"abcde"]}, "no valid text"),
        ({"embeddings": Z * np.nan}, "NaN"),
        ({"embeddings": np.full((6, 1), 1e300)}, "too large for float32"),
        ({"out": "file/z.csv"}, "Check the path"),
    ],
)
def test_bad_exports_are_refused_and_leave_nothing(tmp_path, monkeypatch, arguments, match):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(NodeJEPAError, match=match):
        export_embeddings(**{"out": "z.csv", "ids": None, "embeddings": Z, "to": "csv", **arguments})
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "z.csv"
    path.write_text("old")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(embeddings.pa.csv, "CSVWriter", full)
    with pytest.raises(NodeJEPAError, match="No space left"):
        export_embeddings(path, None, Z, to="csv")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_command_line_offers_every_format():
    assert get_args(Format) == tuple(EXPORT_FORMATS)
    with pytest.raises(DataError):
        export_embeddings("z.csv", None, Z, to="CSV")


COLUMNS = {"label": ["a\tb", None, "c"], "cluster": [2, 0, 1], "side": ["x", "y", "x"]}


@pytest.mark.parametrize("to", EXPORT_FORMATS)
def test_labels_and_clusters_travel(tmp_path, to):
    graph = Graph.from_edges([0, 1], [1, 2], node_ids=["ann", "bob", "eve"])
    write_embeddings(tmp_path / "z.parquet", graph, np.eye(3), COLUMNS)
    found = read_columns(tmp_path / "z.parquet")
    assert found == COLUMNS
    stored = read_embeddings(tmp_path / "z.parquet")
    out = tmp_path / f"out.{to}"
    made = export_embeddings(out, stored.ids, stored.matrix, to=to, columns=found)
    if to == "parquet":
        assert pq.read_table(out).drop_columns(["id", "vector"]).to_pydict() == COLUMNS
        assert read_columns(out) == COLUMNS  # and on the way back
    elif to == "jsonl":
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        assert [{name: line[name] for name in COLUMNS} for line in lines] == [
            {name: values[i] for name, values in COLUMNS.items()} for i in range(3)
        ]
    elif to == "csv":
        assert out.read_text().splitlines()[0].startswith('"id","label","cluster","side","z0"')
    else:
        assert any("label, cluster, side stay behind" in note for note in made.notes)


def test_columns_that_do_not_fit_are_refused(tmp_path):
    for columns in ({"label": ["a"]}, {"id": ["a", "b"]}):
        with pytest.raises(DataError, match=r"(values|ids) for 2 rows"):
            export_embeddings(tmp_path / "z.csv", None, np.eye(2), to="csv", columns=columns)
    assert read_columns(tmp_path / "z.npy") == {}
