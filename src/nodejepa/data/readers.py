"""The named graphs, each read from its publisher's own files.

**npz**: the four of gnn-benchmark (Shchur et al. 2018) are two CSR matrices (``adj_*`` and ``attr_*``:
``data``, ``indices``, ``indptr``, ``shape``) and ``labels``. As all common loaders do, edges lose
direction, weight and self-loops, and features become binary (the Coauthor files count words). Everything
stays sparse: Physics takes 14 MB instead of 1.2 GB. Ten more for choosing recipes are
``development/NAME.npz`` below the data root: ``edge_index`` (2 x E), features as dense ``x`` or as CSR in
``x_*``, labels ``y``. They are not downloaded: the paper's graphs stay a test.

**ogbn-arxiv** (Hu et al. 2020), with its official split by year: the raw files of OGB are gzipped CSV without
headers. Citations lose their direction.

**Cora** in the Planetoid layout (Yang et al. 2016), with its public 140/500/1000 split: the files are
pickles of Python 2, and no unpickler is safe with bytes of unknown origin. So the SHA-256 of every file is
checked on every load, before a byte of it is parsed. What passes is read by an unpickler that knows arrays,
CSR matrices, dicts and lists, nothing else.

**digits** are embedded in scikit-learn.
"""

import hashlib
import io
import math
import pickle
import warnings
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.sparse as sp
from pyarrow import csv

from nodejepa.data.dataset import Dataset
from nodejepa.data.download import RemoteFile, ensure_files
from nodejepa.data.splits import Split
from nodejepa.errors import DataError
from nodejepa.graph import Graph
from nodejepa.machine import Room


def _damaged(path: Path, why: str) -> DataError:
    return DataError(
        f"the file cannot be read: {why}",
        where=str(path),
        fix="It is damaged or in another layout: delete it to have it downloaded again, or replace it.",
    )


# ------------------------------------------------------------------ npz

_UNREADABLE = (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)
_LONGEST_HEADER = 10_000  # of an array
_NPZ_SOURCE = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz/"
GNN_BENCHMARK_PATHS = {
    "computers": "Amazon/Computers/raw/amazon_electronics_computers.npz",
    "photo": "Amazon/Photo/raw/amazon_electronics_photo.npz",
    "cs": "Coauthor/CS/raw/ms_academic_cs.npz",
    "physics": "Coauthor/Physics/raw/ms_academic_phy.npz",
}


def load_gnn_benchmark(name: str, root: Path) -> Dataset:
    """The graph ``name`` from below ``root``, downloaded if it is not there."""
    path = GNN_BENCHMARK_PATHS[name]
    ensure_files(root, [RemoteFile(path, _NPZ_SOURCE + path.rsplit("/", 1)[-1])])
    return read_gnn_benchmark(root / path, name)


def read_gnn_benchmark(path: Path, name: str) -> Dataset:
    """Read one file in the gnn-benchmark layout."""
    with _arrays(path) as archive:
        links, words = _csr(archive, "adj").tocoo(), _csr(archive, "attr")
        words.eliminate_zeros()
        words.data = np.ones(words.nnz, dtype=np.float32)
        present = links.data != 0
        graph = Graph.from_edges(
            links.row[present], links.col[present], features=words, num_nodes=links.shape[0]
        )
        return Dataset(name, graph, archive["labels"], tuple(map(str, archive["class_names"])))


@contextmanager
def _arrays(path: Path) -> Iterator[Any]:
    """The arrays in an npz file; pickled ones are refused, and so is what is damaged or too large."""
    try:
        Room.of().require(3 * array_bytes(path), "reading the file", str(path))
        # opened here: np.load forgets to close a file that turns out to be broken
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            yield archive
    except _UNREADABLE as error:
        raise _damaged(path, str(error)) from error


def array_bytes(path: Path) -> int:
    """Bytes of the arrays in an npz file; one whose header promises more than is there is refused.

    NumPy makes room for an array by its header alone.
    """
    total = 0
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            with archive.open(entry) as array:
                total += max(entry.file_size, _promised(array, entry.file_size))
    return total


def _promised(file: IO[bytes], size: int) -> int:
    if file.read(6) != b"\x93NUMPY":
        return size  # no array: NumPy hands its bytes over as they are
    version = tuple(file.read(2))
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"an array in version {version} of the format")
    shape, _, dtype = readers[version](file, max_header_size=_LONGEST_HEADER)
    promised = math.prod(shape) * dtype.itemsize
    if promised > size and not dtype.hasobject:
        raise ValueError(f"the header promises an array of {promised} bytes, {size} are there")
    return promised


