"""What was computed from a graph's structure, kept on disk: ``<cache>/structure/<structure hash>/<key>.npy``.

Whatever does not read back as an array of the expected shape is computed again and replaced. A cache that
cannot be written costs time, never a result.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from nodejepa.errors import NodeJEPAError
from nodejepa.files import atomic_path, cache_root
from nodejepa.graph import RowGraph

ALGORITHM_VERSION = 1  # raise it whenever an algorithm of this package changes its output

_Scalar = TypeVar("_Scalar", bound=np.generic)


def cached(
    graph: RowGraph,
    key: str,
    compute: Callable[[], npt.NDArray[_Scalar]],
    *columns: int,
    dtype: type[_Scalar] = np.float64,  # type: ignore[assignment]
    keep: bool = True,
) -> npt.NDArray[_Scalar]:
    """The array of this graph and ``key`` from disk, or else computed and, with ``keep``, stored.

    The key, usable as a file name, tells the quantity and every parameter it depends on. An array from disk
    is believed if it has a row for each node, so many ``columns`` and this ``dtype``.
    """
    if not keep:
        return compute()
    path = cache_file(graph, key)
    try:
        with path.open("rb") as file:  # which np.load leaves open where it is damaged
            stored = np.load(file, allow_pickle=False)
        if stored.shape == (graph.num_nodes, *columns) and stored.dtype == dtype:
            return np.asarray(stored)
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile):
        pass  # it is not there, or damaged
    array = compute()
    try:
        with atomic_path(path) as temporary:
            np.save(temporary, array, allow_pickle=False)
    except NodeJEPAError as error:
        warnings.warn(
            f"{key} could not be kept in the cache and will be computed again next time: {error.what} "
            f"({path}). Set NODEJEPA_CACHE to a folder that can be written.",
            stacklevel=3,
        )
    return array


def cache_file(graph: RowGraph, key: str) -> Path:
    """Where the array of this graph and key is kept."""
    return cache_root() / "structure" / graph.structure_hash / f"{key}-v{ALGORITHM_VERSION}.npy"
