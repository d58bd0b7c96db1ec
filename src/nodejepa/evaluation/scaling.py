"""The two ways the fair probe scales embeddings, applied to the few rows that need it.

Neither looks at labels. Centring is left out where it would densify sparse rows: the free intercept of the
classifier absorbs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nodejepa.diagnostics import Embeddings, column_statistics
from nodejepa.evaluation.basis import Matrix

Scaling: TypeAlias = Literal["standardise", "l2", "none"]
Positions: TypeAlias = npt.NDArray[np.int64]
_CONSTANT = 1e-9  # spread of a column over its size that is rounding noise, not information


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
        mean, std = column_statistics(embeddings)
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
    turned = np.ascontiguousarray(weights.T)
    most = 2 * len(positions) > embeddings.shape[0]  # then gathering rows costs more than it saves
    source = embeddings if most else embeddings[positions]
    if sp.issparse(source):
        product: Matrix = source @ turned
    else:
        product = np.empty((len(source), turned.shape[1]))
        size = max(1, 2**17 // source.shape[1])  # rows whose float64 copy stays in the cache
        for start in range(0, len(source), size):
            part = slice(start, start + size)
            product[part] = source[part].astype(np.float64) @ turned
    return product[positions] if most else product
