"""Cora in the Planetoid layout (Yang et al. 2016), with its public 140/500/1000 split.

The files are pickles of Python 2, and no unpickler is safe with bytes of unknown origin: even an array's
type can carry a stray pointer. So the SHA-256 of every file is checked on every load, before a byte of it is
parsed. What passes is read by an unpickler that knows arrays, CSR matrices, dicts and lists, nothing else.
"""

import hashlib
import io
import pickle
import warnings
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from nodejepa.data.dataset import Dataset
from nodejepa.data.download import RemoteFile, ensure_files
from nodejepa.data.splits import Split
from nodejepa.errors import DataError
from nodejepa.graph import Graph

_SOURCE = "https://github.com/kimiyoung/planetoid/raw/master/data/"
_FOLDER = "Planetoid/Cora/raw"
_SHA256 = {
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
    RemoteFile(f"{_FOLDER}/ind.cora.{part}", f"{_SOURCE}ind.cora.{part}", digest)
    for part, digest in _SHA256.items()
)
_CORA_CLASSES = """
Theory Reinforcement_Learning Genetic_Algorithms Neural_Networks Probabilistic_Methods
Case_Based Rule_Learning
"""
_VALIDATION_NODES = 500
_REPLACE = "Delete the file to have it downloaded again, or replace it."

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
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        try:
            return _ALLOWED[module_name, global_name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module_name}.{global_name}") from None


def load_cora(root: Path) -> Dataset:
    """Cora from below ``root``, downloaded if it is not there."""
    ensure_files(root, CORA_FILES)
    return read_planetoid(root / _FOLDER, "cora", tuple(_CORA_CLASSES.split()), known=_SHA256)


def read_planetoid(
    folder: Path, name: str, class_names: tuple[str, ...] | None = None, *, known: Mapping[str, str]
) -> Dataset:
    """Read ``ind.<name>.*``; ``known`` has the SHA-256 of each part, and any other content is refused.

    ``allx`` and ``ally`` are the first nodes in order; line i of ``tx`` and ``ty`` belongs to the node that
    line i of ``test.index`` names, and these are the last nodes. Training nodes are the first ones (as many
    as ``y`` has), the next 500 validate.
    """
    content = {part: _known(folder / f"ind.{name}.{part}", sha256) for part, sha256 in known.items()}
    read = {part: _unpickle(stored) for part, stored in content.items() if part != "test.index"}
    words = sp.csr_array(sp.vstack([read["allx"], read["tx"]]))
    one_hot = np.concatenate([read["ally"], read["ty"]])
    tested = np.array(content["test.index"].decode("ascii").split(), dtype=np.int64)
    first, size = len(read["ally"]), len(one_hot)
    row_of_node = np.arange(size)
    row_of_node[tested] = np.arange(first, size)
    neighbours: Mapping[int, list[int]] = read["graph"]
    source = np.repeat(np.array(list(neighbours)), [len(row) for row in neighbours.values()])
    target = np.concatenate([np.array(row, dtype=np.int64) for row in neighbours.values()])
    graph = Graph.from_edges(source, target, features=words[row_of_node], num_nodes=size)
    trained = len(read["y"])
    split = Split("official", 0, np.arange(trained), np.arange(trained, trained + _VALIDATION_NODES), tested)
    return Dataset(name, graph, one_hot[row_of_node].argmax(axis=1), class_names, split, "official")


def _known(path: Path, sha256: str) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"the file cannot be read: {error}", where=str(path), fix=_REPLACE) from error
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise DataError(
            f"the file has the SHA-256 {found}, not the known {sha256}",
            where=str(path),
            fix=f"Nothing of it was parsed. {_REPLACE}",
        )
    return content


def _unpickle(content: bytes) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy remarks on the age of Python 2's arrays
        return _ArrayUnpickler(io.BytesIO(content), encoding="latin1").load()
