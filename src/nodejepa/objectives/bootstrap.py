"""BGRL: each view's prediction meets the other view's target (Thakoor et al. 2022)."""

from torch import Tensor

from nodejepa.objectives.prediction import cosine_distance


def bootstrap_loss(guesses: tuple[Tensor, Tensor], targets: tuple[Tensor, Tensor]) -> Tensor:
    r"""Symmetric cosine loss between two views, all ``[n, D]``; no gradient enters the targets.

    .. math:: 2 - \frac1n \sum_i \cos(q^1_i, \mathrm{sg}\,y^2_i)
        - \frac1n \sum_i \cos(q^2_i, \mathrm{sg}\,y^1_i)
    """
    one, two = guesses
    return cosine_distance(one, targets[1].detach()) + cosine_distance(two, targets[0].detach())
