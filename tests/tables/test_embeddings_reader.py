"""What was written is read back, whoever wrote it; what cannot be trusted is refused with a reason."""

from __future__ import annotations

import uuid

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nodejepa.errors import DataError, NodeJEPAError
from nodejepa.graph import Graph
from nodejepa.tables import embeddings, read_embeddings, write_embeddings

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


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.float32(), 3), pa.list_(pa.float64()), pa.large_list(pa.float32())]
)
def test_vector_columns(tmp_path, kind):
    ids = pa.array(list("abcdef")).dictionary_encode()
    pq.write_table(pa.table({"vector": pa.array(Z.tolist(), kind), "id": ids}), tmp_path / "z.parquet")
    read = read_embeddings(tmp_path / "z.parquet")
    assert "".join(read.ids) == "abcdef"
    np.testing.assert_array_equal(read.matrix.astype(np.float32), Z)
    assert read.matrix.dtype == kind.value_type.to_pandas_dtype()


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
        ({"id": [1, 2], "vector": ["a", "b"]}, "vector is of type string"),
        ({"id": [1, 2], "vector": [["a"], ["b"]]}, "embeddings are of type string"),
        ({"id": [1, 2], "vector": [[1.0], [1.0, 2.0]]}, "differ in length"),
        ({"id": [1, 2], "vector": [[1.0], [None]]}, "have gaps"),
        ({"id": [1, 2], "vector": [[1.0], None]}, "embeddings are missing"),
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
        "text.parquet": "damaged or of another kind",
        "empty.npy": "damaged or of another kind",
        "objects.npy": "damaged or of another kind",
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
