"""CCA-SSG: two views agree, and the dimensions of each are uncorrelated (Zhang et al. 2021)."""

import torch
from torch import Tensor

from nodejepa.objectives.vicreg import covariance_matrix
from nodejepa.training.distributed import ALONE, Reduction

_DEAD = 1e-10  # a column whose variance is below this share of its mean square is constant up to rounding


def cca_terms(one: Tensor, two: Tensor, reduction: Reduction = ALONE) -> tuple[Tensor, Tensor]:
    r"""Invariance and decorrelation of two views' embeddings ``[n, D]``; the loss is their weighted sum.

    .. math:: -\mathrm{tr}\left(\tfrac1n Z_1^\top Z_2\right), \qquad
        \sum_v \left\Vert I - \tfrac1n Z_v^\top Z_v \right\Vert_F^2

    with Z the embeddings, columns standardised by :func:`standardise`.
    """
    one, two = standardise(one, reduction), standardise(two, reduction)
    size = reduction.rows(one)
    invariance = -reduction.sum((one * two).sum()) / size
    # columns are centred already; the shared function has the cheaper gradient, and divides by n - 1
    decorrelation = sum(
        (_off_identity(covariance_matrix(z, reduction) * ((size - 1) / size)) for z in (one, two)),
        torch.zeros(()),
    )
    return invariance, decorrelation


def standardise(z: Tensor, reduction: Reduction = ALONE) -> Tensor:
    r"""Columns of ``[n, D]`` with mean 0 and variance 1; a constant column becomes 0, without gradient."""
    centred = z - reduction.mean(z)
    variance = reduction.mean(centred.square())
    alive = variance > _DEAD * reduction.mean(z.detach().square())
    scale = torch.where(alive, variance, 1.0).rsqrt()  # the square root has no slope at 0: keep it away
    return centred * (scale * alive)


def _off_identity(matrix: Tensor) -> Tensor:
    """Squared Frobenius norm of ``I - matrix``."""
    return (torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device) - matrix).square().sum()
