"""GraphMAE's scaled cosine error (Hou et al. 2022), also for guesses that are never written out."""

import torch
from torch import Tensor

_TINY = 1e-12  # squared length below which a vector has no direction


def scaled_cosine_error(wanted: Tensor, guess: Tensor, alpha: float = 2.0) -> Tensor:
    r"""Mean over rows ``[n, F]``.

    .. math:: \frac1n \sum_i \left(1 - \frac{x_i \cdot \hat x_i}
        {\lVert x_i \rVert \lVert \hat x_i \rVert}\right)^\alpha

    A vector without a direction (a node without features, a guess of 0) counts as cosine 0.
    """
    dot, squares = (wanted * guess).sum(dim=1), guess.square().sum(dim=1)
    return _error(dot, wanted.square().sum(dim=1), squares, alpha)


def linear_scaled_cosine_error(
    wanted: Tensor, wanted_squares: Tensor, codes: Tensor, weight: Tensor, alpha: float = 2.0
) -> Tensor:
    r"""The same for guesses :math:`\hat x_i = g_i W`, without the ``[n, F]`` matrix of guesses.

    .. math:: x_i \cdot \hat x_i = (x_i W^\top) \cdot g_i, \qquad
        \lVert \hat x_i \rVert^2 = g_i\, (W W^\top)\, g_i^\top

    With the thousands of sparse columns of a bag of words this is what makes an epoch affordable.

    Args:
        wanted: :math:`X W^\top` ``[n, D]``, from a sparse product.
        wanted_squares: :math:`\lVert x_i \rVert^2` ``[n]``.
        codes: g ``[n, D]``.
        weight: W ``[D, F]``.
        alpha: the exponent.
    """
    squares = ((codes @ (weight @ weight.T)) * codes).sum(dim=1)
    return _error((wanted * codes).sum(dim=1), wanted_squares, squares, alpha)


def _error(dot: Tensor, wanted_squares: Tensor, guess_squares: Tensor, alpha: float) -> Tensor:
    squares = wanted_squares * guess_squares
    alive = (wanted_squares > _TINY) & (guess_squares > _TINY)
    cosine = dot * torch.where(alive, squares, 1.0).rsqrt() * alive
    # rounding may leave the cosine just above 1, where a fractional power has no value
    return (1 - cosine).clamp_min(0).pow(alpha).mean()
