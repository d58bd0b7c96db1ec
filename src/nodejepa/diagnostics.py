"""Have the embeddings collapsed? Numbers and a sentence, without any label; and their principal axes.

With Z the embeddings ``[N, D]``, sigma_j the singular values of the centred Z and lambda_j = sigma_j^2:

* effective rank: exp of the entropy of sigma / sum(sigma) (Roy & Vetterli 2007), of the centred and of the
  uncentred Z;
* participation ratio: (sum lambda)^2 / sum lambda^2, of the centred and of the uncentred Z;
* mean std: the standard deviation of each dimension, averaged.

All of it follows from the mean and the ``D x D`` covariance, so no second copy of Z is ever made. Embeddings
larger than memory are read in blocks of rows.
"""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Protocol, Self, TypeAlias, final

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, svds

from nodejepa.errors import EvaluationError
from nodejepa.graph_checks import ID_NAMES

Embeddings: TypeAlias = npt.NDArray[Any] | sp.csr_array
Doubles: TypeAlias = npt.NDArray[np.float64]

MAX_DIMENSIONS = 2048  # beyond it the D x D matrix and its eigenvalues cost more than the answer is worth
_MAX_COVARIANCE = 1024  # columns beyond which a few singular vectors are cheaper than all eigenvectors
_BLOCK_ELEMENTS = 2**17  # 1 MB of float64 at a time stays in the cache
_READ_ELEMENTS = 2**24  # of rows on disk, at a time
_SAMPLED_ROWS, _SAMPLED_PLACES = 16_384, 64
_CONSTANT = 1e-5  # spread over size below which rows differ by no more than float32 rounding, give or take
_FEW_DIRECTIONS = 0.05  # share of the possible rank below which we speak of dimensional collapse
_SPREAD = "the nodes spread over many directions."
_REPEATED = "the nodes differ along few directions only, most dimensions repeat what others say."
_LARGE_MEAN = 0.95  # share of the squared length above which the mean hides what tells nodes apart


