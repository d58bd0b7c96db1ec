"""Principal axes of embeddings: exact, the same every time, and without a dense copy of sparse rows.

Embeddings larger than memory are read in blocks of rows, once for the mean, once for the covariance.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self, final

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, svds

from nodejepa.diagnostics import (
    Embeddings,
    RowArray,
    centred_second_moment,
    mean_and_std,
    row_chunks,
)
from nodejepa.errors import EvaluationError

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
    def of(cls, embeddings: Embeddings | RowArray, count: int) -> Self:
        """At most ``count`` axes: rows span no more than one less than there are of them."""
        nodes, columns = embeddings.shape
        mean, _ = mean_and_std(embeddings)
        if not np.isfinite(mean).all():
            raise EvaluationError(
                "some embeddings are NaN or infinite",
                where="embeddings",
                fix="The training that made them diverged, or a row of the input was never filled.",
            )
        if columns <= _MAX_COVARIANCE:
            axes = np.linalg.eigh(centred_second_moment(embeddings, mean))[1][:, ::-1][:, :count]
        else:
            axes = _lanczos_axes(embeddings, mean, min(count, nodes - 1))
        signs = np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1.0, 1.0)
        return cls(mean, axes * signs)

    def project(self, embeddings: Embeddings) -> Matrix:
        """Rows, less the mean, on the axes: ``[N, k]``."""
        return np.asarray(embeddings @ self.axes, dtype=np.float64) - self.mean @ self.axes

    def reduce(self, embeddings: Embeddings | RowArray) -> npt.NDArray[np.float32] | RowArray:
        """As :meth:`project`, in float32; what is larger than memory is projected when it is read."""
        if isinstance(embeddings, np.ndarray | sp.csr_array):
            return self.project(embeddings).astype(np.float32)
        return ProjectedRows(embeddings, self)


@final
@dataclass(frozen=True, eq=False)
class ProjectedRows:
    """Rows on axes, projected when they are read."""

    whole: RowArray
    onto: PrincipalAxes

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and axes."""
        return self.whole.shape[0], self.onto.axes.shape[1]

    def __getitem__(self, rows: slice | npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        return self.onto.project(self.whole[rows]).astype(np.float32)


def _lanczos_axes(embeddings: Embeddings | RowArray, mean: Matrix, count: int) -> Matrix:
    """The leading right singular vectors of the centred rows, which are never made dense."""
    if count < 1:
        return np.zeros((embeddings.shape[1], 1))
    kept: list[Embeddings] = []  # what is on disk is read for each product
    if isinstance(embeddings, np.ndarray | sp.csr_array):
        kept = [embeddings.astype(np.float64)]

    def parts() -> Iterable[Embeddings]:
        return kept or (part.astype(np.float64) for part in row_chunks(embeddings))

    def back(u: Matrix) -> Matrix:
        total, low = np.zeros(len(mean)), 0
        for part in parts():
            total += part.T @ u[low : low + part.shape[0]]
            low += part.shape[0]
        return np.asarray(total - mean * u.sum())

    centred = LinearOperator(
        embeddings.shape,
        matvec=lambda v: np.concatenate([part @ v.ravel() for part in parts()]) - mean @ v.ravel(),
        rmatvec=lambda u: back(u.ravel()),
        dtype=np.float64,
    )
    shorter = min(embeddings.shape)
    start = np.ones(shorter) + np.arange(shorter) / shorter  # the same every time
    _, values, vectors = svds(centred, k=count, v0=start, return_singular_vectors="vh")
    return np.asarray(vectors[np.argsort(values)[::-1]].T)
