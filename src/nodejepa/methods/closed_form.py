"""Linear latent prediction, solved exactly: which directions of the features do a node's neighbours predict?

With latents z = V'x kept isotropic, the context of a node the mean latent of its neighbours, and a linear
predictor, the best V solves a generalised eigenproblem (canonical correlation between a node and its
neighbourhood):

    C = X'X / n        D = (X'NX + X'N'X) / 2n        D v = rho (C + eps I) v

N is the mean over neighbours, and sums run over the n nodes that have some. rho_j says how well latent j is
predicted, and its sign whether neighbours are alike (positive) or different. There is no seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

from nodejepa.errors import GraphError
from nodejepa.machine import one_thread, progress_bar
from nodejepa.nn.inputs import RowInputs
from nodejepa.nn.sparse import FeatureMatrix, SparseOperator, multiply
from nodejepa.training.distributed import SINGLE, ProcessGroup

WHOLE_UP_TO = 2048  # columns; of wider features only the leading principal directions are computed
_NOTHING = 1e-7  # of the largest eigenvalue: what is below is rounding noise of single precision
_CHUNK = 256  # columns that are multiplied at a time: no more of X, X V or N X V is ever dense
_OVERSAMPLE, _ROUNDS = 64, 4  # of the search for principal directions


@dataclass(frozen=True, eq=False)
class SecondMoments:
    """What the solution needs of a graph: a few small matrices, in float64, in a basis Q of the features.

    ``second`` is Q'CQ and ``cross`` Q'DQ ``[r, r]``, ``mean`` and ``seen`` ``[r]`` the mean of a node and of
    its neighbours, ``basis`` is Q ``[F, r]``.
    """

    second: Tensor
    cross: Tensor
    mean: Tensor
    seen: Tensor
    basis: Tensor

    def centred(self) -> SecondMoments:
        """The same with the mean taken off the features."""
        between = torch.outer(self.mean, self.seen)
        second = self.second - torch.outer(self.mean, self.mean)
        zero = torch.zeros_like(self.mean)
        return SecondMoments(second, self.cross - (between + between.T) / 2, zero, zero, self.basis)

    def scale(self, weight: Tensor) -> float:
        """Root of the mean squared norm of ``weight' x``, ``weight`` ``[F, k]``; 1 where all are 0."""
        inside = self.basis.T @ weight
        return float((inside * (self.second @ inside)).sum().sqrt()) or 1.0

    def to_features(self, vectors: Tensor) -> Tensor:
        """Columns in the basis as columns ``[F, k]`` of the features."""
        return self.basis @ vectors


