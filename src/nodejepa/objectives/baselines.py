"""Losses of the baselines: DGI, CCA-SSG, BGRL and GraphMAE."""

import torch
from torch import Tensor
from torch.nn.functional import softplus

from nodejepa.objectives.latent import cosine_distance, covariance_matrix

_DEAD = 1e-10  # a column whose variance is below this share of its mean square is constant up to rounding
_TINY = 1e-12  # squared length below which a vector has no direction


def infomax_loss(real: Tensor, corrupted: Tensor, weight: Tensor) -> Tensor:
    r"""Deep Graph Infomax (Velickovic et al. 2019): nodes of the graph are distinguished from corrupted ones.

    Binary cross-entropy of a bilinear discriminator, embeddings ``[n, D]``, weight ``[D, D]``.

    .. math:: s = \sigma\Big(\tfrac1n \textstyle\sum_i h_i\Big), \quad
        L = -\frac{1}{2n} \sum_i \Big[\log \sigma(h_i^\top W s)
        + \log\big(1 - \sigma(\tilde h_i^\top W s)\big)\Big]

    Scores are kept as logits, so that a discriminator that is sure of itself gives no infinity.
    """
    summary = torch.sigmoid(real.mean(dim=0))
    direction = weight @ summary  # one vector: no [n, D] product with W
    return (softplus(-(real @ direction)).mean() + softplus(corrupted @ direction).mean()) / 2


def cca_terms(one: Tensor, two: Tensor) -> tuple[Tensor, Tensor]:
    r"""CCA-SSG (Zhang et al. 2021): two views agree, and the dimensions of each are uncorrelated.

    Invariance and decorrelation of two views' embeddings ``[n, D]``; the loss is their weighted sum.

    .. math:: -\mathrm{tr}\left(\tfrac1n Z_1^\top Z_2\right), \qquad
        \sum_v \left\Vert I - \tfrac1n Z_v^\top Z_v \right\Vert_F^2

    with Z the embeddings, columns standardised by :func:`standardise`.
    """
    one, two = standardise(one), standardise(two)
    size = len(one)
    invariance = -(one * two).sum() / size
    # columns are centred already; the shared function has the cheaper gradient, and divides by n - 1
    decorrelation = sum(
        (_off_identity(covariance_matrix(z) * ((size - 1) / size)) for z in (one, two)),
        torch.zeros(()),
    )
    return invariance, decorrelation


def standardise(z: Tensor) -> Tensor:
    r"""Columns of ``[n, D]`` with mean 0 and variance 1; a constant column becomes 0, without gradient."""
    centred = z - z.mean(dim=0)
    variance = centred.square().mean(dim=0)
    alive = variance > _DEAD * z.detach().square().mean(dim=0)
    scale = torch.where(alive, variance, 1.0).rsqrt()  # the square root has no slope at 0: keep it away
    return centred * (scale * alive)


def _off_identity(matrix: Tensor) -> Tensor:
    """Squared Frobenius norm of ``I - matrix``."""
    return (torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device) - matrix).square().sum()


def bootstrap_loss(guesses: tuple[Tensor, Tensor], targets: tuple[Tensor, Tensor]) -> Tensor:
    r"""BGRL (Thakoor et al. 2022): each view's prediction meets the other view's target.

    Symmetric cosine loss between two views, all ``[n, D]``; no gradient enters the targets.

    .. math:: 2 - \frac1n \sum_i \cos(q^1_i, \mathrm{sg}\,y^2_i)
        - \frac1n \sum_i \cos(q^2_i, \mathrm{sg}\,y^1_i)
    """
    one, two = guesses
    return cosine_distance(one, targets[1].detach()) + cosine_distance(two, targets[0].detach())


def scaled_cosine_error(wanted: Tensor, guess: Tensor, alpha: float = 2.0) -> Tensor:
    r"""GraphMAE's scaled cosine error (Hou et al. 2022), mean over rows ``[n, F]``.

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
