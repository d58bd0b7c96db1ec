r"""Many regularised softmax regressions at once: their value and gradient, and limited-memory BFGS on them.

.. math:: f(W, b) = C \sum_i \left[ \log \sum_k e^{w_k \cdot z_i + b_k} - w_{y_i} \cdot z_i - b_{y_i} \right]
    + \tfrac12 \|W\|^2

The grid of problems is ``[groups, settings]``: a group is a training set, whose rows Z all its settings
share, and a setting a value of C. Variables of one problem are ``[classes, r + 1]``, the intercept last, and
are scaled so that the Hessian at the start (no weights, class frequencies as intercepts) has a unit diagonal.

Each problem has its own line search and history, but one call of the loss evaluates them all. Problems that
have converged leave the batch as soon as a whole row or column of the grid is done.

Large problems are in float32: points, gradients and history, but not the values, which float64 adds up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

_BLOCK_ELEMENTS = 2**21  # logits at a time: they stay in the cache between the two products
_HISTORY = 10
_ARMIJO = 1e-4
_SMALLEST_STEP = 1e-4  # of the full step; where even less does not help, rounding has the last word


@dataclass(frozen=True, eq=False)
class DenseRows:
    """Training rows of every group as one tensor ``[groups, n, r + 1]``: float64, or float32 for large ones.

    The last column is all ones; padded rows are all zero.
    """

    values: Tensor

    def blocks(self, columns: int) -> list[slice]:
        """Pieces of the rows to work on one after another when there are ``columns`` logits a row."""
        groups, count, _ = self.values.shape
        return _slices(count, max(1, _BLOCK_ELEMENTS // (groups * columns)))

    def logits(self, weights: Tensor, rows: slice) -> Tensor:
        """``[groups, m, r + 1]`` -> ``[groups, m, rows]``."""
        return weights @ self.values[:, rows].mT

    def gradient(self, residuals: Tensor, rows: slice) -> Tensor:
        """The transpose of it: ``[groups, m, rows]`` -> ``[groups, m, r + 1]``."""
        return residuals @ self.values[:, rows]

    def keep(self, groups: Tensor) -> DenseRows:
        """These groups only."""
        return self if len(groups) == len(self.values) else DenseRows(self.values[groups])


@dataclass(frozen=True, eq=False)
class SparseRows:
    """One group of CSR rows ``[n, d]``, centred on the fly: (X - 1 m^T) W = X W - 1 (m^T W)."""

    values: sp.csr_array
    mean: Tensor  # [d]

    def blocks(self, columns: int) -> list[slice]:
        """As of :class:`DenseRows`."""
        return _slices(self.values.shape[0], max(1, _BLOCK_ELEMENTS // columns))

    def logits(self, weights: Tensor, rows: slice) -> Tensor:
        """As of :class:`DenseRows`."""
        slopes, intercepts = weights[0, :, :-1], weights[0, :, -1]
        product = torch.from_numpy(self.values[rows] @ np.ascontiguousarray(slopes.T.numpy()))
        return (product + (intercepts - slopes @ self.mean)).mT.contiguous().unsqueeze(0)

    def gradient(self, residuals: Tensor, rows: slice) -> Tensor:
        """As of :class:`DenseRows`."""
        ours = residuals[0]
        total = ours.sum(dim=1, keepdim=True)
        product = torch.from_numpy(self.values[rows].T @ np.ascontiguousarray(ours.T.numpy())).mT
        return torch.cat([product - total * self.mean, total], dim=1).unsqueeze(0)

    def keep(self, groups: Tensor) -> SparseRows:
        """As of :class:`DenseRows`."""
        del groups  # the one group is there until the end
        return self


@dataclass(frozen=True, eq=False)
class SoftmaxLoss:
    """The grid of problems, as :func:`minimise` takes it."""

    rows: DenseRows | SparseRows
    labels: Tensor  # [g, n], any class for padded rows
    weight: Tensor  # [g, n], 1 for a real row and 0 for a padded one
    absent: Tensor  # [g, k], minus infinity for a class without training rows, else 0
    strength: Tensor  # [g, c], the values of C
    scale: Tensor  # [g, c, k, r + 1], of the rows' type: variables times scale are weights and intercepts

    def __call__(self, point: Tensor) -> tuple[Tensor, Tensor]:
        """Values ``[g, c]`` and gradients with respect to ``point`` ``[g, c, k (r + 1)]``."""
        groups, settings, classes, size = self.scale.shape
        weights = point.view(self.scale.shape) * self.scale
        stacked = weights.reshape(groups, settings * classes, size)
        loss = torch.zeros_like(self.strength)
        gradient = torch.zeros_like(stacked)
        incomplete = bool(self.absent.any())
        for rows in self.rows.blocks(settings * classes):
            logits = self.rows.logits(stacked, rows).view(groups, settings, classes, -1)
            if incomplete:
                logits += self.absent[:, None, :, None].to(logits.dtype)
            residuals = torch.softmax(logits, dim=2)
            wanted = self.labels[:, None, None, rows].expand(groups, settings, 1, -1)
            chance = residuals.gather(2, wanted).squeeze(2).clamp_(min=torch.finfo(residuals.dtype).tiny)
            loss -= (chance.double().log_() * self.weight[:, None, rows]).sum(dim=-1)
            residuals.scatter_add_(2, wanted, residuals.new_full((1, 1, 1, 1), -1.0).expand(wanted.shape))
            gradient += self.rows.gradient(residuals.view(groups, settings * classes, -1), rows)
        weights[..., -1] = 0  # intercepts are not penalised
        value = self.strength * loss + 0.5 * weights.square().sum(dim=(2, 3), dtype=torch.float64)
        strength = self.strength[..., None, None].to(point.dtype)
        slope = strength * gradient.view(self.scale.shape) + weights
        return value, (slope * self.scale).view(point.shape)

    def keep(self, groups: Tensor, settings: Tensor) -> SoftmaxLoss:
        """These groups and settings only."""
        return replace(
            self,
            rows=self.rows.keep(groups),
            labels=self.labels[groups],
            weight=self.weight[groups],
            absent=self.absent[groups],
            strength=self.strength[groups[:, None], settings],
            scale=self.scale[groups[:, None], settings],
        )


def _slices(count: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def minimise(
    objective: SoftmaxLoss, start: Tensor, *, tolerance: float, max_iterations: int
) -> tuple[Tensor, Tensor]:
    """Minimise every function of the grid.

    Args:
        objective: smooth, strictly convex functions, their Hessians near a multiple of the identity.
        start: ``[groups, settings, size]``.
        tolerance: a problem has converged when the predicted decrease of its value, half of
            ``g^T H^{-1} g``, is below ``tolerance`` times the value.
        max_iterations: evaluations after which the rest is given back as it is.

    Returns:
        The minimisers (shape of ``start``) and which problems converged ``[groups, settings]``.
    """
    found = start.clone()
    converged = torch.zeros(start.shape[:2], dtype=torch.bool)
    rows, columns = torch.arange(start.shape[0]), torch.arange(start.shape[1])
    value, gradient = objective(start)
    state = _State.begin(start, value, gradient)
    for _ in range(max_iterations):
        state.done |= state.predicted_decrease() <= tolerance * state.value.abs()
        if state.done.any():
            live_rows = (~state.done).any(dim=1).nonzero().ravel()
            live_columns = (~state.done).any(dim=0).nonzero().ravel()
            if len(live_rows) < len(rows) or len(live_columns) < len(columns):
                found[rows[:, None], columns] = state.point
                converged[rows[:, None], columns] = state.done
                rows, columns = rows[live_rows], columns[live_columns]
                if len(rows) == 0:
                    return found, converged
                state = state.keep(live_rows, live_columns)
                objective = objective.keep(live_rows, live_columns)
        trial = state.trial_point()
        state.advance(trial, *objective(trial))
    found[rows[:, None], columns] = state.point
    converged[rows[:, None], columns] = state.done
    return found, converged


@dataclass
class _State:
    """Where every problem of the grid stands.

    A rejected step is retried shorter in the next evaluation: no problem waits for another's line search.
    """

    point: Tensor  # [g, c, v]
    value: Tensor  # [g, c], float64
    gradient: Tensor  # [g, c, v]
    direction: Tensor  # [g, c, v]
    slope: Tensor  # [g, c], gradient . direction
    step: Tensor  # [g, c]
    done: Tensor  # [g, c]
    gamma: Tensor  # [g, c], the inverse Hessian is near this multiple of the identity
    history: Tensor  # [g, c, 2 m, v]: rings of m past moves S and m gradient changes Y; skipped pairs are 0
    products: Tensor  # [g, c, 2 m, m], float64: S and Y times Y
    latest: int = -1  # slot of the rings written last

    @classmethod
    def begin(cls, point: Tensor, value: Tensor, gradient: Tensor) -> _State:
        groups, settings, size = point.shape
        return cls(
            point=point.clone(),
            value=value,
            gradient=gradient,
            direction=-gradient,
            slope=-gradient.square().sum(dim=-1),
            step=point.new_ones(groups, settings),
            done=torch.zeros_like(value, dtype=torch.bool),
            gamma=point.new_ones(groups, settings),
            history=point.new_zeros(groups, settings, 2 * _HISTORY, size),
            products=value.new_zeros(groups, settings, 2 * _HISTORY, _HISTORY),
        )

    def keep(self, rows: Tensor, columns: Tensor) -> _State:
        tensors = {name: part for name, part in vars(self).items() if isinstance(part, Tensor)}
        kept = {name: tensor[rows[:, None], columns] for name, tensor in tensors.items()}
        return _State(**kept, latest=self.latest)

    def predicted_decrease(self) -> Tensor:
        return torch.where(self.step < _SMALLEST_STEP, 0.0, -0.5 * self.slope)

    def trial_point(self) -> Tensor:
        step = torch.where(self.done, 0.0, self.step)
        return torch.addcmul(self.point, step.unsqueeze(-1), self.direction)

    def advance(self, trial: Tensor, value: Tensor, gradient: Tensor) -> None:
        """Accept the trial points that decrease enough (Armijo), shorten the other steps."""
        accepted = ~self.done & (value <= self.value + _ARMIJO * self.step * self.slope)
        change = gradient - self.gradient
        taken = accepted.unsqueeze(-1)
        fresh = self._new_direction(trial - self.point, change, gradient, accepted)
        self.point = torch.where(taken, trial, self.point)
        self.gradient = torch.where(taken, gradient, self.gradient)
        self.value = torch.where(accepted, value, self.value)
        self.direction = torch.where(taken, fresh, self.direction)
        self.slope = torch.where(accepted, (gradient * fresh).sum(dim=-1), self.slope)
        self.step = torch.where(accepted, 1.0, 0.5 * self.step)

    def _new_direction(self, move: Tensor, change: Tensor, gradient: Tensor, accepted: Tensor) -> Tensor:
        r"""Put the pair (s, y) into the history and return ``-H g``, H the inverse BFGS matrix.

        .. math:: H = \gamma I + \begin{pmatrix} S & \gamma Y \end{pmatrix}
            \begin{pmatrix} R^{-T} (D + \gamma Y^T Y) R^{-1} & -R^{-T} \\ -R^{-1} & 0 \end{pmatrix}
            \begin{pmatrix} S^T \\ \gamma Y^T \end{pmatrix}

        (compact form of Byrd, Nocedal & Schnabel 1994). R is the upper triangle of S^T Y in order of time, D
        its diagonal. It reads the history twice; the two-loop recursion makes some forty passes over vectors.
        """
        product = (move * change).sum(dim=-1)
        useful = accepted & (product > 0)  # always so for a convex function, up to rounding
        self.gamma = torch.where(useful, product / change.square().sum(dim=-1), self.gamma)
        change = torch.where(useful.unsqueeze(-1), change, 0.0)
        slot = self.latest = (self.latest + 1) % _HISTORY
        self.history[:, :, slot] = torch.where(useful.unsqueeze(-1), move, 0.0)
        self.history[:, :, _HISTORY + slot] = change
        along = (torch.stack([gradient, change], dim=-2) @ self.history.mT).mT.double()  # [g, c, 2 m, 2]
        # R needs s_i . y_j for i not later than j only: older columns stay valid when a slot is reused
        self.products[..., slot] = along[..., 1]
        self.products[:, :, _HISTORY + slot] = along[:, :, _HISTORY:, 1]

        in_time = torch.arange(slot + 1, slot + 1 + _HISTORY) % _HISTORY
        gamma = self.gamma[..., None, None].double()
        moves_changes = self.products[:, :, in_time[:, None], in_time]
        changes_changes = self.products[:, :, _HISTORY + in_time[:, None], in_time]
        diagonal = moves_changes.diagonal(dim1=-2, dim2=-1)
        skipped = torch.diag_embed((diagonal == 0).to(diagonal.dtype))  # keeps R invertible, adds nothing
        upper = moves_changes.triu() + skipped
        middle = gamma * changes_changes + torch.diag_embed(diagonal)
        of_changes = torch.linalg.solve_triangular(upper, along[:, :, in_time, :1], upper=True)
        rest = middle @ of_changes - gamma * along[:, :, _HISTORY + in_time, :1]
        of_moves = torch.linalg.solve_triangular(upper.mT, rest, upper=False)
        coefficients = torch.empty_like(along[..., :1])
        coefficients[:, :, in_time] = of_moves
        coefficients[:, :, _HISTORY + in_time] = -gamma * of_changes
        combined: Tensor = (coefficients.mT.to(gradient.dtype) @ self.history).squeeze(-2)
        return -(self.gamma.unsqueeze(-1) * gradient + combined)
