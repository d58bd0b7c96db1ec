"""Embeddings on disk: original ids and order, whole or not at all; what was written is read back."""

from __future__ import annotations

import uuid

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from nodejepa.errors import DataError, GraphError, NodeJEPAError
from nodejepa.graph import Graph
from nodejepa.graph_checks import id_array
from nodejepa.tables import embeddings, find_row, find_rows, read_embeddings, write_embeddings

SMALL = np.array([[1, 0.5], [0, 2], [3, 0]], dtype=np.float32)


@pytest.mark.parametrize(
    "z", [SMALL, SMALL.astype(np.float64), np.asfortranarray(SMALL), sp.csr_array(SMALL)]
)
@pytest.mark.parametrize("ids", [None, ["b", "<i>", "=1+1"], [2**62, -5, 0]])
def test_a_table_has_ids_and_columns(tmp_path, z, ids):
    write_embeddings(
        tmp_path / "deep" / "z.parquet", Graph.from_edges([0], [1], num_nodes=3, node_ids=ids), z
    )
    table = pq.read_table(tmp_path / "deep" / "z.parquet").to_pydict()
    assert table == {"id": ids or [0, 1, 2], "z0": [1, 0, 3], "z1": [0.5, 2, 0]}


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path):
    mixed = Graph.from_edges([0], [1], node_ids=[1, "one", (2,)])
    with pytest.raises(GraphError, match="parquet cannot hold"):
        write_embeddings(tmp_path / "z.parquet", mixed, SMALL)
    with pytest.raises(GraphError, match=r"parquet cannot hold.*below 2\^63"):
        write_embeddings(tmp_path / "z.parquet", Graph.from_edges([0], [1], node_ids=[2**64, 1, 2]), SMALL)
    for bad in (SMALL[:2], SMALL[0], np.full((3, 1), "text")):
        with pytest.raises(GraphError, match="for 3 nodes"):
            write_embeddings(tmp_path / "z.parquet", mixed, bad)
    with pytest.raises(GraphError, match="embeddings are a list"):
        write_embeddings(tmp_path / "z.parquet", mixed, SMALL.tolist())
    for name in ("z.csv", "z", ""):
        with pytest.raises(GraphError, match=r"\.parquet .* or \.npy"):
            write_embeddings(tmp_path / name, mixed, SMALL)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("z", [SMALL.astype(np.float64), sp.csr_array(SMALL)])
@pytest.mark.parametrize("name", ["z.npy", "z.NPY"])
def test_npy_is_the_array_in_the_order_of_nodes(tmp_path, z, name):
    write_embeddings(tmp_path / name, Graph.from_edges([0], [1], num_nodes=3), z)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    found = np.load(tmp_path / name)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, SMALL)


