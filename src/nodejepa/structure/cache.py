"""What was computed from a graph's structure, kept on disk: ``<cache>/structure/<structure hash>/<key>.npy``.

A file is a plain npy array followed by the SHA-256 of its bytes. Whatever does not read back as exactly the
expected array (cut off, overwritten, of another shape) is computed again and replaced. A cache that cannot be
written costs time, never a result.
"""

from __future__ import annotations

import hashlib
import io
import warnings
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
_DIGEST_BYTES = hashlib.sha256().digest_size


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
    stored = _read(path, (graph.num_nodes, *columns), dtype)
    if stored is not None:
        return stored
    array = compute()
    _write(path, array)
    return array


def cache_file(graph: RowGraph, key: str) -> Path:
    """Where the array of this graph and key is kept."""
    return cache_root() / "structure" / graph.structure_hash / f"{key}-v{ALGORITHM_VERSION}.npy"


def _read(path: Path, shape: tuple[int, ...], dtype: type[_Scalar]) -> npt.NDArray[_Scalar] | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    payload, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    if hashlib.sha256(payload).digest() != digest:
        return None
    try:
        array = np.load(io.BytesIO(payload), allow_pickle=False)
    except (ValueError, OSError, EOFError):
        return None
    if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
        return None
    return array


def _write(path: Path, array: npt.NDArray[_Scalar]) -> None:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    payload = buffer.getvalue()
    try:
        with atomic_path(path) as temporary:
            temporary.write_bytes(payload + hashlib.sha256(payload).digest())
    except NodeJEPAError as error:
        warnings.warn(
            f"{path.stem} could not be kept in the cache and will be computed again next time: "
            f"{error.what} ({path}). "
            "Set NODEJEPA_CACHE to a folder that can be written.",
            stacklevel=4,
        )
