r"""Multinomial logistic regression, many training sets and regularisation strengths at once.

Scikit-learn's objective, ``C sum_i loss_i + ||W||^2 / 2`` with a free intercept, solved to a much smaller
tolerance than scikit-learn's default. Small training sets are stacked and solved together with every C; a
large or costly one is solved alone, from small to large C, each start being the solution before it. Costly
ones (many classes) are solved in single precision, and first roughly: :class:`RoughFit`.

Rows are made fit for it before: scaled as the fair probe does, and in few, good coordinates. No scaling looks
at labels. Centring is left out where it would densify sparse rows: the free intercept absorbs it. The weights
that minimise the objective are combinations of the centred training rows. In an orthonormal basis of those
rows, taken from the eigenvectors of their Gram matrix or of their covariance, the problem has at most
min(n, d) coordinates and its Hessian is nearly diagonal. Centring acts on the small matrix, so sparse rows
are never densified.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from nodejepa.diagnostics import Embeddings, centred_second_moment, mean_and_std
from nodejepa.evaluation.solver import DenseRows, SoftmaxLoss, SparseRows, minimise
from nodejepa.machine import side_by_side

Matrix: TypeAlias = npt.NDArray[np.float64]
Scaling: TypeAlias = Literal["standardise", "l2", "none"]
Positions: TypeAlias = npt.NDArray[np.int64]

_MAX_ROTATED = 2048  # the eigendecomposition of a larger matrix costs more than it saves
_MAX_ROTATED_SPARSE = 1024  # products with the sparse rows themselves are cheap, so give up earlier
_CONSTANT = 1e-9  # spread of a column over its size that is rounding noise, not information
_LARGE = 2**21  # elements of a training set above which it is not stacked with others
_STACK = 2**25  # elements of a stack: 256 MB of float64
_COSTLY = 2**23  # multiplications of the rows of one set with the weights of one C: some hundred iterations
_MANY_CLASSES = 20  # more take thousands of iterations, however small they are
_TOLERANCE = 1e-10
_TOLERANCE_SINGLE = 1e-6  # near what float32 products can tell apart; moves accuracy by less than 1e-3
_TOLERANCE_ROUGH = 1e-4  # enough to see which values of C are no candidates
_MAX_ITERATIONS = 2000


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Labelled rows ``[n, d]`` (dense or CSR) and the values of C to fit them with, ascending.

    Labels ``[n]`` count from 0; classes may be missing.
    """

    rows: Embeddings
    labels: npt.NDArray[np.int64]
    strengths: Sequence[float]


@dataclass(frozen=True, eq=False)
class LinearClassifiers:
    """One classifier for each value of C: ``rows @ weights[c].T + intercepts[c]`` are the logits.

    A class that the training set does not have gets intercept minus infinity: it is never predicted.
    """

    weights: Matrix  # [c, k, d]
    intercepts: Matrix  # [c, k]
    converged: npt.NDArray[np.bool_]  # [c]


def is_costly(rows: int, columns: int, num_classes: int) -> bool:
    """Whether a training set of this size is solved alone, in single precision."""
    return num_classes > _MANY_CLASSES or rows * min(rows, columns) * num_classes > _COSTLY


def fit_logistic(sets: Iterable[TrainingSet], num_classes: int) -> list[LinearClassifiers]:
    """Fit every training set with each of its values of C; labels are below ``num_classes``.

    Sets may differ in rows, columns, classes and values of C (of those solved together, not in how many).
    They are read one by one, so a generator keeps only what is being solved in memory.
    """
    stacks = (partial(_fit, members, num_classes) for members in _stacks(sets, num_classes))
    return [fit for fits in side_by_side(stacks) for fit in fits]


def _fit(members: list[TrainingSet], num_classes: int) -> list[LinearClassifiers]:
    stack = _Stack(members, num_classes)
    one_by_one = _is_alone(members[0], num_classes)
    settings = [[c] for c in range(len(members[0].strengths))] if one_by_one else [slice(None)]
    return stack.classifiers(*stack.solve(settings, _TOLERANCE_SINGLE if stack.single else _TOLERANCE))


class RoughFit:
    """A training set fitted with each of its values of C, well enough to see which are no candidates."""

    def __init__(self, training: TrainingSet, num_classes: int) -> None:
        self._stack = _Stack([training], num_classes)
        settings = [[c] for c in range(len(training.strengths))]
        self._found = self._stack.solve(settings, _TOLERANCE_ROUGH)

    @property
    def classifiers(self) -> LinearClassifiers:
        """For every value of C."""
        return self._stack.classifiers(*self._found)[0]

    def refined(self, settings: Sequence[int]) -> LinearClassifiers:
        """Fitted exactly, from here on, with some of the values of C (by position)."""
        places, rough = [[c] for c in settings], self._found[0]
        return self._stack.classifiers(*self._stack.solve(places, _TOLERANCE_SINGLE, rough))[0]