class Sums:
    """Sums over nodes, all that the solution asks of a graph: products with X, N and their transposes.

    A graph is read by blocks of rows, which are summed in float64; one in memory is one block. Of several
    processes each sums over some of the blocks. What goes over edges reads rows from all over the graph:
    there each machine takes some of the columns instead.
    """

    def __init__(self, inputs: RowInputs, group: ProcessGroup = SINGLE, columns: slice = slice(None)) -> None:
        self.inputs, self.group = inputs, group
        self.columns = range(inputs.num_features)[columns]  # of X, the others are not looked at
        self.spans = [*inputs.graph.spans()]
        self.mine = [self.spans[i] for i in group.share(len(self.spans))]
        self.has = torch.zeros(inputs.num_nodes, 1, device=inputs.device)
        for low, high in self.mine:
            found = np.diff(inputs.graph.in_rows(low, high).indptr) > 0
            self.has[low:high, 0] = torch.from_numpy(found).to(self.has)
        self.has = group.all_reduce(self.has)
        self.count = float(self.has.sum(dtype=torch.float64))  # nodes that have neighbours

    def second(self, v: Tensor) -> Tensor:
        """``X' (has * X v)`` ``[F, k]``: one pass over X."""

        def blocks() -> Iterator[Tensor]:
            for low, high in self.mine:
                x = self.inputs.feature_rows(low, high)
                yield self._back(x, self._onto(x, v) * self.has[low:high])

        return self._over_all(_sum(blocks()), v.shape)

    def cross(self, v: Tensor) -> Tensor:
        """``X' (N + N') X v`` ``[F, k]``: two passes over X and one over the edges for a group of columns."""
        space = self.inputs.workspace
        with space.holding(1, self.group):  # the latents
            share = self.group.share(v.shape[1], space.team)
            mine = v[:, share.start : share.stop]
            found = [self._cross(mine[:, group].contiguous()) for group in space.column_groups(len(share))]
        if self.group.size == 1:
            return torch.cat(found, dim=1)
        total = torch.zeros(v.shape, dtype=torch.float64, device=v.device)
        if found:
            total[:, share.start : share.stop] = torch.cat(found, dim=1)
        return self.group.all_reduce(total)

    def _cross(self, v: Tensor) -> Tensor:
        inputs = self.inputs
        latents = inputs.workspace.fill(v.shape[1], lambda a, b: self._onto(inputs.feature_rows(a, b), v))

        def blocks() -> Iterator[Tensor]:
            shown = inputs.workspace.on_disk and self.group.leads
            spans = inputs.workspace.own_spans()
            with progress_bar("Summing over rows", total=len(spans), shown=shown) as advance:
                for low, high in spans:
                    both = multiply(inputs.operator_rows("neighbour_mean", low, high).tensor, latents)
                    both += multiply(inputs.transposed_mean_rows(low, high), latents)
                    yield self._back(inputs.feature_rows(low, high), both)
                    advance()

        total = _sum(blocks())
        return torch.zeros(len(self.columns), v.shape[1]) if total is None else total

    def means(self) -> tuple[Tensor, Tensor]:
        """``X' has`` and ``X' N' has`` ``[F]``: sums of a node's features and of its neighbours'."""

        def blocks() -> Iterator[Tensor]:
            for low, high in self.mine:
                x = self.inputs.feature_rows(low, high)
                seen = multiply(self.inputs.transposed_mean_rows(low, high), self.has)
                yield torch.cat([self._back(x, self.has[low:high]), self._back(x, seen)], dim=1)

        both = self._over_all(_sum(blocks()), (len(self.columns), 2))
        return both[:, 0], both[:, 1]

    def _onto(self, x: FeatureMatrix, v: Tensor) -> Tensor:
        """``X v``."""
        if len(self.columns) < self.inputs.num_features:  # zeros for those that are not looked at
            above, below = self.columns.start, self.inputs.num_features - self.columns.stop
            v = torch.nn.functional.pad(v, (0, 0, above, below))
        return multiply(x.tensor, v) if isinstance(x, SparseOperator) else x @ v

    def _back(self, x: FeatureMatrix, u: Tensor) -> Tensor:
        """``X' u``."""
        found = multiply(x.transposed, u) if isinstance(x, SparseOperator) else x.T @ u
        return found[self.columns.start : self.columns.stop]

    def _over_all(self, mine: Tensor | None, shape: Sequence[int]) -> Tensor:
        """The sum of all processes' blocks, of which this one may have none."""
        if mine is None:
            mine = torch.zeros(*shape, device=self.inputs.device)
        return mine if self.group.size == 1 else self.group.all_reduce(mine.double())


def _sum(blocks: Iterable[Tensor]) -> Tensor | None:
    """Their sum in float64; a single block as it is."""
    total: Tensor | None = None
    for block in blocks:
        total = block if total is None else total.double() + block
    return total


def second_moments(
    inputs: RowInputs, *, basis: int, group: ProcessGroup = SINGLE, columns: slice = slice(None)
) -> SecondMoments:
    """C, D and the means of a graph, in memory or on disk, in at most ``basis`` principal directions.

    Every process of the group asks, and all get the same. Some ``columns`` of the features can be asked for.
    """
    sums = Sums(inputs, group, columns)
    count = sums.count
    if count == 0:
        raise GraphError(
            "the graph has no edges, and neighbours are what this method predicts from",
            where="edges",
            fix="Give edges, or use the features themselves (method raw).",
        )
    own, seen = (total / count for total in sums.means())
    values, q = _principal_directions(sums, basis)
    if len(values) == 0:
        raise GraphError(
            "all features are 0 on nodes that have neighbours", where="features", fix="Give other features."
        )
    crossed = _symmetric(q.T @ _chunked(lambda v: sums.cross(v) / (2 * count), q.float()))
    return SecondMoments(torch.diag(values), crossed, q.T @ own.double(), q.T @ seen.double(), q)


