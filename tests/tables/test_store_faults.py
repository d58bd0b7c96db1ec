"""A full disk, a kill, a second writer, flipped bytes: a clear error or the same bits, never half a store."""

from __future__ import annotations

import errno
import json
import os
import signal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.forked import Forked

from nodejepa.errors import ConfigError, DataError, NodeJEPAError
from nodejepa.files import json_digest, output_owned
from nodejepa.methods import LinearJEPA, NodeJEPA, make_method
from nodejepa.tables import StoredGraph
from nodejepa.tables import store as store_module
from nodejepa.tables.prepare import prepare_store

COMMAND = (
    "import sys; from nodejepa.tables.prepare import prepare_store\n"
    "prepare_store(*sys.argv[1:3], out=sys.argv[3])"
)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Edges and nodes of a graph, and the store that an undisturbed process makes of them."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    names = [f"node {i}" for i in range(2000)]
    ends = rng.integers(0, 2000, (2, 9000))
    edges = {"source": [names[i] for i in ends[0]], "target": [names[i] for i in ends[1]]}
    pq.write_table(pa.table(edges), folder / "edges.parquet")
    pq.write_table(
        pa.table({"id": names, "x": rng.normal(size=2000), "y": rng.normal(size=2000)}),
        folder / "nodes.parquet",
    )
    made = (folder / "edges.parquet", folder / "nodes.parquet")
    prepare_store(*made, out=folder / "whole.store")
    return (*made, folder / "whole.store")


def assert_whole(store, like):
    opened = StoredGraph(store)
    opened.verify()
    assert opened.manifest == StoredGraph(like).manifest
    assert sorted(path.name for path in store.iterdir()) == sorted(path.name for path in like.iterdir())


@pytest.mark.parametrize("written", range(8))
def test_a_disk_that_is_full_ends_in_a_clear_error_and_leaves_nothing(tmp_path, files, monkeypatch, written):
    edges, nodes, whole = files
    count = iter(range(10**6))

    def put(file, array, _put=store_module.put):
        if next(count) == written:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        _put(file, array)

    out = tmp_path / "g.store"
    with monkeypatch.context() as patch:
        for module in ("edges", "store", "prepare"):
            patch.setattr(f"nodejepa.tables.{module}.put", put)
        with pytest.raises(NodeJEPAError, match=r"No space left.*free space"):
            prepare_store(edges, nodes, out=out)
    assert not [*tmp_path.iterdir()]
    prepare_store(edges, nodes, out=out)
    assert_whole(out, whole)


@pytest.mark.slow
def test_a_limit_on_the_size_of_files_is_a_clear_error(tmp_path, files):
    out = tmp_path / "g.store"
    limited = (
        "import resource, signal, sys\nfrom nodejepa.__main__ import main\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\nmain()"
    )
    arguments = ("prepare", "--edges", files[0], "--nodes", files[1], "--out", out)
    code, err = Forked(limited, *arguments).wait()
    assert code == 2, err
    assert "File too large" in err
    assert not out.exists()


@pytest.mark.slow
@pytest.mark.parametrize("step", ["number_files", "write_adjacency", "_write_features", "finalise"])
def test_a_kill_in_any_step_leaves_nothing_that_counts_and_ends_in_the_same_bits(tmp_path, files, step):
    out = tmp_path / "g.store"
    dying = (
        "import os, signal, sys\nfrom nodejepa.tables import prepare as p\n"
        f"whole = p.{step}\n"
        "def dies(*a, **b):\n    whole(*a, **b)\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        f"p.{step} = dies\np.prepare_store(*sys.argv[1:3], out=sys.argv[3])"
    )
    code, err = Forked(dying, *files[:2], out).wait()
    assert code == -signal.SIGKILL, err
    assert not out.exists()
    prepare_store(*files[:2], out=out)
    assert_whole(out, files[2])
    assert not [path for path in tmp_path.iterdir() if path != out]


