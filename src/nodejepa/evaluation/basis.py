"""A small, well-conditioned coordinate system for one training set.

The weights that minimise ``C sum_i loss_i + ||W||^2 / 2`` with a free intercept are combinations of the
centred training rows. In an orthonormal basis of those rows, taken from the eigenvectors of their Gram matrix
or of their covariance, the problem has at most min(n, d) coordinates and its Hessian is nearly diagonal.
Centring acts on the small matrix, so sparse rows are never densified.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from nodejepa.diagnostics import Embeddings, centred_second_moment, column_statistics

Matrix: TypeAlias = npt.NDArray[np.float64]

_MAX_ROTATED = 2048  # the eigendecomposition of a larger matrix costs more than it saves
_MAX_ROTATED_SPARSE = 1024  # products with the sparse rows themselves are cheap, so give up earlier


@dataclass(frozen=True, eq=False)
class Basis:
    """Training rows in new coordinates, and the way back.

    ``(rows - mean) = coordinates @ basis^T``; ``coordinates`` is None where the rows are too many and too
    wide to be worth turning: then the basis is that of the rows themselves.
    """

    rows: Embeddings  # [n, d]
    mean: Matrix  # [d]
    coordinates: npt.NDArray[np.floating] | None  # [n, r]
    energy: Matrix  # [r], sum of squares of each (centred) coordinate
    lift: Callable[[Matrix], Matrix]  # weights [m, r] -> [m, d]


def worth_turning(rows: Embeddings) -> bool:
    """Whether :func:`small_basis` finds new coordinates, or leaves the rows as they are."""
    limit = _MAX_ROTATED if isinstance(rows, np.ndarray) else _MAX_ROTATED_SPARSE
    return bool(min(rows.shape) <= limit)


def small_basis(rows: Embeddings, *, single_precision: bool = False) -> Basis:
    """The basis of the centred ``rows`` ``[n, d]``; ``single_precision`` keeps coordinates in float32."""
    count, width = rows.shape
    mean, std = column_statistics(rows)
    precision = np.float32 if single_precision else np.float64
    if not worth_turning(rows):
        return Basis(rows, mean, None, count * std**2, lambda weights: weights)
    if count <= width:
        energy, vectors = _leading(_centred_gram(rows, mean))
        root = np.sqrt(energy)

        def from_rows(weights: Matrix) -> Matrix:
            # the eigenvectors sum to zero, so the mean drops out of (weights / root) vectors^T (rows - mean)
            return np.asarray((rows.T @ (vectors @ (weights / root).T)).T)

        return Basis(rows, mean, (vectors * root).astype(precision), energy, from_rows)
    energy, vectors = _leading(centred_second_moment(rows, mean))
    turned = np.asarray(rows @ vectors.astype(np.result_type(rows.dtype, precision)))
    turned -= (mean @ vectors).astype(turned.dtype)
    return Basis(
        rows, mean, turned.astype(precision, copy=False), energy, lambda weights: weights @ vectors.T
    )


def _centred_gram(rows: Embeddings, mean: Matrix) -> Matrix:
    if isinstance(rows, np.ndarray):
        centred = np.asarray(rows, dtype=np.float64) - mean
        points = torch.from_numpy(
            centred
        )  # whose products follow torch.set_num_threads, unlike those of NumPy
        return np.asarray((points @ points.T).numpy())
    wide = rows.astype(np.float64)
    gram = (wide @ wide.T).toarray()
    means = gram.mean(axis=0)
    return np.asarray(gram - means - means[:, None] + means.mean())


def _leading(symmetric: Matrix) -> tuple[Matrix, Matrix]:
    """Eigenvalues above rounding noise, and their vectors; at least one."""
    values, vectors = (part.numpy() for part in torch.linalg.eigh(torch.from_numpy(symmetric)))
    noise = len(values) * np.finfo(np.float64).eps * max(values[-1], np.finfo(np.float64).tiny)
    known = values > noise
    known[-1] = True
    return np.maximum(values[known], np.finfo(np.float64).tiny), vectors[:, known]