def _csr(archive: Any, prefix: str) -> sp.csr_array:
    data, indices, indptr, shape = (archive[f"{prefix}_{k}"] for k in ("data", "indices", "indptr", "shape"))
    matrix = sp.csr_array((data, indices, indptr), shape=tuple(int(n) for n in shape))
    matrix.check_format(full_check=True)  # an index out of range would otherwise be read from stray memory
    return matrix


def development_path(name: str) -> str:
    """Where the file of a graph is, below the data root."""
    return f"development/{name}.npz"


def load_development(name: str, root: Path) -> Dataset:
    """The graph ``name`` from below ``root``."""
    path = root / development_path(name)
    if not path.is_file():
        raise DataError(
            "the file is missing, and cannot be downloaded",
            where=str(path),
            fix="Put it there, or name the folder above it with root=... or NODEJEPA_DATA.",
        )
    with _arrays(path) as archive:
        features = archive["x"] if "x" in archive.files else _csr(archive, "x")
        source, target = archive["edge_index"]
        labels = archive["y"]
        graph = Graph.from_edges(source, target, features=features.astype(np.float32), num_nodes=len(labels))
        return Dataset(name, graph, labels)


# ------------------------------------------------------------------ ogbn-arxiv

_ARXIV_FOLDER = "ogbn_arxiv"
_ARXIV_MEMBERS = (
    "raw/edge.csv.gz",
    "raw/node-feat.csv.gz",
    "raw/node-label.csv.gz",
    "split/time/train.csv.gz",
    "split/time/valid.csv.gz",
    "split/time/test.csv.gz",
)
# release v1 of May 2020, 83,058,288 bytes, as recorded by several public repositories that fetched it
_ARXIV_URL = "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"
_ARXIV_SHA256 = "49f85c801589ecdcc52cfaca99693aaea7b8af16a9ac3f41dd85a5f3193fe276"
ARXIV_FILES = tuple(
    RemoteFile(f"{_ARXIV_FOLDER}/{member}", _ARXIV_URL, _ARXIV_SHA256, f"arxiv/{member}")
    for member in _ARXIV_MEMBERS
)


def load_arxiv(root: Path) -> Dataset:
    """ogbn-arxiv from below ``root``, downloaded if it is not there."""
    ensure_files(root, ARXIV_FILES)
    return read_ogb(root / _ARXIV_FOLDER, "arxiv")


def read_ogb(folder: Path, name: str) -> Dataset:
    """Read a node-classification graph in OGB's raw layout: ``raw/*.csv.gz`` and ``split/time/*.csv.gz``."""
    raw, time = folder / "raw", folder / "split" / "time"
    edges = _numbers(raw / "edge.csv.gz", np.int64, 2)
    features = _numbers(raw / "node-feat.csv.gz", np.float32)
    labels = _numbers(raw / "node-label.csv.gz", np.int64, 1)[:, 0]
    names = ("train", "valid", "test")
    parts = {part: _numbers(time / f"{part}.csv.gz", np.int64, 1)[:, 0] for part in names}
    for part, members in parts.items():
        if members.max(initial=0) >= labels.size:
            raise _damaged(time / f"{part}.csv.gz", f"node {members.max()} does not exist")
    graph = Graph.from_edges(edges[:, 0], edges[:, 1], features=features)
    split = Split("official", 0, train=parts["train"], val=parts["valid"], test=parts["test"])
    return Dataset(name, graph, labels, None, split, "official")


def _numbers(path: Path, kind: type[Any], columns: int | None = None) -> npt.NDArray[Any]:
    try:
        table = csv.read_csv(path, read_options=csv.ReadOptions(autogenerate_column_names=True))
    except (OSError, pa.ArrowException) as error:
        raise _damaged(path, str(error)) from error
    if columns not in (None, table.num_columns):
        raise _damaged(path, f"{table.num_columns} columns instead of {columns}")
    out, whole = np.empty((table.num_rows, table.num_columns), dtype=kind), kind is np.int64
    for column, values in enumerate(table.columns):
        numeric = pa.types.is_integer(values.type) or (pa.types.is_floating(values.type) and not whole)
        if not numeric or values.null_count:
            wanted = "whole numbers" if whole else "numbers"
            raise _damaged(path, f"column {column} does not hold {wanted} throughout")
        out[:, column] = values.to_numpy()
    return out


# ------------------------------------------------------------------ Cora