@pytest.mark.slow
def test_two_writers_do_not_meet(tmp_path, files):
    out = tmp_path / "g.store"
    with output_owned(out), pytest.raises(ConfigError, match="another process is writing"):
        prepare_store(*files[:2], out=out)
    racing = [Forked(COMMAND, *files[:2], out) for _ in range(2)]
    codes, errors = zip(*(process.wait() for process in racing), strict=True)
    assert 0 in codes, errors
    for code, error in zip(codes, errors, strict=True):
        assert code == 0 or "another process is writing" in error or "exists" in error, error
    assert_whole(out, files[2])


@pytest.fixture
def copied(tmp_path, files):
    """A store of its own to damage."""
    folder = tmp_path / "c.store"
    folder.mkdir()
    for path in files[2].iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


@pytest.mark.parametrize(
    "name", ["indptr.i64", "indices.i32", "features.f32", "id_ends.i64", "id_letters.u8"]
)
@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
def test_a_flipped_byte_is_found(copied, name, place):
    content = bytearray((copied / name).read_bytes())
    content[int(place * (len(content) - 1))] ^= 0x40
    (copied / name).write_bytes(content)
    with pytest.raises(DataError, match="damaged"):
        StoredGraph(copied).verify()


@pytest.mark.parametrize("method", ["linear-jepa", "raw", "sgc", "random-gcn"])
@pytest.mark.parametrize("name", ["indices.i32", "features.f32"])
def test_nothing_is_made_of_bytes_that_have_changed(files, copied, method, name):
    fitted = make_method(method).fit(StoredGraph(files[2]))
    content = bytearray((copied / name).read_bytes())
    content[-4] ^= 1  # another neighbour, or another number: nothing that looks wrong
    (copied / name).write_bytes(content)
    with pytest.raises(DataError, match="bytes have changed"):
        fitted.transform(StoredGraph(copied))
    with pytest.raises(DataError, match="bytes have changed"):
        LinearJEPA().fit(StoredGraph(copied))
    with pytest.raises(DataError, match="bytes have changed"):
        NodeJEPA(preset="paper", epochs=1, parts=4).prepare(StoredGraph(copied))


def test_positions_outside_of_the_graph_are_never_followed(copied):
    indices = np.fromfile(copied / "indices.i32", dtype=np.int32)
    for wrong in (-1, 2000):
        indices[5] = wrong
        indices.tofile(copied / "indices.i32")
        with pytest.raises(DataError, match="leads to no node"):
            StoredGraph(copied).rows(0, 2000)


def test_ids_that_overlap_or_are_no_text_are_refused(copied):
    ends = np.fromfile(copied / "id_ends.i64", dtype=np.int64)
    ends[7] = 10**12
    ends.tofile(copied / "id_ends.i64")
    with pytest.raises(DataError, match="ids do not end"):
        StoredGraph(copied).ids(0, 100)


@pytest.mark.parametrize("name", ["indptr.i64", "indices.i32", "features.f32", "id_ends.i64"])
def test_a_file_that_is_cut_longer_or_gone_is_found_when_the_store_is_opened(copied, name):
    content = (copied / name).read_bytes()
    for other in (content[:-4], content + b"    "):
        (copied / name).write_bytes(other)
        with pytest.raises(DataError, match="are expected"):
            StoredGraph(copied)
    (copied / name).unlink()
    with pytest.raises(DataError, match="damaged"):
        StoredGraph(copied)


@pytest.mark.parametrize(
    "change", [{"nodes": 10**15}, {"entries": -1}, {"directed": 0}, {"id_kind": "x"}, {"files": 3}]
)
def test_a_manifest_that_says_something_else_is_refused(copied, change):
    path = copied / "manifest.json"
    content = json.loads(path.read_text()) | change
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match="digest does not match"):
        StoredGraph(copied)
    content.pop("sha256")
    rest = {key: value for key, value in content.items() if key not in ("format", "version")}
    path.write_text(json.dumps(content | {"sha256": json_digest(rest)}))
    with pytest.raises(DataError, match="damaged"):
        StoredGraph(copied)


def test_a_folder_that_is_no_store_is_said_to_be_none(tmp_path):
    with pytest.raises(DataError, match="this is no graph store"):
        StoredGraph(tmp_path)
    with pytest.raises(DataError, match="no such graph store"):
        StoredGraph(Path("nowhere.store"))
