"""Ten more real graphs, for choosing recipes: the paper's graphs stay a test.

One ``development/NAME.npz`` each below the data root: ``edge_index`` (2 x E), features as dense ``x`` or as
CSR in ``x_data``, ``x_indices``, ``x_indptr``, ``x_shape``, labels ``y``. They are not downloaded.
"""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from nodejepa.data.dataset import Dataset
from nodejepa.errors import Advice, DataError, Setting
from nodejepa.graph import Graph


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
            if "x" in archive.files:
                features = archive["x"].astype(np.float32)
            else:
                parts = tuple(archive[f"x_{part}"] for part in ("data", "indices", "indptr"))
                features = sp.csr_array(parts, shape=tuple(int(n) for n in archive["x_shape"]))
                features.check_format(full_check=True)  # an index out of range would read stray memory
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
    except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(
            f"the file cannot be read: {error}", where=str(path), fix="It is damaged or in another layout."
        ) from error
