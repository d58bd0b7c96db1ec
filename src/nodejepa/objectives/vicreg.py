"""VICReg's guards against collapse (Bardes, Ponce & LeCun 2022), both from one covariance matrix."""

from __future__ import annotations

import torch
from torch import Tensor


def covariance_matrix(z: Tensor) -> Tensor:
    r"""Sample covariance ``[D, D]`` of embeddings ``[n, D]``.

    .. math:: C = \frac{1}{n-1} \sum_i (z_i - \bar z)(z_i - \bar z)^\top
    """
    centred = z - z.mean(dim=0)
    return centred.T @ centred / max(z.shape[0] - 1, 1)


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
