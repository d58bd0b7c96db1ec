"""Principal axes of embeddings: exact, the same every time, and without a dense copy of sparse rows."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator, svds

from nodejepa.diagnostics import Embeddings, centred_second_moment, column_statistics

Matrix = npt.NDArray[np.float64]

_MAX_COVARIANCE = 1024  # columns beyond which a few Lanczos vectors are cheaper than all eigenvectors


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """The mean ``[D]`` of some rows and their leading principal axes ``[D, k]``, the longest first.

    Each axis points to where its largest entry is positive, so that the same rows always give the same axes.
    """

    mean: Matrix
    axes: Matrix

    def __post_init__(self) -> None:
        if self.axes.ndim != 2 or self.mean.shape != self.axes.shape[:1]:
            raise ValueError(f"a mean of shape {self.mean.shape} and axes of shape {self.axes.shape}")

    @classmethod
    def of(cls, embeddings: Embeddings, count: int) -> Self:
        """At most ``count`` axes: rows span no more than one less than there are of them."""
        nodes, columns = embeddings.shape
        mean, _ = column_statistics(embeddings)
        if columns <= _MAX_COVARIANCE:
            axes = np.linalg.eigh(centred_second_moment(embeddings, mean))[1][:, ::-1][:, :count]
        else:
            axes = _lanczos_axes(embeddings, mean, min(count, nodes - 1))
        signs = np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1.0, 1.0)
        return cls(mean, axes * signs)

    def project(self, embeddings: Embeddings) -> Matrix:
        """Rows, less the mean, on the axes: ``[N, k]``."""
        return np.asarray(embeddings @ self.axes, dtype=np.float64) - self.mean @ self.axes


def _lanczos_axes(embeddings: Embeddings, mean: Matrix, count: int) -> Matrix:
    """The leading right singular vectors of the centred rows, which are never made dense."""
    if count < 1:
        return np.zeros((embeddings.shape[1], 1))
    rows = embeddings.astype(np.float64)
    centred = LinearOperator(
        rows.shape,
        matvec=lambda v: rows @ v.ravel() - mean @ v.ravel(),
        rmatvec=lambda u: rows.T @ u.ravel() - mean * u.sum(),
        dtype=np.float64,
    )
    start = np.ones(min(rows.shape)) + np.arange(min(rows.shape)) / min(rows.shape)  # the same every time
    _, values, vectors = svds(centred, k=count, v0=start, return_singular_vectors="vh")
    return np.asarray(vectors[np.argsort(values)[::-1]].T)