class _Stack:
    """Training sets padded to one size and solved together."""

    def __init__(self, members: list[TrainingSet], num_classes: int) -> None:
        count, width = members[0].rows.shape
        self.single = is_costly(count, width, num_classes)
        self.bases = [small_basis(member.rows, single_precision=self.single) for member in members]
        bases = self.bases
        labels = [member.labels for member in members]
        counts = torch.stack([torch.from_numpy(np.bincount(y, minlength=num_classes)) for y in labels])
        self.present = counts > 0
        # with two classes scikit-learn penalises their difference u by ||u||^2 / 2; as two rows it costs half
        share = torch.where(self.present.sum(dim=1, keepdim=True) == 2, 0.5, 1.0).double()
        self.strengths = share * torch.from_numpy(np.array([m.strengths for m in members]))
        self.frequency = counts.double() / counts.sum(dim=1, keepdim=True)
        # padded rows get a class that the set does have: an absent one has log probability minus infinity
        self.labels = _padded([torch.from_numpy(y - y[0]) for y in labels])
        self.labels += torch.tensor([[int(y[0])] for y in labels])
        self.weight = _padded([torch.ones(len(y), dtype=torch.float64) for y in labels])
        # sum of squares of every coordinate, the intercept's being the number of rows
        energy = _padded([torch.from_numpy(basis.energy) for basis in bases])
        self.energy = torch.cat([energy, counts.sum(dim=1, keepdim=True).double()], dim=1)

    def solve(
        self, settings: Sequence[list[int] | slice], tolerance: float, begun: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Solutions ``[g, c, k, r + 1]`` and which converged ``[g, c]``, for values of C by position.

        Each part of ``settings`` starts where the one before it ended, or at its own solution in ``begun``.
        """
        start, found, converged = self._start(), [], []
        for part in settings:
            loss = self._loss(self.strengths[:, part])
            start = start if begun is None else begun[:, part]
            point, done = minimise(
                loss,
                (start / loss.scale).flatten(2),
                tolerance=tolerance,
                max_iterations=_MAX_ITERATIONS,
            )
            found.append(self._without_common_part(point.view(loss.scale.shape) * loss.scale))
            converged.append(done)
            start = found[-1][:, -1:]
        return torch.cat(found, dim=1), torch.cat(converged, dim=1)

    @cached_property
    def _rows(self) -> DenseRows | SparseRows:
        first = self.bases[0]
        if first.coordinates is None and sp.issparse(first.rows):
            return SparseRows(first.rows.astype(np.float64), torch.from_numpy(first.mean))
        blocks = [
            torch.from_numpy(b.rows - b.mean.astype(b.rows.dtype) if b.coordinates is None else b.coordinates)
            for b in self.bases
        ]
        count, width = max(len(b) for b in blocks), max(b.shape[1] for b in blocks)
        values = blocks[0].new_zeros(len(blocks), count, width + 1)
        for group, block in enumerate(blocks):
            values[group, : len(block), : block.shape[1]] = block
            values[group, : len(block), -1] = 1
        return DenseRows(values)

    @property
    def _dtype(self) -> torch.dtype:
        rows = self._rows
        return rows.values.dtype if isinstance(rows, DenseRows) else torch.float64

    def _start(self) -> Tensor:
        """No weights, the log frequency of each class as intercept: ``[g, 1, k, r + 1]``."""
        start = torch.zeros(*self.frequency.shape, self.energy.shape[1], dtype=torch.float64)
        start[..., -1] = torch.where(self.present, self.frequency.clamp(min=1e-300).log(), 0.0)
        return start.unsqueeze(1).to(self._dtype)

    def _loss(self, strength: Tensor) -> SoftmaxLoss:
        # the Hessian's diagonal at the start: C sum_i p_k (1 - p_k) z_ij^2, plus 1 for a penalised weight
        variance = (self.frequency * (1 - self.frequency)).clamp(min=1e-3)
        hessian = strength[:, :, None, None] * variance[:, None, :, None] * self.energy[:, None, None, :]
        hessian[..., :-1] += 1
        absent = torch.zeros_like(self.frequency).masked_fill(~self.present, -torch.inf)
        scale = hessian.rsqrt().to(self._dtype)
        return SoftmaxLoss(self._rows, self.labels, self.weight, absent, strength, scale)

    def _without_common_part(self, solution: Tensor) -> Tensor:
        """What all classes share changes no probability and costs penalty: the minimum has none of it."""
        counted = self.present[:, None, :, None]
        common = (solution * counted).sum(dim=2, keepdim=True) / counted.sum(dim=2, keepdim=True)
        return torch.where(counted, solution - common, 0.0)

    def classifiers(self, solution: Tensor, converged: Tensor) -> list[LinearClassifiers]:
        """Back to the coordinates of the rows; the mean taken off there moves into the intercept."""
        classifiers = []
        for basis, ours, done, present in zip(self.bases, solution, converged, self.present, strict=True):
            settings, classes, _ = ours.shape
            ours = ours.double()
            rotated = ours[..., : len(basis.energy)].reshape(settings * classes, -1).numpy()
            weights = basis.lift(rotated)
            intercepts = ours[..., -1].numpy() - (weights @ basis.mean).reshape(settings, classes)
            intercepts[:, ~present.numpy()] = -np.inf
            classifiers.append(
                LinearClassifiers(weights.reshape(settings, classes, -1), intercepts, done.numpy())
            )
        return classifiers


def _is_alone(training: TrainingSet, num_classes: int) -> bool:
    count, width = training.rows.shape
    large = not worth_rotating(training.rows) or bool(min(count, width) * count > _LARGE)
    return large or is_costly(count, width, num_classes)


def _stacks(sets: Iterable[TrainingSet], num_classes: int) -> Iterator[list[TrainingSet]]:
    """What is solved together, in order: small sets while they fit; a large or costly one alone."""
    stack: list[TrainingSet] = []
    padded = 0
    for training in sets:
        count, width = training.rows.shape
        alone = _is_alone(training, num_classes)
        padded = max(padded, count * (min(count, width) + 1))
        if stack and (alone or padded * (len(stack) + 1) > _STACK):
            yield stack
            stack, padded = [], count * (min(count, width) + 1)
        stack.append(training)
        if alone:
            yield stack
            stack, padded = [], 0
    if stack:
        yield stack


def _padded(tensors: list[Tensor]) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True)


# ---------------------------------------------------------------- rows made fit for it


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
