"""Spectral coordinates: where a node sits in the graph at large."""

from __future__ import annotations

import numpy as np

from nodejepa.errors import ConfigError
from nodejepa.graph_rows import RowGraph
from nodejepa.structure.component_rows import ComponentRows, Float64Array
from nodejepa.structure.components import largest_component
from nodejepa.structure.eigensolver import SAME_EIGENVALUE, leading_eigenpairs
from nodejepa.structure.undirected import neighbours

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
    degrees = rows.degrees
    trivial = np.sqrt(degrees / degrees.sum())
    values, vectors = leading_eigenpairs(rows, trivial, count)
    neighbourhood = rows.neighbour_sums(degrees) / degrees
    importance = degrees / degrees.mean() + neighbourhood / neighbourhood.mean()
    vectors = _canonical_bases(values, vectors, importance)
    for column in range(count):
        vector = vectors[:, column]
        rms = np.sqrt(np.mean(vector**2))
        coordinates[nodes, column] = _sign(vector, degrees) * vector / rms
    return coordinates


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
