"""How far a predicted embedding is from the wanted one, and a node's from its neighbours'."""

import torch
from torch import Tensor

from nodejepa.nn.sparse import SparseOperator


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
