r"""Value and gradient of many regularised softmax regressions in one go.

.. math:: f(W, b) = C \sum_i \left[ \log \sum_k e^{w_k \cdot z_i + b_k} - w_{y_i} \cdot z_i - b_{y_i} \right]
    + \tfrac12 \|W\|^2

The grid of problems is ``[groups, settings]``: a group is a training set, whose rows Z all its settings
share, and a setting a value of C. Variables of one problem are ``[classes, r + 1]``, the intercept last, and
are scaled so that the Hessian at the start (no weights, class frequencies as intercepts) has a unit diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

_BLOCK_ELEMENTS = 2**21  # logits at a time: they stay in the cache between the two products


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
        return weights.to(self.values.dtype) @ self.values[:, rows].mT

    def gradient(self, residuals: Tensor, rows: slice) -> Tensor:
        """The transpose of it: ``[groups, m, rows]`` -> ``[groups, m, r + 1]``."""
        return (residuals @ self.values[:, rows]).double()

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
    """The grid of problems, as :func:`nodejepa.evaluation.lbfgs.minimise` takes it."""

    rows: DenseRows | SparseRows
    labels: Tensor  # [g, n], any class for padded rows
    weight: Tensor  # [g, n], 1 for a real row and 0 for a padded one
    absent: Tensor  # [g, k], minus infinity for a class without training rows, else 0
    strength: Tensor  # [g, c], the values of C
    scale: Tensor  # [g, c, k, r + 1]: variables times scale are weights and intercepts

    def __call__(self, point: Tensor) -> tuple[Tensor, Tensor]:
        """Values ``[g, c]`` and gradients with respect to ``point`` ``[g, c, k (r + 1)]``."""
        groups, settings, classes, size = self.scale.shape
        weights = point.view(self.scale.shape) * self.scale
        stacked = weights.reshape(groups, settings * classes, size)
        loss = point.new_zeros(groups, settings)
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
        value = self.strength * loss + 0.5 * weights.square().sum(dim=(2, 3))
        slope = self.strength[..., None, None] * gradient.view(self.scale.shape) + weights
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
