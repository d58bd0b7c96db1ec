"""Blocks of a sparse matrix, cut out in one compiled pass: what lets a step skip rows nobody reads."""

from typing import Any

import numpy as np
import numpy.typing as npt

from nodejepa.compiled import compiled
from nodejepa.graph_checks import SparseMatrix, compact_csr
from nodejepa.nn.sparse import SparseOperator

Rows = npt.NDArray[np.bool_] | None  # bool [N]: which ones are asked for; none: all of them


def restrict(operator: SparseOperator, rows: Rows, columns: Rows) -> SparseOperator:
    """``M[rows][:, columns]`` with rows and columns renumbered; ``None`` keeps all of them.

    The transposed block, needed only by a backward pass, is cut from the transpose when first used.
    """

    def transposed() -> SparseMatrix:
        return _block(operator.transposed_matrix, columns, rows)

    same = rows is columns and operator.symmetric
    return SparseOperator(
        _block(operator.matrix, rows, columns),
        symmetric=same,
        transposed=None if same else transposed,
        device=operator.device,
    )


def diagonal_blocks(operator: SparseOperator, node_lists: list[npt.NDArray[np.int32]]) -> SparseOperator:
    """:func:`block_diagonal` of an operator."""
    return SparseOperator(
        block_diagonal(operator.matrix, node_lists),
        symmetric=operator.symmetric,
        transposed=None
        if operator.symmetric
        else lambda: block_diagonal(operator.transposed_matrix, node_lists),
        device=operator.device,
    )


def block_diagonal(matrix: SparseMatrix, node_lists: list[npt.NDArray[np.int32]]) -> SparseMatrix:
    """The blocks ``M[nodes][:, nodes]`` of several ascending node lists along the diagonal of one matrix."""
    nodes = np.concatenate(node_lists)
    starts = np.concatenate([[0], np.cumsum([len(part) for part in node_lists])])
    data, indices, indptr = _cut_blocks(matrix.indptr, matrix.indices, matrix.data, nodes, starts)
    return compact_csr(data, indices, indptr, len(nodes))


def _block(matrix: SparseMatrix, rows: Rows, columns: Rows) -> SparseMatrix:
    height, width = matrix.shape
    kept = np.arange(height, dtype=np.int32) if rows is None else np.flatnonzero(rows).astype(np.int32)
    if columns is None:
        rank = np.arange(width, dtype=np.int32)
    else:
        rank = np.where(columns, np.cumsum(columns, dtype=np.int32) - 1, np.int32(-1)).astype(np.int32)
        width = int(np.count_nonzero(columns))
    data, indices, indptr = _cut(matrix.indptr, matrix.indices, matrix.data, kept, rank)
    return compact_csr(data, indices, indptr, len(kept), width)


@compiled()
def _cut(indptr: Any, indices: Any, values: Any, rows: Any, rank: Any) -> Any:
    """CSR arrays of the kept rows and of the columns whose rank is not negative."""
    pointers = np.zeros(len(rows) + 1, dtype=indptr.dtype)
    for i in range(len(rows)):
        count = 0
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            if rank[indices[e]] >= 0:
                count += 1
        pointers[i + 1] = pointers[i] + count
    columns = np.empty(pointers[-1], dtype=indices.dtype)
    data = np.empty(pointers[-1], dtype=values.dtype)
    at = 0
    for i in range(len(rows)):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            column = rank[indices[e]]
            if column >= 0:
                columns[at] = column
                data[at] = values[e]
                at += 1
    return data, columns, pointers


@compiled()
def _cut_blocks(indptr: Any, indices: Any, values: Any, nodes: Any, starts: Any) -> Any:
    """CSR arrays of the diagonal blocks of node lists ``nodes[starts[b]:starts[b + 1]]``."""
    rank = np.full(len(indptr) - 1, -1, dtype=np.int64)
    upper = 0
    for node in nodes:
        upper += indptr[node + 1] - indptr[node]
    columns = np.empty(upper, dtype=indices.dtype)
    data = np.empty(upper, dtype=values.dtype)
    pointers = np.zeros(len(nodes) + 1, dtype=indptr.dtype)
    at = 0
    for b in range(len(starts) - 1):
        for i in range(starts[b], starts[b + 1]):
            rank[nodes[i]] = i
        for i in range(starts[b], starts[b + 1]):
            for e in range(indptr[nodes[i]], indptr[nodes[i] + 1]):
                column = rank[indices[e]]
                if column >= 0:
                    columns[at] = column
                    data[at] = values[e]
                    at += 1
            pointers[i + 1] = at
        for i in range(starts[b], starts[b + 1]):
            rank[nodes[i]] = -1
    return data[:at], columns[:at], pointers
