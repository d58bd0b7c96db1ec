"""Have the embeddings collapsed? Numbers and a sentence, without any label.

With Z the embeddings ``[N, D]``, sigma_j the singular values of the centred Z and lambda_j = sigma_j^2:

* effective rank: exp of the entropy of sigma / sum(sigma) (Roy & Vetterli 2007), of the centred and of the
  uncentred Z;
* participation ratio: (sum lambda)^2 / sum lambda^2, of the centred and of the uncentred Z;
* mean std: the standard deviation of each dimension, averaged.

All of it follows from the mean and the ``D x D`` covariance, so no second copy of Z is ever made.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nodejepa.errors import EvaluationError

Embeddings: TypeAlias = npt.NDArray[Any] | sp.csr_array
Doubles: TypeAlias = npt.NDArray[np.float64]

MAX_DIMENSIONS = 2048  # beyond it the D x D matrix and its eigenvalues cost more than the answer is worth
_BLOCK_ELEMENTS = 2**17  # 1 MB of float64 at a time stays in the cache
_READ_ELEMENTS = 2**24  # of rows on disk, at a time
_SAMPLED_ROWS, _SAMPLED_PLACES = 16_384, 64
_CONSTANT = 1e-5  # spread over size below which rows differ by no more than float32 rounding, give or take
_FEW_DIRECTIONS = 0.05  # share of the possible rank below which we speak of dimensional collapse
_SPREAD = "the nodes spread over many directions."
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
    """What :func:`diagnose` found. Rank-like numbers are None where there are too many dimensions."""

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
    ranks: tuple[float, float, float, float] | None = None
    if constant:
        ranks = (1.0, 1.0, 1.0, 1.0)
    elif dimensions <= MAX_DIMENSIONS:
        covariance = centred_second_moment(matrix, mean) / nodes
        spectra = [np.linalg.eigvalsh(m) for m in (covariance, covariance + np.outer(mean, mean))]
        centred, uncentred = ((_effective_rank(s), _participation(s)) for s in spectra)
        ranks = (*centred, *uncentred)
    return Diagnostics(
        nodes=nodes,
        dimensions=dimensions,
        mean_std=float(std.mean()),
        effective_rank=ranks and ranks[0],
        effective_rank_uncentred=ranks and ranks[2],
        participation_ratio_centred=ranks and ranks[1],
        participation_ratio_uncentred=ranks and ranks[3],
        collapsed=constant or (ranks is not None and _few_directions(ranks[0], nodes, dimensions)),
        verdict=_verdict(nodes, dimensions, constant, float(std.mean()), ranks and ranks[0])
        + ("" if constant else _about_the_mean(1 - (spread / size) ** 2)),
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
        raise EvaluationError(
            f"{np.count_nonzero(~np.isfinite(values))} of the values are NaN or infinite",
            where=where,
            fix="The training that made them diverged, or a row of the input was never filled.",
        )
    return matrix


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
    block = _block_rows(columns)
    size = block * max(1, _READ_ELEMENTS // (block * columns))
    for low in range(0, count, size):
        yield matrix[low : min(low + size, count)]


def _blocks(matrix: Embeddings | RowArray) -> Iterator[Doubles]:
    """The rows, a few at a time, as fresh dense float64 arrays."""
    rows = _block_rows(matrix.shape[1])
    for chunk in row_chunks(matrix):
        for start in range(0, chunk.shape[0], rows):
            part = chunk[start : start + rows]
            dense = part if isinstance(part, np.ndarray) else part.toarray()
            yield dense.astype(np.float64)


def _block_rows(columns: int) -> int:
    return max(1, _BLOCK_ELEMENTS // columns)


def _effective_rank(eigenvalues: Doubles) -> float:
    # an eigenvalue of a D x D matrix is only known to about D eps times the largest; its root would count
    noise = eigenvalues.size * np.finfo(np.float64).eps * eigenvalues.max()
    singular = np.sqrt(eigenvalues[eigenvalues > noise])
    share = singular / singular.sum()
    return float(np.exp(-np.sum(share * np.log(share))))


def _participation(eigenvalues: Doubles) -> float:
    return float(eigenvalues.sum() ** 2 / np.sum(eigenvalues**2))


def _few_directions(rank: float, nodes: int, dimensions: int) -> bool:
    possible = min(dimensions, nodes - 1)
    return rank < max(_FEW_DIRECTIONS * possible, min(2.0, possible / 2))


def _verdict(nodes: int, dimensions: int, constant: bool, mean_std: float, rank: float | None) -> str:
    if constant:
        return (
            f"full collapse: all {nodes} nodes have practically the same embedding "
            f"(mean std {mean_std:.2g}); nothing can be read from it."
        )
    if rank is None:
        return (
            f"not judged: with {dimensions} dimensions (more than {MAX_DIMENSIONS}) the ranks are not "
            f"computed; the embeddings are not constant (mean std {mean_std:.2g})."
        )
    possible = min(dimensions, nodes - 1)
    used = f"effective rank {rank:.1f} of {possible} possible, mean std {mean_std:.2g}"
    if _few_directions(rank, nodes, dimensions):
        return (
            f"dimensional collapse: {used}; the nodes differ along few directions only, most dimensions "
            "repeat what others say."
        )
    return f"healthy: {used}; {_SPREAD}"


def _about_the_mean(share: float) -> str:
    """A word of warning where the embeddings are one large common vector and small differences."""
    if share <= _LARGE_MEAN:
        return ""
    return (
        f" Of their squared length {min(100 * share, 99.9):.1f} % is the same for every node: centre or "
        "standardise them before you compare them by angle or feed them to a classifier."
    )
