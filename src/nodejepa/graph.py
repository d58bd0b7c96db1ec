"""``Graph``: what every method sees. Adjacency, features, ids; deliberately no labels.

The adjacency is a SciPy CSR matrix without self-loops and without duplicates; ``A[i, j]`` is the weight of
the edge i -> j. It is symmetric unless the graph was made with ``direction="keep"``. Whatever is derived from
it (degrees, normalised adjacency, hashes) is computed once and kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nodejepa.compiled import compiled
from nodejepa.errors import GraphError
from nodejepa.graph_checks import (
    Features,
    FloatArray,
    SparseMatrix,
    check_ids,
    check_positions,
    check_weights,
    compact_csr,
    count_nodes,
    fit_features,
    in_node_order,
    merge_directions,
    merge_entries,
    read_features,
    read_ids,
    read_sparse,
    refuse_one_way_edges,
    refuse_other_order,
    refuse_where,
)


class RowGraph(Protocol):
    """A graph by rows: :class:`nodejepa.graph.Graph` and :class:`nodejepa.tables.StoredGraph` are such."""

    @property
    def num_nodes(self) -> int:
        """How many nodes there are."""

    @property
    def num_edges(self) -> int:
        """Number of stored edges. An undirected edge counts twice."""

    @property
    def num_features(self) -> int:
        """Columns of the feature matrix."""

    @property
    def structural(self) -> int:
        """How many of them, the last ones, describe the structure."""

    @property
    def directed(self) -> bool:
        """Whether the adjacency may differ from its transpose."""

    @property
    def is_weighted(self) -> bool:
        """Whether any edge weight is not 1."""

    @property
    def degrees(self) -> FloatArray:
        """Weighted out-degree of every node."""

    @property
    def structure_hash(self) -> str:
        """Identifies nodes and edges; the same in memory and on disk."""

    @property
    def content_hash(self) -> str:
        """Identifies nodes, edges and features; the same in memory and on disk."""

    def rows(self, low: int, high: int) -> SparseMatrix:
        """Rows ``low`` to ``high - 1`` of the adjacency, ``[high - low, nodes]``."""

    def in_rows(self, low: int, high: int) -> SparseMatrix:
        """The same rows of its transpose: who points at these nodes."""

    def feature_rows(self, low: int, high: int) -> Features:
        """The same rows of the features."""

    def spans(self) -> Iterator[tuple[int, int]]:
        """``(low, high)`` of blocks that cover all rows, each of which may be in memory."""

    def scratch(self, size: int, kind: Any) -> npt.NDArray[Any]:
        """An array to fill that is as long as the graph has nodes or edges: where there is room for it."""


Direction: TypeAlias = Literal["check", "symmetrize", "keep"]
_DIRECTIONS = ("check", "symmetrize", "keep")


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """An immutable graph.

    Build it with :meth:`from_edges`, :meth:`from_scipy`, :func:`nodejepa.load_graph` (files and data frames),
    :func:`nodejepa.from_networkx` or :func:`nodejepa.from_pyg`; the constructor itself takes a matrix that is
    already clean.

    >>> graph = Graph.from_edges([0, 1], [1, 2], features=np.eye(3))
    >>> graph
    Graph(nodes=3, edges=4, features=3)
    >>> graph.degrees.tolist()
    [1.0, 2.0, 1.0]
    """

    adjacency: SparseMatrix
    features: Features
    node_ids: npt.NDArray[Any] | None = None
    directed: bool = False
    incomparable: bool = False  # features hold the adjacency's coordinates, which no other graph shares
    structural: int = 0  # so many of the feature columns, the last ones, describe the structure
    columns: tuple[str, ...] = ()  # of the table that features were made of; none: it has no names
    encoding: str = ""  # identifies how they were made of it, where it was read; empty: unknown

    def __post_init__(self) -> None:
        for array in (*buffers(self.adjacency), *buffers(self.features)):
            array.flags.writeable = False
        if self.node_ids is not None:
            self.node_ids.flags.writeable = False

    def __reduce__(self) -> tuple[type[Graph], tuple[object, ...]]:
        """Copies and unpickled graphs pass through the constructor: they are immutable as well."""
        return Graph, tuple(getattr(self, field.name) for field in fields(self))

    # ---------------------------------------------------------------- facts

    @property
    def num_nodes(self) -> int:
        """How many nodes there are."""
        return int(self.adjacency.shape[0])

    @property
    def num_edges(self) -> int:
        """Number of stored edges. An undirected edge counts twice, once in each direction."""
        return int(self.adjacency.nnz)

    @property
    def num_features(self) -> int:
        """Columns of the feature matrix; 0 for a graph without features."""
        return int(self.features.shape[1])

    @property
    def is_weighted(self) -> bool:
        """Whether any edge weighs something else than 1."""
        return not bool(np.all(self.adjacency.data == 1))

    @cached_property
    def degrees(self) -> FloatArray:
        """Weighted out-degree of every node, self-loops not counted."""
        sums = self.adjacency.sum(axis=1, dtype=np.float64)
        degrees: FloatArray = np.asarray(sums, dtype=np.float32).ravel()
        degrees.flags.writeable = False
        return degrees

    @cached_property
    def normalized_adjacency(self) -> SparseMatrix:
        """The GCN propagation matrix S. ``S @ X`` sums over each node's in-neighbours and itself.

        See :func:`propagation_rows`.
        """
        matrix = propagation_rows(self.in_rows(0, self.num_nodes))
        for array in buffers(matrix):
            array.flags.writeable = False
        return matrix

    @cached_property
    def structure_hash(self) -> str:
        """Identifies nodes and edges, not features. It is the key of what is derived from structure alone."""
        return digest(b"directed" if self.directed else b"undirected", *buffers(self.adjacency))

    @cached_property
    def content_hash(self) -> str:
        """Identifies nodes, edges and features."""
        shape = np.asarray(self.features.shape, dtype=np.int64)
        return digest(self.structure_hash.encode(), shape, *buffers(self.features))

    def with_features(self, features: npt.ArrayLike | sp.sparray | sp.spmatrix) -> Graph:
        """The same nodes and edges with other features; a pandas frame is aligned by its index of ids."""
        ordered = in_node_order(features, self.node_ids, self.num_nodes)
        checked = fit_features(read_features(ordered), self.num_nodes)
        return Graph(self.adjacency, checked, self.node_ids, self.directed, columns=column_names(features))

    def __repr__(self) -> str:
        kind = ", directed" if self.directed else ""
        return f"Graph(nodes={self.num_nodes}, edges={self.num_edges}, features={self.num_features}{kind})"

    # ---------------------------------------------------------------- by rows: all of them are one block

    def rows(self, low: int, high: int) -> SparseMatrix:
        """Rows ``low`` to ``high - 1`` of the adjacency."""
        return _rows(self.adjacency, low, high)

    def in_rows(self, low: int, high: int) -> SparseMatrix:
        """The same rows of its transpose."""
        return _rows(self._incoming, low, high)

    @cached_property
    def _incoming(self) -> SparseMatrix:
        return sp.csr_array(self.adjacency.T) if self.directed else self.adjacency

    def feature_rows(self, low: int, high: int) -> Features:
        """The same rows of the features."""
        return _rows(self.features, low, high)

    def spans(self) -> Iterator[tuple[int, int]]:
        """All rows are one block."""
        return iter([(0, self.adjacency.shape[0])])

    def scratch(self, size: int, kind: Any) -> npt.NDArray[Any]:
        """In memory."""
        return np.empty(size, dtype=kind)

    # ---------------------------------------------------------------- in

    @classmethod
    def from_edges(
        cls,
        source: npt.ArrayLike,
        target: npt.ArrayLike,
        *,
        features: npt.ArrayLike | sp.sparray | sp.spmatrix | None = None,
        num_nodes: int | None = None,
        weights: npt.ArrayLike | None = None,
        node_ids: npt.ArrayLike | None = None,
        direction: Direction = "symmetrize",
    ) -> Graph:
        """A graph from two arrays of node positions (0 .. num_nodes - 1).

        Args:
            source: start of each edge.
            target: end of each edge.
            features: ``[nodes, F]``, dense or SciPy sparse; none means zero columns. A pandas frame is
                aligned by its index where that holds the ids.
            num_nodes: taken from ``features`` or ``node_ids`` or the largest position if not given.
            weights: one non-negative number per edge; 1 if not given.
            node_ids: the caller's own name of each node, unique.
            direction: ``"symmetrize"`` (edge lists usually name an undirected edge once), ``"check"`` (refuse
                an edge without its reverse) or ``"keep"`` (a directed graph).

        Repeated edges are merged: weights add up if weights were given, else the edge simply exists. Where
        the two directions of an undirected edge weigh differently the larger counts. Self-loops are
        dropped; a GCN adds its own.
        """
        if not isinstance(direction, str) or direction not in _DIRECTIONS:
            raise GraphError(
                f"direction {direction!r} is unknown",
                where="direction",
                fix=f"Use one of {', '.join(_DIRECTIONS)}.",
            )
        refuse_other_order(source, target, weights)
        start, end = check_positions(source, "source"), check_positions(target, "target")
        if start.shape != end.shape:
            raise GraphError(
                f"source has {start.size} entries and target {end.size}",
                where="edges",
                fix="Give one source and one target for every edge.",
            )
        ids = read_ids(node_ids)
        table = read_features(in_node_order(features, ids, num_nodes))
        size = count_nodes(num_nodes, table, ids, start, end)
        for name, array in (("source", start), ("target", end)):
            refuse_where(array >= size, array, name, f"Positions of nodes run from 0 to {size - 1}.")
        if ids is not None:
            check_ids(ids, size)
        weight = check_weights(weights, start.size)
        keep = start != end
        heavy = None if weights is None else weight[keep]
        matrix = merge_entries(start[keep], end[keep], heavy, (size, size))
        if direction == "check":
            refuse_one_way_edges(matrix)
        if direction != "keep":
            matrix = merge_directions(matrix, matrix.T)  # exactly symmetric, also where "check" forgave
        adjacency = compact_csr(matrix.data, matrix.indices, matrix.indptr, size)
        names = column_names(features)
        return cls(adjacency, fit_features(table, size), ids, direction == "keep", columns=names)

    @classmethod
    def from_scipy(
        cls,
        adjacency: sp.sparray | sp.spmatrix,
        features: npt.ArrayLike | sp.sparray | sp.spmatrix | None = None,
        *,
        node_ids: npt.ArrayLike | None = None,
        direction: Direction = "check",
    ) -> Graph:
        """A graph from a square SciPy sparse matrix of edge weights."""
        if not sp.issparse(adjacency):
            raise GraphError(
                f"adjacency is a {type(adjacency).__name__}",
                where="adjacency",
                fix="Give a SciPy sparse matrix, or use Graph.from_edges.",
            )
        coo = read_sparse(adjacency, "adjacency")
        if coo.shape[0] != coo.shape[1]:
            raise GraphError(f"adjacency has shape {coo.shape}", where="adjacency", fix="It must be square.")
        return cls.from_edges(
            coo.row,
            coo.col,
            features=features,
            num_nodes=int(coo.shape[0]),
            weights=coo.data,
            node_ids=node_ids,
            direction=direction,
        )

    # ---------------------------------------------------------------- out

    def edge_arrays(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], FloatArray]:
        """Source, target and weight of every stored edge, ordered by source."""
        coo = self.adjacency.tocoo()
        return coo.row.astype(np.int64), coo.col.astype(np.int64), coo.data.copy()


def column_names(features: Any) -> tuple[str, ...]:
    """Names of the columns of a data frame; nothing else has any."""
    return tuple(map(str, getattr(features, "columns", ())))


def _rows(matrix: Any, low: int, high: int) -> Any:
    """Rows of a matrix, which is not copied where all of them are asked for."""
    return matrix if (low, high) == (0, matrix.shape[0]) else matrix[low:high]


def buffers(matrix: Features) -> tuple[npt.NDArray[Any], ...]:
    """The arrays that a matrix consists of."""
    return (matrix,) if isinstance(matrix, np.ndarray) else (matrix.data, matrix.indices, matrix.indptr)


def digest(*parts: bytes | npt.NDArray[Any] | Iterable[npt.NDArray[Any]]) -> str:
    """SHA-256 of the parts, each closed by a bar; a part may come in pieces."""
    sha = hashlib.sha256()
    for part in parts:
        for piece in [part] if isinstance(part, bytes | np.ndarray) else part:
            sha.update(piece if isinstance(piece, bytes) else np.ascontiguousarray(piece).data)
        sha.update(b"|")
    return sha.hexdigest()


# ---------------------------------------------------------------- the propagation matrix


def degree_scale(in_rows: SparseMatrix, low: int = 0) -> npt.NDArray[np.float64]:
    """``1 / sqrt(1 + weighted in-degree)`` of the nodes whose in-edges the rows are, from node ``low`` on."""
    scale: npt.NDArray[np.float64] = _scale(in_rows.indptr, in_rows.indices, in_rows.data, low)
    return scale


def propagation_rows(
    in_rows: SparseMatrix, scale: npt.NDArray[np.float64] | None = None, low: int = 0
) -> SparseMatrix:
    r"""Rows of S, the first of which is node ``low``'s, from those of the in-edges without self-loops.

    .. math:: S = D^{-1/2} (A + I)^\top D^{-1/2}, \quad D = \mathrm{diag}(1 + \text{weighted in-degree})

    (Kipf & Welling 2017). For an undirected graph S is symmetric: its own transpose. It is made here and
    nowhere else, in one compiled pass, since a step that drops edges needs a new one for every view.
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
