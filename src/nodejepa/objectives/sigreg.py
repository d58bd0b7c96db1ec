"""SIGReg: embeddings should look like an isotropic Gaussian along random directions (LeJEPA, 2511.08544)."""

from typing import Any

import torch
from torch import Tensor

from nodejepa.training.distributed import ALONE, Reduction

_LIMIT, _KNOTS = 3.0, 17
_STEP = _LIMIT / (_KNOTS - 1)  # t_k = 3k/16, k = 0..16
_CHUNK_ELEMENTS = 1 << 16  # 256 KiB a buffer: the recurrence below stays in the CPU's second-level cache


def sigreg(
    z: Tensor,
    generator: torch.Generator,
    *,
    slices: int = 256,
    max_nodes: int | None = 4096,
    times_n: bool = False,
    reduction: Reduction = ALONE,
    shared: torch.Generator | None = None,
) -> Tensor:
    r"""Sketched Gaussianity of embeddings ``[n, D]``.

    For unit directions :math:`a_s` redrawn at every call and :math:`u_{is} = z_i \cdot a_s`,

    .. math:: T = \frac{1}{S} \sum_s \sum_{k=0}^{16} w_k\, \phi_k \left[
        \left(\tfrac1m \textstyle\sum_{i \in M} \cos t_k u_{is} - \phi_k\right)^2
        + \left(\tfrac1m \textstyle\sum_{i \in M} \sin t_k u_{is}\right)^2 \right],
        \quad t_k = \tfrac{3k}{16},\ \phi_k = e^{-t_k^2/2},

    with trapezoid weights :math:`w_k` of the integral over [-3, 3] (the integrand is even, so the knots
    of one half count twice). M is a uniformly random subset of ``m = min(n, max_nodes)`` nodes, redrawn
    at every call; ``max_nodes=None`` takes all. ``times_n`` multiplies by m, as LeJEPA does. Of
    several micro-batches each draws an equal share of M from its nodes by ``generator``, all take the
    directions that ``shared`` gives, and sums and m are those of all.
    """
    nodes, width = z.shape
    most = nodes if max_nodes is None else -(-max_nodes // reduction.count)
    if nodes > most:
        chosen = torch.randperm(nodes, generator=generator)[:most].sort().values
        z = z.index_select(0, chosen.to(z.device))
    directions = torch.randn(width, slices, generator=shared or generator, dtype=z.dtype).to(z.device)
    directions = directions / directions.norm(dim=0, keepdim=True)
    statistic: Tensor = _GaussianDistance.apply(z @ directions, reduction)  # type: ignore[no-untyped-call]
    return statistic * reduction.rows(z) if times_n else statistic


def knots(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    """``t_k``, ``phi_k`` and the trapezoid weights ``w_k`` over [-3, 3] folded onto k >= 0."""
    t = torch.arange(_KNOTS, dtype=dtype) * _STEP
    weight = torch.full((_KNOTS,), 2 * _STEP, dtype=dtype)
    weight[0] = weight[-1] = _STEP
    return t, torch.exp(-t.square() / 2), weight


class _GaussianDistance(torch.autograd.Function):
    r"""The statistic T of projections ``u`` ``[m, S]``.

    cos(t_k u) and sin(t_k u) at equally spaced knots follow from one cosine and one sine by
    :math:`\cos((k{+}1)x) = 2\cos x \cos kx - \cos((k{-}1)x)`, so 17 knots cost two trigonometric passes, and
    rows are taken in chunks that stay in cache. The backward pass runs the same recurrence again
    instead of keeping 34 matrices.
    """

    @staticmethod
    def forward(ctx: Any, u: Tensor, reduction: Reduction) -> Tensor:
        t, phi, weight = (k.to(u) for k in knots(u.dtype))
        cos_sum, sin_sum = u.new_zeros(_KNOTS, u.shape[1]), u.new_zeros(_KNOTS, u.shape[1])
        for rows in torch.split(u, _chunk_rows(u)):
            for k, (cosine, sine) in enumerate(_harmonics(rows)):
                cos_sum[k] += cosine.sum(dim=0)
                sin_sum[k] += sine.sum(dim=0)
        size = reduction.rows(u)
        real = reduction.sum(cos_sum) / size - phi[:, None]
        imaginary = reduction.sum(sin_sum) / size
        scale = (weight * phi)[:, None] / u.shape[1]
        # d T / d u = sum_k  2 scale_k t_k (imaginary_k cos(t_k u) - real_k sin(t_k u)) / m
        ctx.save_for_backward(
            u,
            2 * scale * t[:, None] * imaginary / size,
            -2 * scale * t[:, None] * real / size,
        )
        return (scale * (real.square() + imaginary.square())).sum()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        u, cos_factor, sin_factor = ctx.saved_tensors
        gradient = torch.zeros_like(u)
        size = _chunk_rows(u)
        for rows, out in zip(torch.split(u, size), torch.split(gradient, size), strict=True):
            for k, (cosine, sine) in enumerate(_harmonics(rows)):
                if k:  # t_0 = 0
                    out.addcmul_(cos_factor[k], cosine).addcmul_(sin_factor[k], sine)
        return gradient.mul_(grads[0]), None


def _harmonics(x: Tensor) -> Any:
    """Yield (cos kx', sin kx') for k = 0..16 with x' = 3x/16; the tensors are reused, read them at once."""
    angle = x * _STEP
    cosine, sine = torch.cos(angle), torch.sin(angle)
    twice = 2 * cosine
    cos_before, sin_before = torch.ones_like(cosine), torch.zeros_like(sine)
    yield cos_before, sin_before
    for _ in range(_KNOTS - 1):
        yield cosine, sine
        cos_before, cosine = cosine, torch.addcmul(cos_before.neg_(), twice, cosine, out=cos_before)
        sin_before, sine = sine, torch.addcmul(sin_before.neg_(), twice, sine, out=sin_before)


def _chunk_rows(u: Tensor) -> int:
    if u.device.type != "cpu":
        return max(u.shape[0], 1)
    return max(_CHUNK_ELEMENTS // max(u.shape[1], 1), 1)
