"""Predictors and a decoder: from what the context encoder saw to what is hidden.

Predictors are leak-free: of a target they read its structural descriptor and nothing else.
"""

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from nodejepa.nn.encoders import make_activation, make_norm
from nodejepa.nn.sparse import SparseOperator, restrict


class MessagePassingPredictor(nn.Module):
    r"""A GCN whose messages only leave context nodes (NodeJEPA, Section 3.2 (ii)).

    .. math:: h_i^{(l+1)} = \sigma\,\mathrm{LN}\Big(\sum_{j \in C} S_{ij}\, h_j^{(l)} W_l + U_l d_i + b_l\Big)

    with C the context and :math:`d_i` the descriptor of node i, and neither LN nor :math:`\sigma` after
    the last layer. Since no message ever leaves a target, all layers but the last run on the context's own
    block of S, and the last on the block from context to targets.

    Args:
        width: of the context embeddings and of the prediction.
        descriptor_dim: columns of the descriptors; 0 predicts without structure (ablation B).
        hidden: width of the inner layers.
        layers: how many.
        activation: as in :class:`~nodejepa.nn.encoders.GCN`.
        out_dim: width of the prediction if it differs.
    """

    def __init__(
        self,
        width: int,
        descriptor_dim: int,
        *,
        hidden: int = 256,
        layers: int = 3,
        activation: str = "relu",
        out_dim: int | None = None,
    ) -> None:
        super().__init__()
        widths = [width] + [hidden] * (layers - 1) + [width if out_dim is None else out_dim]
        self.messages = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.structure = nn.ModuleList(
            nn.Linear(descriptor_dim, b, bias=False) for b in widths[1:] if descriptor_dim
        )
        self.norms = nn.ModuleList(make_norm("layer", b) for b in widths[1:-1])
        self.activations = nn.ModuleList(make_activation(activation) for _ in widths[1:-1])

    def forward(
        self,
        context: Tensor,
        propagation: SparseOperator,
        targets: npt.NDArray[np.bool_],
        descriptors: Tensor,
    ) -> Tensor:
        """Predictions ``[targets, width]`` from context embeddings ``[N - targets, width]``.

        ``targets`` is a bool ``[N]``, ``descriptors`` ``[N, descriptor_dim]``.
        """
        visible = ~targets
        among_context = restrict(propagation, visible, visible)
        to_targets = restrict(propagation, targets, visible)
        masked = torch.from_numpy(targets).to(context.device)
        own, wanted = descriptors[~masked], descriptors[masked]
        h = context
        for i, (norm, activation) in enumerate(zip(self.norms, self.activations, strict=True)):
            h = activation(norm(self._receive(i, among_context(h), own)))
        return self._receive(-1, to_targets(h), wanted)

    def _receive(self, layer: int, gathered: Tensor, descriptors: Tensor) -> Tensor:
        message: Tensor = self.messages[layer](gathered)
        if self.structure:
            message = message.add_(self.structure[layer](descriptors))  # no backward pass reads it
        return message


class AttentionPredictor(nn.Module):
    r"""Cross-attention (NodeJEPA, Section 3.2 (i); ablation C): descriptors ask, context embeddings answer.

    .. math:: \hat h_i = \mathrm{MLP}\Big(\mathrm{LN}\big(
        \mathrm{softmax}(q(d_i)\, k(h_C, d_C)^\top / \sqrt{w})\, v(h_C) + q(d_i)\big)\Big)

    The fused attention kernel works in blocks: no ``targets x context`` matrix is ever stored. ``hidden`` is
    the width w of queries, keys and values, which the number of ``heads`` must divide; the other arguments
    are those of :class:`MessagePassingPredictor`.
    """

    def __init__(
        self,
        width: int,
        descriptor_dim: int,
        *,
        hidden: int = 256,
        heads: int = 4,
        activation: str = "relu",
        out_dim: int | None = None,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Sequential(
            nn.Linear(descriptor_dim, hidden), make_activation(activation), nn.Linear(hidden, hidden)
        )
        self.key = nn.Linear(width, hidden)
        self.key_structure = nn.Linear(descriptor_dim, hidden, bias=False)
        self.value = nn.Linear(width, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.out = nn.Sequential(
            nn.Linear(hidden, hidden),
            make_activation(activation),
            nn.Linear(hidden, width if out_dim is None else out_dim),
        )

    def forward(
        self,
        context: Tensor,
        propagation: SparseOperator,  # noqa: ARG002 - the two predictors are called alike
        targets: npt.NDArray[np.bool_],
        descriptors: Tensor,
    ) -> Tensor:
        """As :meth:`MessagePassingPredictor.forward`."""
        masked = torch.from_numpy(targets).to(context.device)
        query = self.query(descriptors[masked])
        key = self.key(context) + self.key_structure(descriptors[~masked])
        attended = nn.functional.scaled_dot_product_attention(
            self._split(query), self._split(key), self._split(self.value(context))
        )
        merged = attended.squeeze(0).transpose(0, 1).reshape(query.shape)
        prediction: Tensor = self.out(self.norm(merged + query))
        return prediction

    def _split(self, x: Tensor) -> Tensor:
        """``[n, hidden]`` as ``[1, heads, n, hidden / heads]``."""
        return x.view(x.shape[0], self.heads, -1).transpose(0, 1).unsqueeze(0)


class PatchPredictor(nn.Module):
    """An MLP from a context patch's embedding and a target patch's descriptor to the target's embedding."""

    def __init__(
        self, width: int, descriptor_dim: int, *, hidden: int = 256, layers: int = 3, activation: str = "relu"
    ) -> None:
        super().__init__()
        widths = [width + descriptor_dim] + [hidden] * (layers - 1) + [width]
        blocks: list[nn.Module] = []
        for a, b in pairwise(widths[:-1]):
            blocks += [nn.Linear(a, b), make_norm("layer", b), make_activation(activation)]
        self.mlp = nn.Sequential(*blocks, nn.Linear(widths[-2], widths[-1]))

    def forward(self, context: Tensor, descriptors: Tensor) -> Tensor:
        """``[n, width]`` and ``[n, descriptor_dim]`` to ``[n, width]``."""
        prediction: Tensor = self.mlp(torch.cat([context, descriptors], dim=1))
        return prediction


class FeatureDecoder(nn.Module):
    r"""One GCN layer on embeddings whose masked rows were masked again (Hou et al. 2022, Section 3.2).

    .. math:: \hat x_i = \sum_{j \notin M} S_{ij}\, h_j B\, W + b = g_i W + b

    for masked nodes i in M. As no nonlinearity follows, neighbours are gathered in the width of the
    embeddings, and :attr:`weight` is left to the loss, which may not need its product.
    """

    def __init__(self, width: int, out_dim: int) -> None:
        super().__init__()
        self.bridge = nn.Linear(width, width, bias=False)
        weight = torch.zeros(width + 1, out_dim)  # the last row is the bias b
        nn.init.xavier_uniform_(weight[:-1])
        self.weight = nn.Parameter(weight)

    def forward(self, visible: Tensor, propagation: SparseOperator, masked: npt.NDArray[np.bool_]) -> Tensor:
        """``[g, 1]`` ``[M, width + 1]`` of masked nodes from embeddings ``[N - M, width]`` of the others."""
        codes = restrict(propagation, masked, ~masked)(self.bridge(visible))
        return torch.cat([codes, codes.new_ones(len(codes), 1)], dim=1)
