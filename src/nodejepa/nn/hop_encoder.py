"""The linear encoder of LinearJEPA: latents of the features, heard over several hops."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from nodejepa.nn.inputs import GraphInputs


class HopEncoder(nn.Module):
    r"""Blocks :math:`\sum_k m_{bk}\, S^k (X W - c)` side by side; nothing in it is trained by gradients.

    Args:
        in_dim: feature columns F.
        latents: columns L of W.
        blocks: how many mixtures of hops.
        hops: how far the farthest hop is.
    """

    weight: Tensor  # W [F, L]
    shift: Tensor  # c [L]
    mix: Tensor  # m [blocks, hops + 1]

    def __init__(self, in_dim: int, latents: int, blocks: int, hops: int) -> None:
        super().__init__()
        self.out_dim = latents * blocks
        self.register_buffer("weight", torch.zeros(in_dim, latents))
        self.register_buffer("shift", torch.zeros(latents))
        self.register_buffer("mix", torch.zeros(blocks, hops + 1))

    def hops(self, inputs: GraphInputs) -> list[Tensor]:
        """``S^k (X W - c)`` ``[N, L]`` for k = 0, 1, ..."""
        found = [inputs.transform_features(self.weight) - self.shift]
        for _ in range(self.mix.shape[1] - 1):
            found.append(inputs.propagation(found[-1]))
        return found

    def embed(self, inputs: GraphInputs) -> Tensor:
        """Embeddings ``[N, blocks * L]``."""
        return self.forward(inputs)

    def forward(self, inputs: GraphInputs, rows: npt.NDArray[np.bool_] | None = None) -> Tensor:
        """Embeddings ``[N, blocks * L]``, or only those of ``rows`` (bool ``[N]``), in order."""
        hop = inputs.transform_features(self.weight) - self.shift
        kept = slice(None) if rows is None else torch.from_numpy(rows).to(hop.device)
        total = [weights[0] * hop[kept] for weights in self.mix]
        for k in range(1, self.mix.shape[1]):
            hop = inputs.propagation(hop)
            total = [sum_ + weights[k] * hop[kept] for sum_, weights in zip(total, self.mix, strict=True)]
        return torch.cat(total, dim=1)
