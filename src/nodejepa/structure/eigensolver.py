"""Leading eigenpairs of a normalised adjacency, repeated eigenvalues included, in bounded time."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from inspect import signature

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, lobpcg
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from nodejepa.progress import progress_bar
from nodejepa.structure.undirected import ComponentRows, Float64Array

DENSE_UP_TO = 1000  # below this a dense solve takes a blink and has no convergence to worry about
SAME_EIGENVALUE = 1e-6

_TOLERANCE = 1e-7
_GLANCE_TOLERANCE = 1e-3
_FEW = 64  # eigenvectors, up to which room and time are no matter
_RESTARTS = (25, 1000)  # real graphs need about 10; small ones may take their time
_WORK = 5e9  # flops, roughly, that buy more restarts than the fewest
_SEED = 0


def leading_eigenpairs(
    matrix: ComponentRows, known: Float64Array, count: int, name: str
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


def _dense(matrix: ComponentRows, known: Float64Array, count: int) -> tuple[Float64Array, Float64Array]:
    shifted = matrix.toarray() - 2 * known @ known.T  # sends the known ones to the far end
    values, vectors = scipy.linalg.eigh(shifted)
    rest = values.size - known.shape[1]
    values, vectors = values[::-1][:rest], vectors[:, ::-1][:, :rest]
    wanted = values >= values[count - 1] - SAME_EIGENVALUE
    return values[wanted], vectors[:, wanted]


def _krylov(
    matrix: ComponentRows, known: Float64Array, count: int, name: str, advance: Callable[..., None]
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
            _, vectors = eigsh(
                rest,
                count + 2,
                which="LA",
                v0=start,
                ncv=width,
                tol=_TOLERANCE,
                maxiter=restarts,
                **_seeded(),
            )
        except ArpackNoConvergence as failure:
            vectors = _best_effort(matrix, found, failure.eigenvectors, count + 2, name, generator)
            values, found = _ritz(matrix, known, np.column_stack([found, vectors]))
            break
        values, found = _ritz(matrix, known, np.column_stack([found, vectors]))
        glance = _glance(rest, generator.standard_normal(size))
        if glance < values[count - 1] - SAME_EIGENVALUE:
            break
    wanted = values >= values[count - 1] - SAME_EIGENVALUE
    return values[wanted], found[:, known.shape[1] :][:, wanted]


def _seeded() -> dict[str, np.random.Generator]:
    """Where a Krylov space ends early, as a star's does, SciPy from 1.17 on takes entropy of its own."""
    return {"rng": np.random.default_rng(_SEED)} if "rng" in signature(eigsh).parameters else {}


def _ritz(
    matrix: ComponentRows, known: Float64Array, vectors: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Best eigenpairs within the span of ``vectors``, the known ones put first again."""
    basis, _ = np.linalg.qr(vectors)  # keeps the span of the first columns, which are the known ones
    basis = basis[:, known.shape[1] :]
    values, turn = np.linalg.eigh(basis.T @ (matrix @ basis))
    return values[::-1], np.column_stack([known, basis @ turn[:, ::-1]])


def _glance(rest: LinearOperator, start: Float64Array) -> float:
    """Roughly the largest eigenvalue of what is left; a Ritz value never overstates it."""
    try:
        value = eigsh(
            rest,
            1,
            which="LA",
            v0=start,
            ncv=20,
            tol=_GLANCE_TOLERANCE,
            maxiter=10,
            return_eigenvectors=False,
            **_seeded(),
        )
    except ArpackNoConvergence:
        return -1.0  # a missing copy would stand out and converge first
    return float(value[0])


def _best_effort(
    matrix: ComponentRows,
    found: Float64Array,
    converged: Float64Array,
    count: int,
    name: str,
    generator: np.random.Generator,
) -> Float64Array:
    """Smooth vectors near the leading eigenspace, for graphs (long paths, roads) whose gaps are too small."""
    guess = generator.standard_normal((matrix.shape[0], count))
    if converged is not None and converged.size:
        guess[:, : converged.shape[1]] = converged
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # lobpcg's own words about tolerance; ours follow
        apart = found if found.shape[1] else None
        _, vectors = lobpcg(matrix, guess, Y=apart, largest=True, tol=_TOLERANCE, maxiter=40)
    warnings.warn(
        f"the {name} coordinates of this graph ({matrix.shape[0]} nodes) converge very slowly; smooth "
        f"approximations are used. Leave out the structural feature {name!r} to avoid them.",
        stacklevel=6,
    )
    best: Float64Array = vectors
    return best
