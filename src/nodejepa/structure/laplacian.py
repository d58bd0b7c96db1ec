"""Spectral and adjacency coordinates: where a node sits in the graph at large.

They are leading eigenpairs of a normalised adjacency, found in bounded time, repeated eigenvalues included.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, lobpcg
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from nodejepa.errors import ConfigError
from nodejepa.graph import Graph, RowGraph
from nodejepa.graph_checks import SparseMatrix
from nodejepa.machine import progress_bar
from nodejepa.structure.base import (
    Float64Array,
    largest_component,
    neighbours,
    row_sums,
    scaled,
    undirected_part,
)

DENSE_UP_TO = 1000  # below this a dense solve takes a blink and has no convergence to worry about
SAME_EIGENVALUE = 1e-6
_TOLERANCE = 1e-7
EXACT_UP_TO = 50_000  # nodes; of more, the adjacency's many eigenvectors are found by block iteration
_BLOCK, _STEPS = 64, 6  # of it: 384 vectors, of which 128 are kept
_FEW = 64  # eigenvectors, up to which room and time are no matter
_RESTARTS = (25, 1000)  # real graphs need about 10; small ones may take their time
_WORK = 5e9  # flops, roughly, that buy more restarts than the fewest
_SEED = 0
_BALANCED = 1e-5  # a vector whose third moment is below this share of its absolute one has no preferred sign


def spectral_coordinates(graph: RowGraph, dim: int = 8) -> Float64Array:
    r"""Leading non-trivial eigenvectors of the normalised adjacency of the largest component, ``[N, dim]``.

    .. math:: D^{-1/2} A D^{-1/2} v_k = \lambda_k v_k, \quad 1 = \lambda_0 > \lambda_1 \ge \lambda_2 \ge \dots

    which are those of smallest eigenvalue of the normalised Laplacian (Belkin & Niyogi 2003). Columns are
    :math:`v_1 \dots v_{dim}` scaled to a root mean square of 1 over the component. Other components get
    zeros: each would otherwise claim a leading eigenvector that only marks it. If the component has
    fewer than ``dim`` + 1 nodes the last columns are zero.

    Eigenvectors are unique up to sign, and those of a repeated eigenvalue up to rotation. Both are settled
    by rules that look at structure and not at node order, so permuting the nodes permutes the rows:

    - within an eigenspace (eigenvalues closer than 1e-6), the basis that diagonalises
      :math:`V^\top \mathrm{diag}(f) V`, with f the sum of degree, mean degree of the neighbours and the
      node's share of the eigenspace, each in units of its mean;
    - the sign that makes :math:`\sum_i v_i^3` positive; if that vanishes, :math:`\sum_i d_i v_i^3`.

    Where these do not decide either, the graph's own symmetry leaves no better candidate (a square grid
    has no preferred axis); the choice is then reproducible but follows node order.

    Args:
        graph: directions are ignored, weights count. The edges of one on disk are taken into memory, beside
            some hundred vectors as long as the component.
        dim: number of columns.
    """
    if dim < 0:
        raise ConfigError(f"dim is {dim}", where="spectral coordinates", fix="Use 0 or more columns.")
    coordinates = np.zeros((graph.num_nodes, dim))
    nodes = largest_component(neighbours(graph))
    count = min(dim, nodes.size - 1)
    if count < 1:
        return coordinates
    adjacency = undirected_part(graph, nodes)
    degrees = row_sums(adjacency)
    trivial = np.sqrt(degrees / degrees.sum())
    _, vectors = _settled_eigenpairs(adjacency, scaled(adjacency), trivial[:, None], count, "spectral")
    coordinates[nodes, :count] = _unit(vectors)
    return coordinates


def adjacency_coordinates(graph: Graph, dim: int = 128) -> Float64Array:
    r"""Rows of the squared adjacency in its ``dim`` leading directions, ``[N, dim]``: who is two steps away.

    .. math:: M = (D + \bar d)^{-1/2} A (D + \bar d)^{-1/2}, \quad
        M v_k = \lambda_k v_k, \quad P_k = \lambda_k^2 \ell(v_k)

    with :math:`v_k` of root mean square 1 and :math:`\ell` of :func:`signed_log`; without that, this would
    be :math:`M^2 v_k`. The mean degree is added to every degree (Qin & Rohe 2013): else small pieces that
    hardly hang on the rest have the largest eigenvalues. All components are in; columns without a positive
    eigenvalue are zero. Sign and basis are settled as in :func:`spectral_coordinates`. Column k means
    something else on every graph: what was learned from these coordinates is of use on this graph only.
    Of more than 50,000 nodes the eigenvectors are those of a block Krylov space (Musco & Musco 2015), the
    leading ones exact, the last ones near: seconds instead of many minutes.

    Args:
        graph: directions are ignored, weights count.
        dim: number of columns.
    """
    coordinates = np.zeros((graph.num_nodes, dim))
    count = min(dim, graph.num_nodes)
    if not graph.num_edges or count < 1:
        return coordinates
    adjacency = undirected_part(graph, np.arange(graph.num_nodes))
    matrix, known = scaled(adjacency, row_sums(adjacency).mean()), np.zeros((graph.num_nodes, 0))
    values, vectors = _settled_eigenpairs(adjacency, matrix, known, count, "adjacency")
    coordinates[:, :count] = signed_log(_unit(vectors)) * np.where(values > SAME_EIGENVALUE, values, 0) ** 2
    return coordinates


def signed_log(coordinates: Float64Array) -> Float64Array:
    """sign(v) log(1 + abs(v)).

    Leading eigenvectors of sparse graphs pile up on small dangling pieces, as outliers far beyond their root
    mean square of 1; the logarithm keeps those from dominating what reads them.
    """
    logarithm: Float64Array = np.sign(coordinates) * np.log1p(np.abs(coordinates))
    return logarithm


def _unit(vectors: Float64Array) -> Float64Array:
    """Columns of root mean square 1."""
    return np.column_stack([vector / np.sqrt(np.mean(vector**2)) for vector in vectors.T])


def _settled_eigenpairs(
    adjacency: SparseMatrix, matrix: SparseMatrix, known: Float64Array, count: int, name: str
) -> tuple[Float64Array, Float64Array]:
    """``count`` leading eigenpairs, sign and basis settled by what the edges say of the nodes."""
    many = count > _FEW and matrix.shape[0] > EXACT_UP_TO
    values, vectors = _block_krylov(matrix, count) if many else leading_eigenpairs(matrix, known, count, name)
    degrees = row_sums(adjacency)
    neighbourhood = adjacency @ degrees / np.where(degrees > 0, degrees, 1)
    importance = degrees / degrees.mean() + neighbourhood / neighbourhood.mean()
    vectors = _canonical_bases(values, vectors, importance)[:, :count]
    return values[:count], vectors * [_sign(vector, degrees) for vector in vectors.T]


def _canonical_bases(values: Float64Array, vectors: Float64Array, importance: Float64Array) -> Float64Array:
    """Rotate the basis of every repeated eigenvalue to the one that diagonalises a structural form."""
    result = vectors.copy()
    starts = np.flatnonzero(np.diff(values, prepend=np.inf) < -SAME_EIGENVALUE)
    for start, end in zip(starts, [*starts[1:], values.size], strict=True):
        if end - start > 1:
            basis = vectors[:, start:end]
            share = np.sum(basis**2, axis=1)  # of the node in the eigenspace: the same in every basis
            weight = importance + share / share.mean()
            _, turn = np.linalg.eigh(basis.T @ (weight[:, None] * basis))
            result[:, start:end] = basis @ turn[:, ::-1]
    return result


def _sign(vector: Float64Array, degrees: Float64Array) -> float:
    for weight in (np.ones_like(degrees), degrees):
        cubes = weight * vector**3
        total = cubes.sum()
        if abs(total) > _BALANCED * np.abs(cubes).sum():
            return float(np.sign(total))
    magnitude = np.abs(vector)
    first_of_largest = np.flatnonzero(magnitude > (1 - _BALANCED) * magnitude.max())[0]
    return float(np.sign(vector[first_of_largest]))


def leading_eigenpairs(
    matrix: SparseMatrix, known: Float64Array, count: int, name: str
) -> tuple[Float64Array, Float64Array]:
    """The eigenpairs of largest eigenvalue that are orthogonal to ``known``.

    Args:
        matrix: symmetric ``[n, n]``, eigenvalues in [-1, 1]; only products with it are asked for.
        known: ``[n, m]``, orthonormal eigenvectors to leave out.
        count: how many are wanted, at most n - m.
        name: of the structural feature that they are for, which a person hears of.

    Returns:
        Eigenvalues in falling order and eigenvectors ``[n, m]`` with m >= count: where the last wanted
        eigenvalue is a repeated one, its other eigenvectors come along.
    """
    size = matrix.shape[0]
    # These are hundreds of small BLAS calls: on a busy machine a second thread only slows them down,
    # and one thread adds up in the same order everywhere.
    with threadpool_limits(1, user_api="blas"):
        if size <= max(DENSE_UP_TO, 8 * (count + 4)):
            return _dense(matrix, known, count)
        with progress_bar(f"{name.capitalize()} coordinates") as advance:
            return _krylov(matrix, known, count, name, advance)


def _block_krylov(matrix: SparseMatrix, count: int) -> tuple[Float64Array, Float64Array]:
    """About the ``count`` leading eigenpairs: the best in the space of M G, M^2 G, ... of a random block G.

    In single precision, which is more than a direction that has not converged needs.
    """
    generator = np.random.default_rng(_SEED)
    basis = np.empty((matrix.shape[0], _BLOCK * _STEPS), dtype=np.float32)
    block = generator.standard_normal((matrix.shape[0], _BLOCK), dtype=np.float32)
    with progress_bar("Adjacency coordinates", total=2 * _STEPS) as advance:
        for step in range(_STEPS):
            block, before = (matrix @ block).astype(np.float32), basis[:, : step * _BLOCK]
            for _ in range(2):  # once leaves what rounding has put back
                block -= before @ (before.T @ block)
            block = np.linalg.qr(block).Q
            basis[:, step * _BLOCK : (step + 1) * _BLOCK] = block
            advance()
        inside = np.empty((basis.shape[1], basis.shape[1]))
        for step in range(_STEPS):
            columns = slice(step * _BLOCK, (step + 1) * _BLOCK)
            inside[:, columns] = basis.T @ (matrix @ basis[:, columns]).astype(np.float32)
            advance()
    values, vectors = np.linalg.eigh((inside + inside.T) / 2)
    values, vectors = values[::-1][:count], vectors[:, ::-1][:, :count]
    return values, (basis @ vectors.astype(np.float32)).astype(np.float64)


def _dense(matrix: SparseMatrix, known: Float64Array, count: int) -> tuple[Float64Array, Float64Array]:
    shifted = matrix.toarray() - 2 * known @ known.T  # sends the known ones to the far end
    values, vectors = scipy.linalg.eigh(shifted)
    rest = values.size - known.shape[1]
    values, vectors = values[::-1][:rest], vectors[:, ::-1][:, :rest]
    wanted = values >= values[count - 1] - SAME_EIGENVALUE
    return values[wanted], vectors[:, wanted]


def _krylov(
    matrix: SparseMatrix, known: Float64Array, count: int, name: str, advance: Callable[..., None]
) -> tuple[Float64Array, Float64Array]:
    """Lanczos, then a second look.

    A Krylov space from one start vector holds one eigenvector of each repeated eigenvalue: the others turn
    up only by luck. So what was found is taken out of the matrix and the largest eigenvalue of the rest is
    glanced at; if it belongs among the wanted ones, the search goes on there.
    """
    size = matrix.shape[0]
    generator = np.random.default_rng(_SEED)
    found = known

    def product(vector: Float64Array) -> Float64Array:
        advance()
        flat = vector.ravel()
        without: Float64Array = matrix @ flat - 2 * (found @ (found.T @ flat))
        return without

    rest = LinearOperator((size, size), matvec=product, dtype=np.float64)
    width, looks = (4 * count + 16, count) if count <= _FEW else (2 * count + 32, 2)
    restarts = int(np.clip(_WORK / (width * (matrix.nnz + width * size)), *_RESTARTS))
    values = np.empty(0)
    for _ in range(looks):
        start = generator.standard_normal(size)
        try:
            vectors = _arpack(rest, count + 2, start, ncv=width, tol=_TOLERANCE, maxiter=restarts)[1]
        except ArpackNoConvergence:
            vectors = _smooth(matrix, found, generator.standard_normal((size, count + 2)), name)
            values, found = _ritz(matrix, known, np.column_stack([found, vectors]))
            break
        values, found = _ritz(matrix, known, np.column_stack([found, vectors]))
        try:
            glance = _arpack(rest, 1, generator.standard_normal(size), ncv=20, tol=1e-3, maxiter=10)[0][0]
        except ArpackNoConvergence:
            break  # a missing copy would stand out and converge first
        if glance < values[count - 1] - SAME_EIGENVALUE:  # a Ritz value never overstates the largest
            break
    wanted = values >= values[count - 1] - SAME_EIGENVALUE
    return values[wanted], found[:, known.shape[1] :][:, wanted]


def _arpack(
    matrix: LinearOperator, count: int, start: Float64Array, **options: Any
) -> tuple[Float64Array, Float64Array]:
    """The leading eigenpairs; the same on every call.

    Where a Krylov space ends early, as a star's does, SciPy from 1.17 on takes entropy of its own.
    """
    if "rng" in signature(eigsh).parameters:
        options["rng"] = np.random.default_rng(_SEED)
    values, vectors = eigsh(matrix, count, which="LA", v0=start, **options)
    return values, vectors


def _ritz(
    matrix: SparseMatrix, known: Float64Array, vectors: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Best eigenpairs within the span of ``vectors``, the known ones put first again."""
    basis, _ = np.linalg.qr(vectors)  # keeps the span of the first columns, which are the known ones
    basis = basis[:, known.shape[1] :]
    values, turn = np.linalg.eigh(basis.T @ (matrix @ basis))
    return values[::-1], np.column_stack([known, basis @ turn[:, ::-1]])


def _smooth(matrix: SparseMatrix, found: Float64Array, guess: Float64Array, name: str) -> Float64Array:
    """Vectors near the leading eigenspace, for graphs (long paths, roads) whose gaps are too small."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # lobpcg's own words about tolerance; ours follow
        apart = found if found.shape[1] else None
        vectors: Float64Array = lobpcg(matrix, guess, Y=apart, largest=True, tol=_TOLERANCE, maxiter=40)[1]
    warnings.warn(
        f"the {name} coordinates of this graph ({matrix.shape[0]} nodes) converge very slowly; smooth "
        f"approximations are used. Leave out the structural feature {name!r} to avoid them.",
        stacklevel=6,
    )
    return vectors