_CORA_SOURCE = "https://github.com/kimiyoung/planetoid/raw/master/data/"
_CORA_SHA256 = {
    "x": "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
    "y": "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
    "tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
    "ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
    "allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
    "ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
    "graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
    "test.index": "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
}
CORA_FILES = tuple(
    RemoteFile(f"Planetoid/Cora/raw/ind.cora.{part}", f"{_CORA_SOURCE}ind.cora.{part}", digest)
    for part, digest in _CORA_SHA256.items()
)
_CORA_CLASSES = """
Theory Reinforcement_Learning Genetic_Algorithms Neural_Networks Probabilistic_Methods
Case_Based Rule_Learning
"""
_VALIDATION_NODES = 500

# numpy's own array rebuilder, asked of an array because its module's name differs between versions
_rebuild_array = np.zeros(0).__reduce__()[0]
_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _rebuild_array,
    ("numpy._core.multiarray", "_reconstruct"): _rebuild_array,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("scipy.sparse.csr", "csr_matrix"): sp.csr_matrix,
    ("scipy.sparse._csr", "csr_matrix"): sp.csr_matrix,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
}


class _ArrayUnpickler(pickle.Unpickler):
    """Knows arrays, CSR matrices, dicts and lists, nothing else; digests are checked before it is asked."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        try:
            return _ALLOWED[module_name, global_name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module_name}.{global_name}") from None


def load_cora(root: Path) -> Dataset:
    """Cora from below ``root``, downloaded if it is not there.

    ``allx`` and ``ally`` are the first nodes in order; line i of ``tx`` and ``ty`` belongs to the node that
    line i of ``test.index`` names, and these are the last nodes. Training nodes are the first ones (as many
    as ``y`` has), the next 500 validate.
    """
    ensure_files(root, CORA_FILES)
    content = {file.path.partition("ind.cora.")[2]: _known(root / file.path, file) for file in CORA_FILES}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy and SciPy remark on the age of Python 2's arrays
        read: dict[str, Any] = {
            part: _ArrayUnpickler(io.BytesIO(stored), encoding="latin1").load()
            for part, stored in content.items()
            if part != "test.index"
        }
    words = sp.csr_array(sp.vstack([read["allx"], read["tx"]]))
    one_hot = np.concatenate([read["ally"], read["ty"]])
    tested = np.array(content["test.index"].decode("ascii").split(), dtype=np.int64)
    first, size = len(read["ally"]), len(one_hot)
    row_of_node = np.arange(size)
    row_of_node[tested] = np.arange(first, size)
    source = np.repeat(np.array(list(read["graph"])), [len(row) for row in read["graph"].values()])
    target = np.concatenate([np.array(row, dtype=np.int64) for row in read["graph"].values()])
    graph = Graph.from_edges(source, target, features=words[row_of_node], num_nodes=size)
    trained = len(read["y"])
    split = Split("official", 0, np.arange(trained), np.arange(trained, trained + _VALIDATION_NODES), tested)
    labels = one_hot[row_of_node].argmax(axis=1)
    return Dataset("cora", graph, labels, tuple(_CORA_CLASSES.split()), split, "official")


def _known(path: Path, file: RemoteFile) -> bytes:
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise _damaged(
            path, f"it has the SHA-256 {found}, not the known {file.sha256}; nothing of it was parsed"
        )
    return content


# ------------------------------------------------------------------ digits

_DIGITS_NEIGHBOURS = 10


def load_digits_graph() -> Dataset:
    """1,797 images of 8 x 8 pixels (0..1) and the symmetric k-nearest-neighbour graph between them.

    i and j are joined if either is among the other's ten nearest by Euclidean distance. Pixels are
    whole numbers from 0 to 16, so squared distances are exact (and below 2**15), and of equally distant
    images the earlier one counts as nearer: the graph is the same on every machine.
    """
    from sklearn.datasets import load_digits  # takes a second to import: only who asks pays

    images, labels = load_digits(return_X_y=True)
    lengths = np.sum(images * images, axis=1)
    squared_distances = (lengths[:, None] + lengths[None, :] - 2 * images @ images.T).astype(np.int16)
    np.fill_diagonal(squared_distances, np.iinfo(np.int16).max)
    nearest = np.argsort(squared_distances, axis=1, kind="stable")[:, :_DIGITS_NEIGHBOURS]
    source = np.repeat(np.arange(len(images)), _DIGITS_NEIGHBOURS)
    graph = Graph.from_edges(source, nearest.ravel(), features=images / 16)
    return Dataset("digits", graph, labels, class_names=tuple("0123456789"))
