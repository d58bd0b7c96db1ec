"""File readers: gnn-benchmark npz, Planetoid pickles, OGB CSV; damaged and hostile files are refused."""

import gzip
import hashlib
import io
import pickle
from collections import defaultdict

import numpy as np
import pytest
import scipy.sparse as sp

from nodejepa.data.catalogue import CATALOGUE, load_dataset
from nodejepa.data.download import RemoteFile
from nodejepa.data.readers import _ArrayUnpickler, load_cora, read_gnn_benchmark, read_ogb
from nodejepa.errors import DataError, NodeJEPAError

# ---------------------------------------------------------------- gnn-benchmark


def npz_arrays(**changes):
    links = sp.csr_array(np.array([[1, 3, 0], [0, 0, 1], [0, 0, 0]], dtype=np.float32))
    words = sp.csr_array(np.array([[2, 0], [0, 0], [1, 5]], dtype=np.float32))
    arrays = {"labels": np.array([0, 1, 1]), "class_names": np.array(["a", "b"])}
    for prefix, matrix in (("adj", links), ("attr", words)):
        arrays |= {f"{prefix}_{k}": getattr(matrix, k) for k in ("data", "indices", "indptr")}
        arrays[f"{prefix}_shape"] = np.array(matrix.shape)
    return {key: value for key, value in (arrays | changes).items() if value is not None}


def test_npz_is_symmetrised_binarised_and_loses_self_loops(tmp_path):
    np.savez(tmp_path / "a.npz", **npz_arrays())
    dataset = read_gnn_benchmark(tmp_path / "a.npz", "a")
    assert dataset.graph.adjacency.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert dataset.graph.features.toarray().tolist() == [[1, 0], [0, 0], [1, 1]]
    assert dataset.labels.tolist() == [0, 1, 1]
    assert dataset.class_names == ("a", "b")


