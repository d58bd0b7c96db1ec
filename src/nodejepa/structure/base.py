"""What all of this room stands on: the graph without its directions, and a cache of what was computed.

METIS and most descriptors look at undirected edges. What was computed from a graph's structure is kept on
disk, ``<cache>/structure/<structure hash>/<key>.npy``. Whatever does not read back as an array of the
expected shape is computed again and replaced. A cache that cannot be written costs time, never a result.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from nodejepa.errors import NodeJEPAError
from nodejepa.files import atomic_path, cache_root
from nodejepa.graph import Graph, RowGraph
from nodejepa.graph_checks import SparseMatrix

Float64Array = npt.NDArray[np.float64]
ALGORITHM_VERSION = 1  # raise it whenever an algorithm of this package changes its output

_Scalar = TypeVar("_Scalar", bound=np.generic)


class Neighbours(NamedTuple):
    """Who is joined with whom: row pointers and positions as in a CSR matrix, which may lie in a file."""

    indptr: npt.NDArray[Any]
    indices: npt.NDArray[Any]

    def of(self, nodes: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """How many neighbours each of some nodes has, and all of these, node after node."""
        first = self.indptr[nodes]
        counts = self.indptr[nodes + 1] - first
        entries = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        return counts, self.indices[entries]


def undirected_rows(graph: RowGraph, low: int, high: int) -> SparseMatrix:
    """Rows ``low`` to ``high - 1`` of the adjacency, or of max(A, A^T) for a directed graph, sorted."""
    rows = graph.rows(low, high)
    if graph.directed:
        rows = rows.maximum(graph.in_rows(low, high)).tocsr()
        rows.sort_indices()
    return rows


def neighbours(graph: RowGraph) -> Neighbours:
    """Positions of all :func:`undirected_rows`, of a graph on disk in a file of their own."""
    if isinstance(graph, Graph) and not graph.directed:
        return Neighbours(graph.adjacency.indptr, graph.adjacency.indices)
    indptr = np.zeros(graph.num_nodes + 1, dtype=np.int64)
    indices = graph.scratch(graph.num_edges * (2 if graph.directed else 1), np.int32)
    filled = 0
    for low, high in graph.spans():
        rows = undirected_rows(graph, low, high)
        indptr[low + 1 : high + 1] = filled + rows.indptr[1:].astype(np.int64)
        indices[filled : filled + rows.nnz] = rows.indices
        filled += rows.nnz
    return Neighbours(indptr, indices[:filled])


def largest_component(edges: Neighbours) -> npt.NDArray[np.intp]:
    """Positions of the nodes of the largest connected component; of equals, the one with more edges."""
    size = edges.indptr.size - 1
    pairs = (np.ones(edges.indices.size, dtype=np.int8), edges.indices, edges.indptr)
    label = connected_components(sp.csr_array(pairs, shape=(size, size)), directed=False)[1]
    nodes = np.bincount(label)
    joined = np.bincount(label, weights=np.diff(edges.indptr))
    largest = np.lexsort((joined, nodes))[-1]
    return np.flatnonzero(label == largest)


def undirected_part(graph: RowGraph, nodes: npt.NDArray[np.intp]) -> SparseMatrix:
    """The adjacency between some nodes, ascending, in memory and in double precision, directions left out."""
    blocks = [undirected_rows(graph, *span) for span in graph.spans()]
    rows = (blocks[0] if len(blocks) == 1 else sp.vstack(blocks, format="csr")).astype(np.float64)
    if nodes.size < graph.num_nodes:
        rows = rows[nodes][:, nodes]
        rows.sort_indices()
    return rows


def scaled(adjacency: SparseMatrix, added: float = 0.0) -> SparseMatrix:
    r""":math:`D^{-1/2} A D^{-1/2}`, with something added to every degree."""
    scale = 1 / np.sqrt(row_sums(adjacency) + added)
    matrix = adjacency.copy()
    matrix.data = np.repeat(scale, np.diff(adjacency.indptr)) * adjacency.data * scale[adjacency.indices]
    return matrix


def row_sums(matrix: SparseMatrix) -> Float64Array:
    """The weighted degree of every node."""
    return np.asarray(matrix.sum(axis=1)).ravel()


# ---------------------------------------------------------------- kept on disk


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
