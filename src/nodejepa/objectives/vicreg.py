"""VICReg's guards against collapse (Bardes, Ponce & LeCun 2022), both from one covariance matrix."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def covariance_matrix(z: Tensor) -> Tensor:
    r"""Sample covariance ``[D, D]`` of embeddings ``[n, D]``.

    .. math:: C = \frac{1}{n-1} \sum_i (z_i - \bar z)(z_i - \bar z)^\top
    """
    covariance: Tensor = _Covariance.apply(z)  # type: ignore[no-untyped-call]
    return covariance


class _Covariance(torch.autograd.Function):
    """C is symmetric in its two factors, so its gradient is one product where autograd would take two."""

    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:
        centred = z - z.mean(dim=0)
        ctx.save_for_backward(centred)
        return centred.T @ centred / max(z.shape[0] - 1, 1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (centred,) = ctx.saved_tensors
        # columns of `centred` sum to zero, and so do those of its product: centring adds nothing
        gradient: Tensor = centred @ ((grads[0] + grads[0].T) / max(centred.shape[0] - 1, 1))
        return gradient


def variance_loss(covariance: Tensor, eps: float = 1e-4) -> Tensor:
    r"""Hinge that keeps every dimension's standard deviation above 1.

    .. math:: \frac{1}{D} \sum_j \max\left(0, 1 - \sqrt{C_{jj} + \epsilon}\right)
    """
    return torch.relu(1 - torch.sqrt(covariance.diagonal() + eps)).mean()


def covariance_loss(covariance: Tensor) -> Tensor:
    r"""Decorrelates dimensions.

    .. math:: \frac{1}{D} \sum_{i \ne j} C_{ij}^2
    """
    off_diagonal = covariance.square().sum() - covariance.diagonal().square().sum()
    return off_diagonal / covariance.shape[0]