@pytest.mark.parametrize(
    "changes",
    [
        {"labels": None},
        {"attr_indptr": None},
        {"labels": np.array([0, 1])},
        {"labels": np.array([0.5, 1, 1])},
        {"labels": np.array([{}, {}, {}])},
        {"adj_indices": np.array([0, 1, 99])},
        {"adj_indices": np.array([0, -5, 1])},
        {"attr_indptr": np.array([0, 1, 1, 77])},
        {"attr_shape": np.array([3])},
        {"attr_data": np.array(["x", "y", "z"])},
        {"class_names": np.array(["a", None], dtype=object)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_npz_in_another_layout_is_refused(tmp_path, changes):
    np.savez(tmp_path / "a.npz", **npz_arrays(**changes))
    with pytest.raises(NodeJEPAError):
        read_gnn_benchmark(tmp_path / "a.npz", "a")


def test_npz_cut_short_or_garbled_names_the_file_and_the_cure(tmp_path):
    np.savez_compressed(tmp_path / "whole.npz", **npz_arrays())
    whole = (tmp_path / "whole.npz").read_bytes()
    path = tmp_path / "damaged.npz"
    damaged = [whole[: len(whole) * tenth // 10] for tenth in range(10)]
    damaged += [b"<html>404</html>", whole[:200] + bytes(60) + whole[260:]]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"damaged\.npz.*delete it"):
            read_gnn_benchmark(path, "a")


# ---------------------------------------------------------------- Planetoid


def write_planetoid(folder):
    """510 nodes: 4 training, 500 validation, 2 spare, 4 test nodes whose lines are out of order."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 510)
    words = sp.csr_matrix((rng.random((510, 6)) < 0.4).astype(np.float32))
    tested = np.array([508, 506, 509, 507])
    one_hot = np.eye(3, dtype=np.int32)[labels]
    neighbours = defaultdict(list, {i: [(i + 1) % 510, i] for i in range(510)})
    parts = {
        "x": words[:4],
        "y": one_hot[:4],
        "allx": words[:506],
        "ally": one_hot[:506],
        "tx": words[tested],
        "ty": one_hot[tested],
        "graph": neighbours,
    }
    for part, value in parts.items():
        (folder / f"ind.cora.{part}").write_bytes(pickle.dumps(value, protocol=3))
    (folder / "ind.cora.test.index").write_text("\n".join(map(str, tested)) + "\n")
    return labels, words


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A data root whose files are taken for the published ones."""
    folder = (tmp_path / CATALOGUE["cora"].files[0]).parent
    folder.mkdir(parents=True)
    labels, words = write_planetoid(folder)
    known = [
        RemoteFile(str(path.relative_to(tmp_path)), "", hashlib.sha256(path.read_bytes()).hexdigest())
        for path in folder.iterdir()
    ]
    monkeypatch.setattr("nodejepa.data.readers.CORA_FILES", known)
    return folder, labels, words


def test_planetoid_puts_test_lines_where_the_index_says(tmp_path, toy):
    _, labels, words = toy
    dataset = load_cora(tmp_path)
    assert np.array_equal(dataset.labels, labels)
    assert np.array_equal(dataset.graph.features.toarray(), words.toarray())
    assert dataset.graph.num_edges == 2 * 510
    split = dataset.official_split
    assert split.train.tolist() == [0, 1, 2, 3]
    assert split.val.tolist() == list(range(4, 504))
    assert split.test.tolist() == [506, 507, 508, 509]


class Hostile:
    def __init__(self, proof):
        self.proof = proof

    def __reduce__(self):
        return eval, (f"open({self.proof!r}, 'w')",)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_hostile_pickle_is_refused_and_nothing_runs(tmp_path, protocol):
    proof = tmp_path / "proof"
    stored = pickle.dumps(Hostile(str(proof)), protocol=protocol)
    with pytest.raises(pickle.UnpicklingError, match="asks for"):
        _ArrayUnpickler(io.BytesIO(stored)).load()
    assert not proof.exists()


@pytest.mark.parametrize("part", ["y", "allx", "graph", "test.index"])
def test_no_byte_of_an_unknown_planetoid_file_is_parsed(monkeypatch, tmp_path, toy, part):
    """A pickle can run anything: the digest is looked at first, on every load."""
    altered = toy[0] / f"ind.cora.{part}"
    altered.write_bytes(altered.read_bytes() + b" ")
    monkeypatch.setattr("nodejepa.data.readers._ArrayUnpickler", lambda *_, **__: pytest.fail("parsed"))
    with pytest.raises(DataError, match=rf"SHA-256.*nothing of it was parsed.*ind\.cora\.{part}"):
        load_cora(tmp_path)


def test_cora_is_known_by_its_digests(tmp_path):
    folder = (tmp_path / CATALOGUE["cora"].files[0]).parent
    folder.mkdir(parents=True)
    write_planetoid(folder)
    with pytest.raises(DataError, match="not the known 23cfa55d"):
        load_dataset("cora", tmp_path)


# ---------------------------------------------------------------- OGB

OGB_FILES = {
    "raw/edge": "0,1\n1,0\n1,2\n4,3\n2,2\n",
    "raw/node-feat": "0.5,-1e-3\n1,2\n3,4\n5,6\n7,8.25\n",
    "raw/node-label": "0\n1\n2\n1\n0\n",
    "split/time/train": "3\n0\n",
    "split/time/valid": "1\n",
    "split/time/test": "2\n4\n",
}


def write_ogb(folder, **changes):
    for name, text in (OGB_FILES | {key.replace("__", "/"): value for key, value in changes.items()}).items():
        path = folder / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else gzip.compress(text.encode()))


def test_ogb_layout_is_read(tmp_path):
    write_ogb(tmp_path)
    dataset = read_ogb(tmp_path, "toy")
    assert dataset.graph.num_edges == 6
    source, target, _ = dataset.graph.edge_arrays()
    assert list(zip(source.tolist(), target.tolist(), strict=True)) == [
        (0, 1), (1, 0), (1, 2), (2, 1), (3, 4), (4, 3)
    ]  # fmt: skip
    expected = np.array([[0.5, -1e-3], [1, 2], [3, 4], [5, 6], [7, 8.25]], dtype=np.float32)
    assert np.array_equal(dataset.graph.features, expected)
    assert dataset.graph.features.dtype == np.float32
    assert dataset.labels.tolist() == [0, 1, 2, 1, 0]
    split = dataset.official_split
    assert [part.tolist() for part in (split.train, split.val, split.test)] == [[0, 3], [1], [2, 4]]
    assert dataset.split(seed=7) is split


@pytest.mark.parametrize(
    "changes",
    [
        {"raw__edge": "0,1,2\n"},
        {"raw__edge": "a,b\n" * 5},
        {"raw__edge": "0,9\n" * 5},
        {"raw__edge": ""},
        {"raw__edge": b"not gzip"},
        {"raw__edge": gzip.compress(OGB_FILES["raw/edge"].encode())[:-12]},
        {"raw__node-feat": "1,2\n3,\n5,6\n7,8\n9,9\n"},
        {"raw__node-feat": "1,2\n3,nan\n5,6\n7,8\n9,9\n"},
        {"raw__node-feat": "1,2\n3,inf\n5,6\n7,8\n9,9\n"},
        {"raw__node-label": "0\n1.5\n2\n1\n0\n"},
        {"raw__node-label": "0\n1\n"},
        {"split__time__train": "77\n"},
        {"split__time__train": "-1\n"},
        {"split__time__valid": "0\n"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_ogb_files_that_do_not_fit_are_refused(tmp_path, changes):
    write_ogb(tmp_path, **changes)
    with pytest.raises(NodeJEPAError):
        read_ogb(tmp_path, "toy")


def test_missing_ogb_file_is_named(tmp_path):
    write_ogb(tmp_path)
    (tmp_path / "raw" / "node-label.csv.gz").unlink()
    with pytest.raises(DataError, match=r"node-label\.csv\.gz"):
        read_ogb(tmp_path, "toy")
