"""Graph-JEPA's hyperbola term (Skenderi et al., arXiv 2309.16014)."""

import torch
from torch import Tensor


def hyperbola_distance(guess: Tensor, wanted: Tensor, *, limit: float = 5.0) -> Tensor:
    r"""Smooth-L1 between the points of guess and wanted ``[n, D]`` on the unit hyperbola.

    .. math:: a = \mathrm{clamp}\left(\tfrac1D \textstyle\sum_j z_j, -5, 5\right), \quad
        p(z) = (\cosh a, \sinh a)

    The clamp keeps cosh from overflowing; inside it the term is exact.
    """
    return torch.nn.functional.smooth_l1_loss(_point(guess, limit), _point(wanted, limit))


def _point(z: Tensor, limit: float) -> Tensor:
    a = z.mean(dim=1).clamp(-limit, limit)
    return torch.stack([torch.cosh(a), torch.sinh(a)], dim=1)