def test_paths_that_cannot_be_written_are_explained(tmp_path):
    (tmp_path / "folder.parquet").mkdir()
    (tmp_path / "file").touch()
    graph = Graph.from_edges([0], [1], num_nodes=3)
    for path in (tmp_path / "folder.parquet", tmp_path / "file" / "z.npy"):
        with pytest.raises(NodeJEPAError, match="Check the path") as caught:
            write_embeddings(path, graph, SMALL)
        assert caught.value.where == str(path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.parquet"]


def test_a_file_is_hardly_larger_than_its_numbers(tmp_path):
    """Parquet's dictionaries would make it half as large again, and slow to write."""
    z = np.random.default_rng(0).normal(size=(5000, 32)).astype(np.float32)
    graph = Graph.from_edges([0], [1], num_nodes=len(z), node_ids=[f"n{i}" for i in range(len(z))])
    write_embeddings(tmp_path / "z.parquet", graph, z)
    assert (tmp_path / "z.parquet").stat().st_size < 1.15 * z.nbytes


@pytest.mark.parametrize("there", [False, True])
def test_a_link_stays_and_the_file_that_it_names_is_written(tmp_path, there):
    target, link = tmp_path / "other" / "z.npy", tmp_path / "link.npy"
    target.parent.mkdir()
    if there:
        np.save(target, np.zeros(1))
    link.symlink_to(target)
    write_embeddings(link, Graph.from_edges([0], [1]), np.ones((2, 3), dtype=np.float32))
    assert link.is_symlink()
    np.testing.assert_array_equal(np.load(target), np.ones((2, 3)))


# ---------------------------------------------------------------- back

Z = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
UUIDS = [uuid.UUID(int=i) for i in range(6)]


def written(path, ids=None, z=Z):
    write_embeddings(path, Graph.from_edges([0], [1], num_nodes=len(z), node_ids=ids), z)
    return path


@pytest.mark.parametrize(
    "ids",
    [
        None,
        ["a", "<i>", "=1+1", "", "\t\n", "é\U0001f600"],
        [2**62, -5, 0, 1, 2, -(2**63)],
        ["long" * 100, *"abcde"],
        [b"\x00\xff", *(bytes([i]) for i in range(5))],
        UUIDS,
    ],
)
def test_round_trip(tmp_path, ids):
    read = read_embeddings(written(tmp_path / "z.parquet", ids))
    assert read.ids.tolist() == (list(range(6)) if ids is None else ids)
    np.testing.assert_array_equal(read.matrix, Z)
    assert read.matrix.dtype == np.float32
    ids_, matrix = read  # unpacks
    assert ids_ is read.ids
    assert matrix is read.matrix


def test_npy_has_row_numbers(tmp_path):
    read = read_embeddings(written(tmp_path / "z.npy", ids=list("abcdef")))
    assert read.ids.tolist() == list(range(6))
    np.testing.assert_array_equal(read.matrix, Z)


def test_reading_in_many_batches_is_the_same(tmp_path, monkeypatch):
    path = written(tmp_path / "z.parquet", list("abcdef"))
    monkeypatch.setattr(embeddings, "_VALUES_AT_ONCE", 6)
    read = read_embeddings(path)
    assert "".join(read.ids) == "abcdef"
    np.testing.assert_array_equal(read.matrix, Z)


def test_pandas_reads_and_writes_the_same_table(tmp_path):
    frame = pd.read_parquet(written(tmp_path / "z.parquet", list("abcdef")))
    assert list(frame.columns) == ["id", "z0", "z1", "z2"]
    frame["label"] = "kept by its owner, left alone by us"
    frame[["label", "z2", "z0", "id", "z1"]].set_index("id").to_parquet(tmp_path / "again.parquet")
    read = read_embeddings(tmp_path / "again.parquet")
    assert "".join(read.ids) == "abcdef"
    np.testing.assert_array_equal(read.matrix, Z)


NUMBERS = pa.array([1.0, 2.0])


@pytest.mark.parametrize(
    ("table", "match"),
    [
        ({"z0": NUMBERS}, "columns are z0"),
        ({"id": NUMBERS}, "columns are id"),
        ({"id": NUMBERS, "z0": NUMBERS, "z2": NUMBERS}, "columns are id, z0, z2"),
        ({f"column {i}": NUMBERS for i in range(20)}, r"column 7, \.\.\., not id"),
        ({}, "columns are none"),
        ({"id": [1, None], "z0": NUMBERS}, "1 ids are missing"),
        ({"id": [1, 2], "z0": [1.0, None]}, "embeddings are missing"),
        ({"id": [1, 2], "z0": ["a", "b"]}, "embeddings are of type string"),
        ({"id": [1, 2], "z0": [1.0, float("nan")]}, "NaN or infinite"),
        ({"id": pa.array([], pa.int64()), "z0": pa.array([], pa.float32())}, "0 of 0 rows"),
    ],
)
def test_other_tables_are_refused(tmp_path, table, match):
    pq.write_table(pa.table(table), tmp_path / "z.parquet")
    with pytest.raises(NodeJEPAError, match=match):
        read_embeddings(tmp_path / "z.parquet")


def test_files_that_are_not_there_or_of_another_kind(tmp_path):
    (tmp_path / "folder.parquet").mkdir()
    (tmp_path / "text.parquet").write_text("not parquet")
    (tmp_path / "empty.npy").touch()
    np.save(tmp_path / "objects.npy", np.array([{}, "a"], dtype=object), allow_pickle=True)
    np.save(tmp_path / "flat.npy", np.ones(3))
    np.save(tmp_path / "words.npy", np.array([["a"]]))
    with (tmp_path / "zip.npy").open("wb") as file:
        np.savez(file, a=Z)
    for name, match in {
        "none.parquet": "no such file",
        "none.csv": r"not read from \.csv",
        "none": "without ending",
        "folder.parquet": "a folder",
        "text.parquet": "cannot be read",
        "empty.npy": "cannot be read",
        "objects.npy": "cannot be read",
        "flat.npy": "no table of numbers",
        "words.npy": "no table of numbers",
        "zip.npy": "no table of numbers",
    }.items():
        with pytest.raises(DataError, match=match):
            read_embeddings(tmp_path / name)


@pytest.mark.parametrize("ending", [".parquet", ".npy"])
def test_truncated_files_are_refused(tmp_path, ending):
    path = written(tmp_path / f"z{ending}", z=np.ones((50, 4), np.float32))
    whole = path.read_bytes()
    for length in range(0, len(whole), max(1, len(whole) // 60)):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError):
            read_embeddings(path)


@pytest.mark.slow
def test_flipped_bits_in_the_numbers_are_found(tmp_path):
    """A checksum a page; what it does not cover (headers of pages) is a clear error or changes no number."""
    z = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
    path = written(tmp_path / "z.parquet", z=z)
    whole = path.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    generator = np.random.default_rng(1)
    refused = 0
    for place in generator.integers(4, footer, size=150).tolist():
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(generator.integers(8))
        path.write_bytes(damaged)
        try:
            read = read_embeddings(path)
        except NodeJEPAError:
            refused += 1
        else:
            np.testing.assert_array_equal(read.matrix, z)
            assert read.ids.tolist() == list(range(300))
    assert refused > 100


# ---------------------------------------------------------------- from ids to rows

SOMEBODY = uuid.UUID(int=7)


@pytest.mark.parametrize(
    ("ids", "text", "row"),
    [
        (["a", "b"], "b", 1),
        (["007", "7"], "7", 1),
        ([7, 70, -(2**63), 2**63 - 1], "70", 1),
        ([7, 70, -(2**63), 2**63 - 1], str(2**63 - 1), 3),
        ([7, 70, -(2**63), 2**63 - 1], " +7 ", 0),
        ([7, -5], "-5", 1),
        ([0.5, 1.0], "1.0", 1),
        ([SOMEBODY, uuid.UUID(int=8)], str(SOMEBODY), 0),
        (["", "\n"], "", 0),
    ],
)
def test_text_is_read_as_the_ids_are(ids, text, row):
    assert find_row(id_array(ids), text) == row


def test_unsigned_ids():
    assert find_row(np.array([2**64 - 1, 1], dtype=np.uint64), str(2**64 - 1)) == 0


@given(st.lists(st.text(max_size=6), unique=True, min_size=1, max_size=12), st.data())
def test_every_text_is_found(ids, data):
    row = data.draw(st.integers(0, len(ids) - 1))
    assert find_row(id_array(ids), ids[row]) == row
    assert find_rows(id_array(ids), [ids[row]]).tolist() == [row]


@pytest.mark.parametrize(
    ("ids", "text", "advice"),
    [
        (["user-17", "user-18"], "User-17 ", "mean 'user-17'"),
        (["user-17", "robot"], "user17", "mean 'user-17'"),
        (["red", "green"], "qqqq", "look like 'red', 'green'"),
        ([10, 20, 30], "17", "whole numbers from 10 to 30"),
        ([100, 200], "1OO", "from 100 to 200"),
        ([10, 20], "9" * 100, "from 10 to 20"),
    ],
)
def test_near_misses_get_advice(ids, text, advice):
    with pytest.raises(DataError, match="there is no node") as caught:
        find_row(id_array(ids), text)
    assert advice in caught.value.fix


def test_ids_that_stand_twice_are_refused():
    with pytest.raises(DataError, match="two rows have the same id 'a'"):
        find_row(np.array(["a", "b", "a"]), "a")


def test_rows_of_keeps_the_order_and_takes_numpy_values():
    assert find_rows(np.array([5, 6, 7]), np.array([7, 5, 7])).tolist() == [2, 0, 2]
    assert find_rows(["a"], []).size == 0
    for unknown in (["b"], [["a"]], [None]):
        with pytest.raises(DataError, match="no node"):
            find_rows(["a"], unknown)
