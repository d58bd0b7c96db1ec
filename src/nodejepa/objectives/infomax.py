"""Deep Graph Infomax: tell the graph's own nodes from corrupted ones (Velickovic et al. 2019)."""

import torch
from torch import Tensor
from torch.nn.functional import softplus

from nodejepa.training.distributed import ALONE, Reduction


def infomax_loss(real: Tensor, corrupted: Tensor, weight: Tensor, reduction: Reduction = ALONE) -> Tensor:
    r"""Binary cross-entropy of a bilinear discriminator, embeddings ``[n, D]``, weight ``[D, D]``.

    .. math:: s = \sigma\Big(\tfrac1n \textstyle\sum_i h_i\Big), \quad
        L = -\frac{1}{2n} \sum_i \Big[\log \sigma(h_i^\top W s)
        + \log\big(1 - \sigma(\tilde h_i^\top W s)\big)\Big]

    Scores are kept as logits, so that a discriminator that is sure of itself gives no infinity.
    """
    summary = torch.sigmoid(reduction.mean(real))
    direction = weight @ summary  # one vector: no [n, D] product with W
    return (softplus(-(real @ direction)).mean() + softplus(corrupted @ direction).mean()) / 2
