"""Rows made fit for a linear classifier: scaled as the fair probe does, and in few, good coordinates.

No scaling looks at labels. Centring is left out where it would densify sparse rows: the free intercept of the
classifier absorbs it.

The weights that minimise ``C sum_i loss_i + ||W||^2 / 2`` with a free intercept are combinations of the
centred training rows. In an orthonormal basis of those rows, taken from the eigenvectors of their Gram matrix
or of their covariance, the problem has at most min(n, d) coordinates and its Hessian is nearly diagonal.
Centring acts on the small matrix, so sparse rows are never densified.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from nodejepa.diagnostics import Embeddings, centred_second_moment, mean_and_std

Matrix: TypeAlias = npt.NDArray[np.float64]
Scaling: TypeAlias = Literal["standardise", "l2", "none"]
Positions: TypeAlias = npt.NDArray[np.int64]

_MAX_ROTATED = 2048  # the eigendecomposition of a larger matrix costs more than it saves
_MAX_ROTATED_SPARSE = 1024  # products with the sparse rows themselves are cheap, so give up earlier
_CONSTANT = 1e-9  # spread of a column over its size that is rounding noise, not information


@dataclass(frozen=True, eq=False)
class Basis:
    """Training rows in new coordinates, and the way back.

    ``(rows - mean) = coordinates @ basis^T``; ``coordinates`` is None where the rows are too many and too
    wide to be worth rotating: then the basis is that of the rows themselves.
    """

    rows: Embeddings  # [n, d]
    mean: Matrix  # [d]
    coordinates: npt.NDArray[np.floating] | None  # [n, r]
    energy: Matrix  # [r], sum of squares of each (centred) coordinate
    lift: Callable[[Matrix], Matrix]  # weights [m, r] -> [m, d]


def worth_rotating(rows: Embeddings) -> bool:
    """Whether :func:`small_basis` finds new coordinates, or leaves the rows as they are."""
    limit = _MAX_ROTATED if isinstance(rows, np.ndarray) else _MAX_ROTATED_SPARSE
    return bool(min(rows.shape) <= limit)


def small_basis(rows: Embeddings, *, single_precision: bool = False) -> Basis:
    """The basis of the centred ``rows`` ``[n, d]``; ``single_precision`` keeps coordinates in float32."""
    count, width = rows.shape
    mean, std = mean_and_std(rows)
    precision = np.float32 if single_precision else np.float64
    if not worth_rotating(rows):
        return Basis(rows, mean, None, count * std**2, lambda weights: weights)
    if count <= width:
        energy, vectors = _leading(_centred_gram(rows, mean))
        root = np.sqrt(energy)

        def from_rows(weights: Matrix) -> Matrix:
            # the eigenvectors sum to zero, so the mean drops out of (weights / root) vectors^T (rows - mean)
            return np.asarray((rows.T @ (vectors @ (weights / root).T)).T)

        return Basis(rows, mean, (vectors * root).astype(precision), energy, from_rows)
    energy, vectors = _leading(centred_second_moment(rows, mean))
    rotated = np.asarray(rows @ vectors.astype(np.result_type(rows.dtype, precision)))
    rotated -= (mean @ vectors).astype(rotated.dtype)
    return Basis(
        rows, mean, rotated.astype(precision, copy=False), energy, lambda weights: weights @ vectors.T
    )


def _centred_gram(rows: Embeddings, mean: Matrix) -> Matrix:
    if isinstance(rows, np.ndarray):
        centred = np.asarray(rows, dtype=np.float64) - mean
        # whose products follow torch.set_num_threads, unlike those of NumPy
        points = torch.from_numpy(centred)
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


@dataclass(frozen=True, eq=False)
class ScaledEmbeddings:
    """Row i is ``row_scale[i] * (embeddings[i] - shift) * column_scale``, made when asked for."""

    embeddings: Embeddings  # [N, d]
    shift: Matrix  # [d]; zero for sparse embeddings
    column_scale: Matrix  # [d]
    row_scale: Matrix  # [N]
    spread: float  # mean squared distance of the scaled rows from their mean

    def rows(self, positions: Positions) -> Embeddings:
        """The scaled rows at these positions: float64, CSR if the embeddings are."""
        picked = self.embeddings[positions].astype(np.float64)
        if sp.issparse(picked):
            scaled = sp.csr_array(picked)
            sizes = np.diff(scaled.indptr)
            scaled.data *= np.repeat(self.row_scale[positions], sizes) * self.column_scale[scaled.indices]
            return scaled
        picked -= self.shift
        picked *= self.column_scale
        picked *= self.row_scale[positions, None]
        return picked

    def predict(self, weights: Matrix, intercepts: Matrix, positions: Positions) -> Positions:
        """Most likely class ``[c, len(positions)]`` by each of the classifiers ``[c, k, d]``, ``[c, k]``."""
        chosen: Positions = self.logits(weights, intercepts, positions).argmax(axis=2).T
        return chosen

    def logits(self, weights: Matrix, intercepts: Matrix, positions: Positions) -> Matrix:
        """``[len(positions), c, k]`` of each of the classifiers.

        The scales move into the weights, so that no scaled copy of the rows is made.
        """
        settings, classes, width = weights.shape
        folded = (weights * self.column_scale).reshape(settings * classes, width)
        raw = _product(self.embeddings, positions, folded) - folded @ self.shift
        logits = raw * self.row_scale[positions, None] + intercepts.ravel()
        return logits.reshape(len(positions), settings, classes)


def scale(embeddings: Embeddings, scaling: Scaling) -> ScaledEmbeddings:
    """``"standardise"``: columns of mean 0 and standard deviation 1 over all nodes; constant ones become 0.
    ``"l2"``: rows of length 1; zero rows stay zero. ``"none"``: as they are."""
    nodes, width = embeddings.shape
    shift, column_scale, row_scale = np.zeros(width), np.ones(width), np.ones(nodes)
    if scaling == "l2":
        length = _row_lengths(embeddings)
        row_scale = np.divide(1.0, length, out=np.zeros(nodes), where=length > 0)
        mean = np.asarray(row_scale @ embeddings) / nodes
        spread = float(np.count_nonzero(length) / nodes - mean @ mean)
    else:
        mean, std = mean_and_std(embeddings)
        spread = float(np.sum(std**2))
        if scaling == "standardise":
            varies = std > _CONSTANT * np.abs(mean)
            column_scale = np.divide(1.0, std, out=np.zeros(width), where=varies)
            shift = shift if sp.issparse(embeddings) else mean
            spread = float(np.count_nonzero(varies))
    return ScaledEmbeddings(embeddings, shift, column_scale, row_scale, spread)


def _row_lengths(embeddings: Embeddings) -> Matrix:
    if not isinstance(embeddings, np.ndarray):
        squares = embeddings.data.astype(np.float64) ** 2
        rows = np.repeat(np.arange(embeddings.shape[0]), np.diff(embeddings.indptr))
        return np.sqrt(np.bincount(rows, weights=squares, minlength=embeddings.shape[0]))
    lengths: Matrix = np.sqrt(np.einsum("nd,nd->n", embeddings, embeddings, dtype=np.float64))
    return lengths


def _product(embeddings: Embeddings, positions: Positions, weights: Matrix) -> Matrix:
    """``embeddings[positions] @ weights.T`` in float64."""
    transposed = np.ascontiguousarray(weights.T)
    most = 2 * len(positions) > embeddings.shape[0]  # then gathering rows costs more than it saves
    source = embeddings if most else embeddings[positions]
    if sp.issparse(source):
        product: Matrix = source @ transposed
    else:
        product = np.empty((len(source), transposed.shape[1]))
        size = max(1, 2**17 // source.shape[1])  # rows whose float64 copy stays in the cache
        for start in range(0, len(source), size):
            part = slice(start, start + size)
            product[part] = source[part].astype(np.float64) @ transposed
    return product[positions] if most else product
