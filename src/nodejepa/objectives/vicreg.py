"""VICReg's guards against collapse (Bardes, Ponce & LeCun 2022), both from one covariance matrix."""

from typing import Any, Literal

import torch
from torch import Tensor

from nodejepa.training.distributed import ALONE, Reduction

CovarianceOver = Literal["pairs", "dimensions"]


def covariance_matrix(z: Tensor, reduction: Reduction = ALONE) -> Tensor:
    r"""Sample covariance ``[D, D]`` of embeddings ``[n, D]``, those of all micro-batches.

    .. math:: C = \frac{1}{n-1} \sum_i (z_i - \bar z)(z_i - \bar z)^\top
    """
    covariance: Tensor = _Covariance.apply(z, reduction)  # type: ignore[no-untyped-call]
    return covariance


class _Covariance(torch.autograd.Function):
    """C is symmetric in its two factors, so its gradient is one product where autograd would take two."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, reduction: Reduction) -> Tensor:
        centred, freedom = z - reduction.mean(z), max(reduction.rows(z) - 1, 1)
        ctx.save_for_backward(centred)
        ctx.freedom = freedom
        return reduction.sum(centred.T @ centred) / freedom

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (centred,) = ctx.saved_tensors
        # columns of `centred` sum to zero, and so do those of its product: centring adds nothing
        return centred @ ((grads[0] + grads[0].T) / ctx.freedom), None


def variance_loss(covariance: Tensor, eps: float = 1e-4) -> Tensor:
    r"""Hinge that keeps every dimension's standard deviation above 1.

    .. math:: \frac{1}{D} \sum_j \max\left(0, 1 - \sqrt{C_{jj} + \epsilon}\right)
    """
    return torch.relu(1 - torch.sqrt(covariance.diagonal() + eps)).mean()


def covariance_loss(covariance: Tensor, over: CovarianceOver = "pairs") -> Tensor:
    r"""Decorrelates dimensions: the mean over ``"pairs"``, or VICReg's sum divided by ``"dimensions"``.

    .. math:: \frac{1}{D (D - 1)} \sum_{i \ne j} C_{ij}^2
        \quad\text{or}\quad \frac{1}{D} \sum_{i \ne j} C_{ij}^2
    """
    dimensions = covariance.shape[0]
    off_diagonal = covariance.square().sum() - covariance.diagonal().square().sum()
    return off_diagonal / (dimensions * max(dimensions - 1, 1) if over == "pairs" else dimensions)
