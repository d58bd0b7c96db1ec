"""How far a predicted embedding is from the wanted one."""

import torch
from torch import Tensor


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
