"""Candidates for nearest neighbours out of an index (HNSW, Malkov & Yashunin 2020) instead of all pairs.

The index is that of ``usearch``, an extra. It is built and asked by one thread: the same embeddings give the
same candidates. What it finds is scored exactly afterwards: a neighbour may be missed, none is misjudged.
"""

import importlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from nodejepa.errors import EvaluationError
from nodejepa.progress import progress_bar

# A row is linked to this many others, and so many are looked at when it is added or asked for.
_LINKS, _LOOKED_AT = 32, 160
_AT_ONCE = 4096


def index_available() -> bool:
    """Whether ``usearch`` is installed."""
    return find_spec("usearch") is not None


def candidate_rows(
    vectors: Callable[[slice | npt.NDArray[np.int64]], npt.NDArray[np.float64]],
    shape: tuple[int, int],
    queries: npt.NDArray[np.int64],
    count: int,
) -> npt.NDArray[np.int64]:
    """Rows that are probably the nearest to each query, itself among them; ``[queries, count]``.

    ``vectors`` gives some of the rows as vectors whose euclidean distance is the one that counts.
    """
    if not index_available():
        raise EvaluationError(
            "usearch is not installed",
            where="neighbours",
            fix="pip install 'nodejepa[index]', or search exactly.",
        )
    library = importlib.import_module("usearch.index")
    looked_at = max(_LOOKED_AT, 2 * count)
    index: Any = library.Index(
        ndim=shape[1],
        metric="l2sq",
        dtype="f32",
        connectivity=_LINKS,
        expansion_add=looked_at,
        expansion_search=looked_at,
    )
    with progress_bar("Building the index", total=shape[0]) as advance:
        for start in range(0, shape[0], _AT_ONCE):
            block = vectors(slice(start, start + _AT_ONCE)).astype(np.float32)
            index.add(np.arange(start, start + len(block)), block, threads=1)
            advance(len(block))
    found = np.empty((queries.size, count), dtype=np.int64)
    with progress_bar("Asking the index", total=queries.size) as advance:
        for start in range(0, queries.size, _AT_ONCE):
            asked = queries[start : start + _AT_ONCE]
            matches = index.search(vectors(asked).astype(np.float32), count, threads=1)
            found[start : start + asked.size] = np.atleast_2d(matches.keys).astype(np.int64)
            advance(asked.size)
    return found