class RowArray(Protocol):
    """An array ``[N, D]`` that may be larger than memory: read by rows, as a NumPy array is."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    def __getitem__(self, rows: slice | npt.NDArray[np.int64]) -> npt.NDArray[np.float32] | sp.csr_array:
        """Rows that follow one another, or those of some nodes, ascending; sparse where they are kept so."""


@dataclass(frozen=True)
class Diagnostics:
    """What :func:`diagnose` found. Ranks are None for more than 2,048 dimensions."""

    nodes: int
    dimensions: int
    mean_std: float
    effective_rank: float | None  # of the centred embeddings
    effective_rank_uncentred: float | None
    participation_ratio_centred: float | None
    participation_ratio_uncentred: float | None
    collapsed: bool  # fully, or onto few directions; false where it was not judged
    verdict: str

    @property
    def sound(self) -> bool:
        """Whether everything was judged and found good."""
        return self.verdict.startswith("healthy") and self.verdict.endswith(_SPREAD)

    def to_dict(self) -> dict[str, int | float | str | None]:
        """Plain values, ready for JSON."""
        return asdict(self)


def diagnose(embeddings: Embeddings) -> Diagnostics:
    """Measure how far the rows of ``embeddings`` ``[nodes, dimensions]`` use the space they live in.

    Constant embeddings have effective rank and participation ratio 1 by convention: one point spans one
    direction at most. More than 2,048 dimensions give only ``mean_std``.

    >>> diagnose(np.ones((10, 4))).verdict.split(":")[0]
    'full collapse'
    """
    matrix = check_embeddings(embeddings)
    nodes, dimensions = matrix.shape
    mean, std = mean_and_std(matrix)
    spread, size = float(np.sqrt(np.sum(std**2))), float(np.sqrt(np.sum(mean**2) + np.sum(std**2)))
    constant = spread <= _CONSTANT * size
    ranks: list[float | None] = [None, None]  # of the centred and of the uncentred embeddings
    ratios: list[float | None] = [None, None]
    if constant:
        ranks, ratios = [1.0, 1.0], [1.0, 1.0]
    elif dimensions <= MAX_DIMENSIONS:
        covariance = centred_second_moment(matrix, mean) / nodes
        spectra = [np.linalg.eigvalsh(m) for m in (covariance, covariance + np.outer(mean, mean))]
        ranks, ratios = [_effective_rank(s) for s in spectra], [_participation(s) for s in spectra]
    rank, possible = ranks[0], min(dimensions, nodes - 1)
    few = rank is not None and rank < max(_FEW_DIRECTIONS * possible, min(2.0, possible / 2))
    means = f"mean std {float(std.mean()):.2g}"
    if constant:
        verdict = (
            f"full collapse: all {nodes} nodes have practically the same embedding ({means}); nothing can be "
            "read from it."
        )
    elif rank is None:
        verdict = (
            f"not judged: with {dimensions} dimensions (more than {MAX_DIMENSIONS}) the ranks are not "
            f"computed; the embeddings are not constant ({means})."
        )
    else:
        used = f"effective rank {rank:.1f} of {possible} possible, {means}"
        verdict = f"dimensional collapse: {used}; {_REPEATED}" if few else f"healthy: {used}; {_SPREAD}"
    share = 0.0 if constant else 1 - (spread / size) ** 2
    if share > _LARGE_MEAN:
        verdict += (
            f" Of their squared length {min(100 * share, 99.9):.1f} % is the same for every node: centre or "
            "standardise them before you compare them by angle or feed them to a classifier."
        )
    return Diagnostics(
        nodes=nodes,
        dimensions=dimensions,
        mean_std=float(std.mean()),
        effective_rank=ranks[0],
        effective_rank_uncentred=ranks[1],
        participation_ratio_centred=ratios[0],
        participation_ratio_uncentred=ratios[1],
        collapsed=constant or few,
        verdict=verdict,
    )


def sampled_rows(matrix: RowArray) -> Embeddings:
    """Some rows from many places of an array on disk, enough to say whether all are sound."""
    rows, size = matrix.shape[0], _SAMPLED_ROWS // _SAMPLED_PLACES
    if rows <= _SAMPLED_ROWS:
        return matrix[:rows]
    starts = np.linspace(0, rows - size, _SAMPLED_PLACES).astype(np.int64)
    return matrix[(starts[:, None] + np.arange(size)).ravel()]


def check_embeddings(embeddings: Embeddings, where: str = "embeddings") -> Embeddings:
    """A finite, non-empty float matrix ``[nodes, dimensions]`` as NumPy array or CSR, or an error."""
    if sp.issparse(embeddings):
        matrix = sp.csr_array(embeddings)
        values = matrix.data
    else:
        names = [str(name) for name in getattr(embeddings, "columns", ())]
        other = [
            n for n in names if n.lower() in ID_NAMES or ("z0" in names and not re.fullmatch(r"z\d+", n))
        ]
        if other:
            raise EvaluationError(
                f"columns {', '.join(map(repr, other[:8]))} are no coordinates",
                where=where,
                fix='Leave them out: frame.set_index("id").filter(regex="^z[0-9]+$"), or read the file with '
                "nodejepa.tables.read_embeddings.",
            )
        try:
            matrix = values = np.asarray(embeddings)
        except (ValueError, TypeError, RuntimeError) as error:
            raise EvaluationError(f"no array can be made of this: {error}", where=where) from None
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise EvaluationError(
            f"shape {matrix.shape} is no table of rows", where=where, fix="Give one non-empty row per node."
        )
    if values.dtype.kind not in "fiub":
        raise EvaluationError(
            f"values are {values.dtype}, not real numbers", where=where, fix="Give floating-point numbers."
        )
    if values.dtype.kind != "f":
        return matrix.astype(np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        suspicious = not np.isfinite(values.sum(dtype=np.float64))  # one pass, no temporary
    if suspicious and not np.isfinite(values).all():
        raise _not_finite(f"{np.count_nonzero(~np.isfinite(values))} of the values", where)
    return matrix


def _not_finite(what: str, where: str) -> EvaluationError:
    fix = "The training that made them diverged, or a row of the input was never filled."
    return EvaluationError(f"{what} are NaN or infinite", where=where, fix=fix)


def mean_and_std(matrix: Embeddings | RowArray) -> tuple[Doubles, Doubles]:
    """Mean and (population) standard deviation of every column, in float64.

    Sums are taken relative to the first row: a constant column has a standard deviation of exactly 0, and
    whatever the offset of the others, no more than a factor N of rounding is lost.
    """
    nodes, dimensions = matrix.shape
    if isinstance(matrix, sp.csr_array):
        values, columns = matrix.data.astype(np.float64), matrix.indices
        mean = np.bincount(columns, weights=values, minlength=dimensions) / nodes
        stored = np.bincount(columns, minlength=dimensions)
        apart = np.bincount(columns, weights=(values - mean[columns]) ** 2, minlength=dimensions)
        return mean, np.sqrt((apart + (nodes - stored) * mean**2) / nodes)
    first = next(_blocks(matrix))[0]
    total, squares = np.zeros(dimensions), np.zeros(dimensions)
    for block in _blocks(matrix):
        block -= first
        total += block.sum(axis=0)
        squares += np.square(block, out=block).sum(axis=0)
    offset = total / nodes
    return first + offset, np.sqrt(np.maximum(squares / nodes - offset**2, 0))


def centred_second_moment(matrix: Embeddings | RowArray, mean: Doubles) -> Doubles:
    """``(Z - mean)^T (Z - mean)`` as ``[D, D]`` float64."""
    total = np.zeros((matrix.shape[1], matrix.shape[1]))
    for block in _blocks(matrix):
        block -= mean
        total += block.T @ block
    return total


def row_chunks(matrix: Embeddings | RowArray) -> Iterator[Embeddings]:
    """All rows where they are in memory, else as many at a time as are read at once, in whole blocks."""
    if isinstance(matrix, np.ndarray | sp.csr_array):
        yield matrix
        return
    count, columns = matrix.shape
    block = max(1, _BLOCK_ELEMENTS // columns)
    size = block * max(1, _READ_ELEMENTS // (block * columns))
    for low in range(0, count, size):
        yield matrix[low : min(low + size, count)]


def _blocks(matrix: Embeddings | RowArray) -> Iterator[Doubles]:
    """The rows, a few at a time, as fresh dense float64 arrays."""
    rows = max(1, _BLOCK_ELEMENTS // matrix.shape[1])
    for chunk in row_chunks(matrix):
        for start in range(0, chunk.shape[0], rows):
            part = chunk[start : start + rows]
            dense = part if isinstance(part, np.ndarray) else part.toarray()
            yield dense.astype(np.float64)


def _effective_rank(eigenvalues: Doubles) -> float:
    # an eigenvalue of a D x D matrix is only known to about D eps times the largest; its root would count
    noise = eigenvalues.size * np.finfo(np.float64).eps * eigenvalues.max()
    singular = np.sqrt(eigenvalues[eigenvalues > noise])
    share = singular / singular.sum()
    return float(np.exp(-np.sum(share * np.log(share))))


def _participation(eigenvalues: Doubles) -> float:
    return float(eigenvalues.sum() ** 2 / np.sum(eigenvalues**2))


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """The mean ``[D]`` of some rows and their leading principal axes ``[D, k]``, the longest first.

    Each axis points to where its largest entry is positive, so that the same rows always give the same axes.
    """

    mean: Doubles
    axes: Doubles

    def __post_init__(self) -> None:
        if self.axes.ndim != 2 or self.mean.shape != self.axes.shape[:1]:
            raise ValueError(f"a mean of shape {self.mean.shape} and axes of shape {self.axes.shape}")

    @classmethod
    def of(cls, embeddings: Embeddings | RowArray, count: int) -> Self:
        """At most ``count`` axes: rows span no more than one less than there are of them.

        Those of more than 1,024 columns on disk are the axes of a sample of rows.
        """
        wide = embeddings.shape[1] > _MAX_COVARIANCE
        if wide and not isinstance(embeddings, np.ndarray | sp.csr_array):
            embeddings = sampled_rows(embeddings)
        mean, _ = mean_and_std(embeddings)
        if not np.isfinite(mean).all():
            raise _not_finite("some embeddings", "embeddings")
        if isinstance(embeddings, np.ndarray | sp.csr_array) and wide:
            axes = _singular_axes(embeddings, mean, min(count, embeddings.shape[0] - 1))
        else:
            axes = np.linalg.eigh(centred_second_moment(embeddings, mean))[1][:, ::-1][:, :count]
        signs = np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1.0, 1.0)
        return cls(mean, axes * signs)

    def project(self, embeddings: Embeddings) -> Doubles:
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
    """Rows of an array that may be larger than memory, each projected when it is read."""

    whole: RowArray
    onto: PrincipalAxes

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and axes."""
        return self.whole.shape[0], self.onto.axes.shape[1]

    def __getitem__(self, rows: slice | npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        return self.onto.project(self.whole[rows]).astype(np.float32)


def _singular_axes(embeddings: Embeddings, mean: Doubles, count: int) -> Doubles:
    """The leading right singular vectors of the centred rows, which are never made dense."""
    if count < 1:
        return np.zeros((embeddings.shape[1], 1))
    z = embeddings.astype(np.float64)
    centred = LinearOperator(
        embeddings.shape,
        matvec=lambda v: z @ v.ravel() - mean @ v.ravel(),
        rmatvec=lambda u: z.T @ u.ravel() - mean * u.sum(),
        dtype=np.float64,
    )
    shorter = min(embeddings.shape)
    start = np.ones(shorter) + np.arange(shorter) / shorter  # the same every time
    _, values, vectors = svds(centred, k=count, v0=start, return_singular_vectors="vh")
    return np.asarray(vectors[np.argsort(values)[::-1]].T)