def _eigh(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """By one thread: a second one made Cora's nine times slower.

    LAPACK's divide and conquer gives up on some matrices of low rank, such as those of fewer nodes than
    columns; its slower QR iteration does not.
    """
    with one_thread():
        try:
            values, vectors = torch.linalg.eigh(matrix)
        except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
            found = scipy.linalg.eigh(matrix.cpu().numpy(), driver="ev")
            values, vectors = (torch.from_numpy(array).to(matrix) for array in found)
    return values, vectors


def _symmetric(matrix: Tensor) -> Tensor:
    return (matrix + matrix.T) / 2


def _chunked(product: Callable[[Tensor], Tensor], v: Tensor) -> Tensor:
    return torch.cat([product(part.contiguous()).double() for part in torch.split(v, _CHUNK, dim=1)], dim=1)


def _principal_directions(sums: Sums, count: int) -> tuple[Tensor, Tensor]:
    """Leading eigenvalues and eigenvectors of C; those that are 0 are left out.

    All of C is formed where that is cheap; else block iteration from a fixed start (Halko et al. 2011). What
    is small is computed by the first process alone.
    """
    columns, device = len(sums.columns), sums.inputs.device

    def times_c(v: Tensor) -> Tensor:
        return _chunked(lambda part: sums.second(part) / sums.count, v)

    q = torch.eye(columns, device=device)
    if columns > WHOLE_UP_TO:
        start = torch.Generator().manual_seed(0)
        q = torch.randn(columns, min(count + _OVERSAMPLE, columns), generator=start).to(device)
        for _ in range(_ROUNDS):
            q = _orthogonal(times_c(q), sums.group).to(device)
    product = times_c(q)

    def leading() -> dict[str, Tensor]:
        values, vectors = _eigh(_symmetric(q.double().T @ product))
        order = torch.argsort(values, descending=True, stable=True)[:count]
        kept = order[values[order] > _NOTHING * values[order[0]]]
        return {"values": values[kept], "q": q.double() @ vectors[:, kept]}

    found = sums.group.first(leading)
    return found["values"].to(device), found["q"].to(device)


def _orthogonal(columns: Tensor, group: ProcessGroup) -> Tensor:
    return group.first(lambda: {"q": torch.linalg.qr(columns.float()).Q})["q"]


class Spectrum:
    """The eigenproblem of :class:`SecondMoments` for any eps: C is diagonalised once."""

    def __init__(self, moments: SecondMoments) -> None:
        self.moments = moments
        values, self._vectors = _eigh(moments.second)
        self._values = values.clamp_min(0)  # the mean may have been taken off
        self._cross = self._vectors.T @ moments.cross @ self._vectors
        self.trace = float(self._values.sum())

    def _whitened(self, eps: float) -> tuple[Tensor, Tensor]:
        scale = 1 / (self._values + eps).sqrt()
        return scale, _symmetric(scale[:, None] * self._cross * scale)

    def rho(self, eps: float, count: int) -> Tensor:
        """The ``count`` largest rho by absolute value, the largest first."""
        with one_thread():
            values: Tensor = torch.linalg.eigvalsh(self._whitened(eps)[1])
        return values[torch.argsort(values.abs(), descending=True, stable=True)[:count]]

    def solve(self, eps: float, count: int) -> tuple[Tensor, Tensor]:
        """V ``[F, L]`` with v'(C + eps I)v = 1, and rho ``[L]``; the largest entry of each v is positive."""
        scale, matrix = self._whitened(eps)
        values, vectors = _eigh(matrix)
        largest = torch.argsort(values.abs(), descending=True, stable=True)[:count]
        v = self.moments.to_features(self._vectors @ (scale[:, None] * vectors[:, largest]))
        entry = v.gather(0, v.abs().argmax(dim=0, keepdim=True))
        return v * torch.where(entry < 0, -1.0, 1.0), values[largest]

    def shrinkage_for(self, predictability: float, count: int) -> float:
        """eps as a share of the trace, so that the ``count`` largest |rho| sum to ``predictability``.

        |rho| fall as eps grows. To half a doubling, between 1 and 2^-10; the end where neither is enough.
        """

        @cache
        def at(half_doublings: int) -> float:
            return float(self.rho(self.trace * 2 ** (-half_doublings / 2), count).abs().sum())

        low, high = 0, 20
        if at(low) >= predictability:
            high = low
        elif at(high) <= predictability:
            low = high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if at(middle) < predictability else (low, middle)
        below = low == high or predictability / at(low) < at(high) / predictability
        return math.pow(2, -(low if below else high) / 2)
