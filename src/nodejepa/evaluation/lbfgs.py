"""Limited-memory BFGS on many small convex problems at once.

The problems form a grid ``[groups, settings]``; each has its own variables, line search and history, but one
call of the objective evaluates them all. Problems that have converged leave the batch as soon as a whole row
or column of the grid is done.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nodejepa.evaluation.softmax_loss import SoftmaxLoss

_HISTORY = 10
_ARMIJO = 1e-4
_SMALLEST_STEP = 1e-4  # of the full step; where even less does not help, rounding has the last word


def minimise(
    objective: SoftmaxLoss, start: Tensor, *, tolerance: float, max_iterations: int
) -> tuple[Tensor, Tensor]:
    """Minimise every function of the grid.

    Args:
        objective: smooth, strictly convex functions, their Hessians near a multiple of the identity.
        start: ``[groups, settings, size]``, float64.
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
    value: Tensor  # [g, c]
    gradient: Tensor  # [g, c, v]
    direction: Tensor  # [g, c, v]
    slope: Tensor  # [g, c], gradient . direction
    step: Tensor  # [g, c]
    done: Tensor  # [g, c]
    gamma: Tensor  # [g, c], the inverse Hessian is near this multiple of the identity
    history: Tensor  # [g, c, 2 m, v]: rings of m past moves S and m gradient changes Y; skipped pairs are 0
    products: Tensor  # [g, c, 2 m, m]: S and Y times Y
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
            step=torch.ones_like(value),
            done=torch.zeros_like(value, dtype=torch.bool),
            gamma=torch.ones_like(value),
            history=point.new_zeros(groups, settings, 2 * _HISTORY, size),
            products=point.new_zeros(groups, settings, 2 * _HISTORY, _HISTORY),
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
        fresh = self._remember_and_turn(trial - self.point, change, gradient, accepted)
        self.point = torch.where(taken, trial, self.point)
        self.gradient = torch.where(taken, gradient, self.gradient)
        self.value = torch.where(accepted, value, self.value)
        self.direction = torch.where(taken, fresh, self.direction)
        self.slope = torch.where(accepted, (gradient * fresh).sum(dim=-1), self.slope)
        self.step = torch.where(accepted, 1.0, 0.5 * self.step)

    def _remember_and_turn(self, move: Tensor, change: Tensor, gradient: Tensor, accepted: Tensor) -> Tensor:
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
        along = self.history @ torch.stack([gradient, change], dim=-1)  # [g, c, 2 m, 2]
        # R needs s_i . y_j for i not later than j only: older columns stay valid when a slot is reused
        self.products[..., slot] = along[..., 1]
        self.products[:, :, _HISTORY + slot] = along[:, :, _HISTORY:, 1]

        in_time = torch.arange(slot + 1, slot + 1 + _HISTORY) % _HISTORY
        gamma = self.gamma[..., None, None]
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
        combined: Tensor = (coefficients.mT @ self.history).squeeze(-2)
        return -(self.gamma.unsqueeze(-1) * gradient + combined)
