"""Graphs in npz files: the four of gnn-benchmark (Shchur et al. 2018), and ten more for choosing recipes.

The four are Amazon co-purchases and co-authorships: two CSR matrices (``adj_*`` and ``attr_*``: ``data``,
``indices``, ``indptr``, ``shape``) and ``labels``. As all common loaders do, edges lose direction, weight and
self-loops, and features become binary (the Coauthor files count words). Everything stays sparse: Physics
takes 14 MB instead of 1.2 GB.

The ten are ``development/NAME.npz`` below the data root: ``edge_index`` (2 x E), features as dense ``x`` or
as CSR in ``x_*``, labels ``y``. They are not downloaded: the paper's graphs stay a test.
"""

import hashlib
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nodejepa.data.dataset import Dataset
from nodejepa.data.download import RemoteFile, ensure_files
from nodejepa.errors import Advice, DataError, Setting
from nodejepa.graph import Graph
from nodejepa.io.stored_size import array_bytes
from nodejepa.memory import Room

_UNREADABLE = (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)
_SOURCE = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz/"
GNN_BENCHMARK_PATHS = {
    "computers": "Amazon/Computers/raw/amazon_electronics_computers.npz",
    "photo": "Amazon/Photo/raw/amazon_electronics_photo.npz",
    "cs": "Coauthor/CS/raw/ms_academic_cs.npz",
    "physics": "Coauthor/Physics/raw/ms_academic_phy.npz",
}
# of files that hold the published arrays; the publisher names none
_KNOWN_SHA256 = {
    "computers": "e3a78127c122ce4a6a1bd6effb2112ec2b0ad1f795f5bd98bee206772777ca5e",
    "photo": "2b8d158fa1483bca508de5025cf31c17cf15e63600e294c547e6dc87f3189fe0",
    "cs": "aed111d371ab199003ed95381b77bfc4597ebb8561f93d030efb3f44a513ed3c",
    "physics": "29cc4246263e362ccbddf04c31031a4b09fa91a1ee47786491023b0400f8506c",
}


def load_gnn_benchmark(name: str, root: Path) -> Dataset:
    """The graph ``name`` from below ``root``, downloaded if it is not there."""
    path = GNN_BENCHMARK_PATHS[name]
    ensure_files(root, [RemoteFile(path, _SOURCE + path.rsplit("/", 1)[-1])])
    dataset = read_gnn_benchmark(root / path, name)
    with (root / path).open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != _KNOWN_SHA256[name]:
        warnings.warn(
            f"{root / path} has the SHA-256 {found}, which we do not know: only the numbers of its nodes, "
            "edges, features and classes are checked",
            stacklevel=2,
        )
    return dataset


def read_gnn_benchmark(path: Path, name: str) -> Dataset:
    """Read one file in the gnn-benchmark layout; pickled arrays in it are refused."""
    try:
        Room.of().require(3 * array_bytes(path), "reading the file", str(path))
        # opened here: np.load forgets to close a file that turns out to be broken
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            links = _csr(archive, "adj").tocoo()
            words = _csr(archive, "attr")
            labels = archive["labels"]
            class_names = _class_names(archive)
        words.eliminate_zeros()
        words.data = np.ones(words.nnz, dtype=np.float32)
        present = links.data != 0
        graph = Graph.from_edges(
            links.row[present], links.col[present], features=words, num_nodes=links.shape[0]
        )
        return Dataset(name, graph, labels, class_names)
    except _UNREADABLE as error:
        raise DataError(
            f"the file cannot be read: {error}",
            where=str(path),
            fix="It is damaged or in another layout: delete it to have it downloaded again, or replace it.",
        ) from error


def _csr(archive: np.lib.npyio.NpzFile, prefix: str) -> sp.csr_array:
    data, indices, indptr, shape = (archive[f"{prefix}_{k}"] for k in ("data", "indices", "indptr", "shape"))
    matrix = sp.csr_array((data, indices, indptr), shape=tuple(int(n) for n in shape))
    matrix.check_format(full_check=True)  # an index out of range would otherwise be read from stray memory
    return matrix


def _class_names(archive: np.lib.npyio.NpzFile) -> tuple[str, ...] | None:
    if "class_names" not in archive.files:
        return None
    try:
        names: npt.NDArray[np.str_] = archive["class_names"]
    except ValueError:  # stored as pickled objects: decoration, not worth unpickling
        return None
    return tuple(str(name) for name in names)


def development_path(name: str) -> str:
    """Where the file of a graph is, below the data root."""
    return f"development/{name}.npz"


def load_development(name: str, root: Path) -> Dataset:
    """The graph ``name`` from below ``root``; pickled arrays in its file are refused."""
    path = root / development_path(name)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            source, target = archive["edge_index"]
            labels = archive["y"]
            features = archive["x"] if "x" in archive.files else _csr(archive, "x")
            features = features.astype(np.float32)
        graph = Graph.from_edges(source, target, features=features, num_nodes=len(labels))
        return Dataset(name, graph, labels)
    except FileNotFoundError:
        raise DataError(
            "the file is missing, and cannot be downloaded",
            where=str(path),
            fix=Advice(
                "Put it there, or name the folder above it with ", Setting("root"), " or NODEJEPA_DATA."
            ),
        ) from None
    except _UNREADABLE as error:
        raise DataError(
            f"the file cannot be read: {error}", where=str(path), fix="It is damaged or in another layout."
        ) from error
