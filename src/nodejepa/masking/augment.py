"""Augmented views of a graph, for the methods that compare two of them."""

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nodejepa.compiled import compiled
from nodejepa.graph_checks import FloatArray, SparseMatrix

IntArray = npt.NDArray[np.integer]
BoolArray = npt.NDArray[np.bool_]

_UNIT = 2.0**-53


def drop_edges(adjacency: SparseMatrix, p: float, generator: np.random.Generator) -> SparseMatrix:
    """The CSR adjacency without a random share ``p`` of its edges.

    Both directions of an edge share one coin, so a symmetric matrix stays symmetric. The coin is a hash
    (SplitMix64, Steele et al. 2014) of the two nodes and of one key from ``generator``: nobody has to look
    for the reverse of an edge, and one-way edges of a directed graph are dropped just as well.
    """
    key = generator.integers(2**64, dtype=np.uint64)
    indptr, indices, data = _keep_edges(adjacency.indptr, adjacency.indices, adjacency.data, p, key)
    return sp.csr_array((data, indices, indptr), shape=adjacency.shape)


def drop_feature_columns(num_features: int, p: float, generator: np.random.Generator) -> BoolArray:
    """Which feature columns to keep, ``[F]``: each is dropped with probability ``p``, for all nodes alike."""
    return generator.random(num_features) >= p


@compiled()
def mix(state: np.uint64) -> np.uint64:
    """One SplitMix64 step: 64 well-mixed bits."""
    state += np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


@compiled()
def _keep_edges(
    indptr: IntArray, indices: IntArray, data: FloatArray, p: float, key: np.uint64
) -> tuple[IntArray, IntArray, FloatArray]:
    kept_indptr = np.zeros_like(indptr)
    kept_indices = np.empty_like(indices)
    kept_data = np.empty_like(data)
    kept = 0
    for i in range(indptr.size - 1):
        for edge in range(indptr[i], indptr[i + 1]):
            j = indices[edge]
            pair = (np.uint64(min(i, j)) << np.uint64(32)) | np.uint64(max(i, j))
            coin = np.float64(mix(mix(pair) ^ key) >> np.uint64(11)) * _UNIT
            kept_indices[kept] = j  # overwritten by the next edge if dropped: a branch here would
            kept_data[kept] = data[edge]  # be mispredicted half of the time
            kept += int(coin >= p)
        kept_indptr[i + 1] = kept
    return kept_indptr, kept_indices[:kept].copy(), kept_data[:kept].copy()
