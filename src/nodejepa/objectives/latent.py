"""Losses of latent prediction: distances of guess and target, VICReg's guards (Bardes, Ponce & LeCun 2022).

Both guards come from one covariance matrix.
"""

from typing import Any, Literal

import torch
from torch import Tensor

from nodejepa.nn.sparse import SparseOperator
from nodejepa.training.distributed import ALONE, Reduction

CovarianceOver = Literal["pairs", "dimensions"]


def cosine_distance(guess: Tensor, wanted: Tensor) -> Tensor:
    r"""Mean cosine distance (NodeJEPA, Eq. 1), both ``[n, D]``.

    .. math:: \frac{1}{n} \sum_i \left(1 - \frac{g_i \cdot w_i}{\lVert g_i \rVert \lVert w_i \rVert}\right)
    """
    return 1 - torch.nn.functional.cosine_similarity(guess, wanted, dim=1).mean()


def l2_distance(guess: Tensor, wanted: Tensor) -> Tensor:
    r"""Mean squared distance (ablation F), both ``[n, D]``.

    .. math:: \frac{1}{n D} \sum_i \lVert g_i - w_i \rVert^2
    """
    return torch.nn.functional.mse_loss(guess, wanted)


def hyperbola_distance(guess: Tensor, wanted: Tensor, *, limit: float = 5.0) -> Tensor:
    r"""Graph-JEPA's term (Skenderi et al., arXiv 2309.16014): Smooth-L1 between points on the unit hyperbola.

    .. math:: a = \mathrm{clamp}\left(\tfrac1D \textstyle\sum_j z_j, -5, 5\right), \quad
        p(z) = (\cosh a, \sinh a)

    The clamp keeps cosh from overflowing; inside it the term is exact.
    """
    return torch.nn.functional.smooth_l1_loss(_point(guess, limit), _point(wanted, limit))


def _point(z: Tensor, limit: float) -> Tensor:
    a = z.mean(dim=1).clamp(-limit, limit)
    return torch.stack([torch.cosh(a), torch.sinh(a)], dim=1)


def laplacian_energy(z: Tensor, propagation: SparseOperator) -> Tensor:
    r"""Dirichlet energy of embeddings ``[n, D]`` under the normalised Laplacian I - S.

    .. math:: \frac{1}{nD} \mathrm{tr}\left(Z^\top (I - S) Z\right)

    Promised in the paper's abstract, absent from its loss: weight 0 in the ``paper`` preset.
    """
    return (z * (z - propagation(z))).mean()


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
