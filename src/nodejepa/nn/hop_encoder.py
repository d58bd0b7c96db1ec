"""The linear encoder of LinearJEPA: latents of the features, heard over several hops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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

    def hops(self, inputs: GraphInputs, columns: slice) -> Iterator[Tensor]:
        """Columns of ``S^k (X W - c)`` for k = 0, 1, ...: one at a time, so that only one is in memory."""
        hop = inputs.transform_features(self.weight[:, columns]) - self.shift[columns]
        yield hop
        for _ in range(self.mix.shape[1] - 1):
            hop = inputs.propagation(hop)
            yield hop

    def embed(self, inputs: GraphInputs) -> Tensor:
        """Embeddings ``[N, blocks * L]``."""
        return self.forward(inputs)

    def forward(self, inputs: GraphInputs, rows: npt.NDArray[np.bool_] | None = None) -> Tensor:
        """Embeddings ``[N, blocks * L]``, or only those of ``rows`` (bool ``[N]``), in order."""
        kept = slice(None) if rows is None else torch.from_numpy(rows).to(inputs.device)
        return torch.cat(self._mixed(inputs, slice(0, self.weight.shape[1]), kept), dim=1)

    def embed_columns(self, inputs: GraphInputs) -> Iterator[tuple[slice, Tensor]]:
        """The embeddings by columns: a slice of them and ``[N, its width]``, as the inputs can hold them."""
        latents = self.weight.shape[1]
        for group in inputs.column_groups(latents):
            for block, part in enumerate(self._mixed(inputs, group, slice(None))):
                yield slice(block * latents + group.start, block * latents + group.stop), part

    def _mixed(self, inputs: GraphInputs, columns: slice, kept: Any) -> list[Tensor]:
        blocks: list[Tensor] = []
        for hop, weights in zip(self.hops(inputs, columns), self.mix.T, strict=True):
            heard = (weight * hop[kept] for weight in weights)  # one at a time: each is as long as the graph
            if blocks:
                for block, part in zip(blocks, heard, strict=True):
                    block += part
            else:
                blocks = list(heard)
        return blocks
