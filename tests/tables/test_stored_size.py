"""What files unpack to: bombs are refused by what they promise or as they unfold, never by running out."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from tests.forked import Forked

from nodejepa.data.readers import read_gnn_benchmark
from nodejepa.errors import ConfigError, DataError, NodeJEPAError
from nodejepa.tables import read_graph

MB = 1_000_000


@pytest.fixture(autouse=True)
def little_held(monkeypatch):
    """Whatever the process of the tests holds by now: the limits below are counted from here."""
    monkeypatch.setattr("nodejepa.machine.resident_bytes", lambda: 0)


@pytest.mark.slow
@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress)])
def test_compressed_text_is_cut_off_where_the_limit_is(tmp_path, ending, pack):
    path = tmp_path / f"edges.csv.{ending}"
    path.write_bytes(pack(b"a,b\n" + b"11,12\n" * MB))
    with pytest.raises(DataError, match=r"unpacks to more than 4 MB.*memory_limit"):
        read_graph(path, memory_limit=0.015)
    assert path.stat().st_size * 20 < 15 * MB, "its own size would have let it through"
    assert read_graph(path, memory_limit=0.06).report.edge_rows == MB


@pytest.mark.slow
@pytest.mark.parametrize("fill", [b",", b"a,", b'"', b"x", b" ", b",\r"])
def test_a_gzip_of_delimiters_is_refused_at_once(tmp_path, fill):
    path = tmp_path / "edges.csv.gz"
    path.write_bytes(gzip.compress(fill * (10 * MB // len(fill))))
    with pytest.raises(NodeJEPAError):
        read_graph(path)


@pytest.mark.slow
def test_a_row_of_very_many_columns_is_refused_and_a_wide_one_is_not(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text(",".join(f"c{i}" for i in range(200_000)) + "\n" + ",".join(["1"] * 200_000) + "\n")
    with pytest.raises(DataError, match="more than 131,072 columns"):
        read_graph(path)
    path.write_text(",".join(f"c{i}" for i in range(20_000)) + "\n" + ",".join(["1"] * 20_000) + "\n")
    assert read_graph(path, source="c0", target="c19999").graph.num_nodes == 1


def npy_header(shape, dtype="<f8"):
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": dtype, "fortran_order": False, "shape": shape})
    return out.getvalue()


@pytest.mark.parametrize("zip64", [False, True])
@pytest.mark.parametrize("shape", [(2, 10**9), (2, 10**18), (10**5, 10**5)])
def test_a_header_that_promises_more_than_there_is_is_refused_before_room_is_made(tmp_path, shape, zip64):
    path = tmp_path / "edges.npz"
    with zipfile.ZipFile(path, "w") as archive, archive.open("edges.npy", "w", force_zip64=zip64) as entry:
        entry.write(npy_header(shape) + bytes(800))
    with pytest.raises(DataError, match="header promises"):
        read_gnn_benchmark(path, "a")


def test_a_directory_that_lies_about_sizes_gives_no_more_than_it_says(tmp_path):
    """The central directory promises 100 bytes of an entry that holds a megabyte."""
    path = tmp_path / "edges.npz"
    np.savez_compressed(path, adj_data=np.zeros((2, 65_536), dtype=np.int64))
    content = path.read_bytes()
    real = (128 + 2 * 65_536 * 8).to_bytes(4, "little")
    at = content.rindex(real)  # in the directory, the last of the two places
    path.write_bytes(content[:at] + (100).to_bytes(4, "little") + content[at + 4 :])
    with pytest.raises(DataError):
        read_gnn_benchmark(path, "a")


@pytest.mark.slow
def test_repeated_values_in_parquet_count_as_the_cells_they_are(tmp_path):
    path = tmp_path / "edges.parquet"
    ends = pa.array(np.zeros(20 * MB, dtype=np.int64))
    pq.write_table(pa.table({"source": ends, "target": ends}), path)
    assert path.stat().st_size < MB
    with pytest.raises(ConfigError, match="reading the file needs about 640 MB"):
        read_graph(path, memory_limit=0.5)


def test_long_texts_and_lists_in_parquet_count_as_what_they_unpack_to(tmp_path):
    """A dictionary or runs of equal numbers make a few kilobytes of them."""
    pq.write_table(pa.table({"source": ["a", "b"], "target": ["b", "a"]}), tmp_path / "e.parquet")
    texts = pa.table({"id": [f"n{i}" for i in range(20_000)], "bio": ["x" * 5_000] * 20_000})
    pq.write_table(texts, tmp_path / "texts.parquet")
    lists = pa.array([[0.0] * 5_000] * 1_000, pa.list_(pa.float32()))
    pq.write_table(pa.table({"id": [f"n{i}" for i in range(1_000)], "z": lists}), tmp_path / "lists.parquet")
    for name, error in (("texts.parquet", DataError), ("lists.parquet", ConfigError)):
        assert (tmp_path / name).stat().st_size < MB
        with pytest.raises(error, match=r"unpacks to more than|reading the file needs about"):
            read_graph(tmp_path / "e.parquet", tmp_path / name, memory_limit=0.07, text="ignore")


def test_benchmark_files_are_measured_before_they_are_read(tmp_path, monkeypatch):
    matrix = sp.csr_array(np.eye(3, dtype=np.float32))
    parts = {k: getattr(matrix, k) for k in ("data", "indices", "indptr")} | {"shape": np.array([3, 3])}
    arrays = {f"{prefix}_{k}": v for prefix in ("adj", "attr") for k, v in parts.items()}
    np.savez_compressed(tmp_path / "a.npz", labels=np.zeros(MB), **arrays)
    monkeypatch.setattr("nodejepa.machine.available_bytes", lambda: 5 * MB)
    with pytest.raises(ConfigError, match="reading the file needs about 24 MB"):
        read_gnn_benchmark(tmp_path / "a.npz", "a")


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path):
    os.mkfifo(tmp_path / "edges.csv")
    with pytest.raises(DataError, match="is a pipe or a device"):
        read_graph(tmp_path / "edges.csv")


# ---------------------------------------------------------------- memory


EDGES = 100_000

READ = """
import sys
from nodejepa.tables import read_graph
from nodejepa.machine import peak_memory_mb
small, big = sys.argv[1:]
read_graph(small, structural=False)
before = peak_memory_mb()
graph = read_graph(big, structural=False).graph
print(graph.num_nodes, graph.num_edges, peak_memory_mb() - before)
"""


@pytest.mark.slow
def test_memory_grows_with_the_file_and_not_with_the_ids(tmp_path):
    (tmp_path / "small.csv").write_text("source,target\n1,2\n")
    ends = np.random.default_rng(0).integers(0, 2**62, size=EDGES).tolist()
    rows = "".join(f"{a},{b}\n" for a, b in zip(ends, ends[1:] + ends[:1], strict=True))
    big = tmp_path / "big.csv"
    big.write_text("source,target\n" + rows)
    code, out = Forked(READ, tmp_path / "small.csv", big).wait()
    assert code == 0, out
    nodes, edges, megabytes = map(float, out.split())
    assert (nodes, edges) == (EDGES, 2 * EDGES)
    assert megabytes * 2**20 < 20 * big.stat().st_size
