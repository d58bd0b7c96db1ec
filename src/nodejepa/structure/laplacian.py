"""Spectral and adjacency coordinates: where a node sits in the graph at large."""

from __future__ import annotations

import numpy as np

from nodejepa.errors import ConfigError
from nodejepa.graph import Graph, RowGraph
from nodejepa.structure.eigensolver import SAME_EIGENVALUE, leading_eigenpairs
from nodejepa.structure.undirected import ComponentRows, Float64Array, largest_component, neighbours

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
        graph: directions are ignored, weights count. Of one on disk the edges are read once a product;
            some hundred vectors as long as the component are in memory.
        dim: number of columns.
    """
    if dim < 0:
        raise ConfigError(f"dim is {dim}", where="spectral coordinates", fix="Use 0 or more columns.")
    coordinates = np.zeros((graph.num_nodes, dim))
    nodes = largest_component(neighbours(graph))
    count = min(dim, nodes.size - 1)
    if count < 1:
        return coordinates
    rows = ComponentRows(graph, nodes)
    trivial = np.sqrt(rows.degrees / rows.degrees.sum())
    _, vectors = _settled_eigenpairs(rows, trivial[:, None], count, "spectral")
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

    Args:
        graph: directions are ignored, weights count.
        dim: number of columns.
    """
    coordinates = np.zeros((graph.num_nodes, dim))
    count = min(dim, graph.num_nodes)
    if not graph.num_edges or count < 1:
        return coordinates
    rows = ComponentRows(graph, np.arange(graph.num_nodes), regularised=True)
    values, vectors = _settled_eigenpairs(rows, np.zeros((graph.num_nodes, 0)), count, "adjacency")
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
    rows: ComponentRows, known: Float64Array, count: int, name: str
) -> tuple[Float64Array, Float64Array]:
    """``count`` leading eigenpairs, sign and basis settled by what the edges say of the nodes."""
    values, vectors = leading_eigenpairs(rows, known, count, name)
    degrees = rows.degrees
    neighbourhood = rows.neighbour_sums(degrees) / np.where(degrees > 0, degrees, 1)
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
