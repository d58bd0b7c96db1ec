r"""The propagation matrix of a GCN, made here and nowhere else: of a graph, of a view of one, of some rows.

.. math:: S = D^{-1/2} (A + I)^\top D^{-1/2}, \quad D = \mathrm{diag}(1 + \text{weighted in-degree})

(Kipf & Welling 2017). For an undirected graph S is symmetric: its own transpose. One compiled pass makes it,
since a step that drops edges needs a new one for every view.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from nodejepa.compiled import compiled
from nodejepa.graph_checks import SparseMatrix, compact_csr


def degree_scale(in_rows: SparseMatrix, low: int = 0) -> npt.NDArray[np.float64]:
    """``1 / sqrt(1 + weighted in-degree)`` of the nodes whose in-edges the rows are, from node ``low`` on."""
    scale: npt.NDArray[np.float64] = _scale(in_rows.indptr, in_rows.indices, in_rows.data, low)
    return scale


def propagation_rows(
    in_rows: SparseMatrix, scale: npt.NDArray[np.float64] | None = None, low: int = 0
) -> SparseMatrix:
    """Rows of S, the first of which is node ``low``'s, from those of the in-edges without self-loops.

    ``scale`` is the :func:`degree_scale` of all nodes; of the rows themselves, if these are all, by default.
    """
    if scale is None:
        scale = degree_scale(in_rows, low)
    arrays = _scaled(in_rows.indptr, in_rows.indices, in_rows.data, scale, low)
    return compact_csr(*arrays, *in_rows.shape)


@compiled()
def _scale(indptr: Any, indices: Any, weights: Any, low: int) -> Any:
    """Sums run over a row in its order, the self-loop of weight 1 in its place."""
    size = len(indptr) - 1
    scale = np.empty(size, dtype=np.float64)
    for row in range(size):
        total, looped = 0.0, False
        for e in range(indptr[row], indptr[row + 1]):
            if not looped and indices[e] > low + row:
                total, looped = total + 1.0, True
            total += weights[e]
        scale[row] = 1 / np.sqrt(total if looped else total + 1.0)
    return scale


@compiled()
def _scaled(indptr: Any, indices: Any, weights: Any, scale: Any, low: int) -> Any:
    """Values, columns and pointers of the rows of S."""
    size = len(indptr) - 1
    pointers = np.zeros(size + 1, dtype=indptr.dtype)
    columns = np.empty(len(indices) + size, dtype=indices.dtype)
    data = np.empty(len(indices) + size, dtype=np.float32)
    at = 0
    for row in range(size):
        e, end, i = indptr[row], indptr[row + 1], low + row
        while e < end and indices[e] < i:
            columns[at], data[at] = indices[e], weights[e] * scale[i] * scale[indices[e]]
            at, e = at + 1, e + 1
        columns[at], data[at] = i, scale[i] * scale[i]
        at += 1
        while e < end:
            columns[at], data[at] = indices[e], weights[e] * scale[i] * scale[indices[e]]
            at, e = at + 1, e + 1
        pointers[row + 1] = at
    return data, columns, pointers
