"""The linear encoder of LinearJEPA: latents of the features, heard over several hops."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from nodejepa.nn.inputs import GraphInputs
from nodejepa.nn.sparse import Rows
from nodejepa.nn.stack import transformed

_ROWS = 1 << 16  # that are added to a block at a time


def walk_weights(hops: int, restart: float) -> Tensor:
    """How loud hops 0, 1, ... are in a walk ``y = restart z + (1 - restart) S y`` of so many, begun at z."""
    weights = (1 - restart) ** torch.arange(hops + 1, dtype=torch.float64)
    weights[:hops] *= restart
    return weights


class HopEncoder(nn.Module):
    r"""Blocks :math:`\sum_k m_{bk}\, S^k (X W - c)` side by side; only W can be trained, if asked to.

    Args:
        in_dim: feature columns F.
        latents: columns L of W.
        blocks: how many mixtures of hops.
        hops: how far the farthest hop is.
        equal_rows: rows are brought to the same length, the root of their number of columns; 0 stays 0.
    """

    weight: Tensor  # W [F, L], in units of ``unit``
    shift: Tensor  # c [L]
    mix: Tensor  # m [blocks, hops + 1]
    unit = 1.0  # a power of two that keeps entries of W near 1 while it is trained: steps are a share of it

    def __init__(
        self, in_dim: int, latents: int, blocks: int, hops: int, *, equal_rows: bool = False
    ) -> None:
        super().__init__()
        self.out_dim, self.equal_rows = latents * blocks, equal_rows
        self.weight = nn.Parameter(torch.zeros(in_dim, latents), requires_grad=False)
        self.register_buffer("shift", torch.zeros(latents))
        self.register_buffer("mix", torch.zeros(blocks, hops + 1))

    def latents(
        self,
        inputs: GraphInputs,
        columns: slice = slice(None),
        hidden: Tensor | None = None,
        token: Tensor | None = None,
    ) -> Tensor:
        """Columns of ``X W - c``; nodes in ``hidden`` (bool ``[N]``) show ``token`` (``[F]``)."""
        weight = self.weight[:, columns]
        weight = weight if self.unit == 1 else weight * self.unit
        return transformed(inputs, weight, hidden, token) - self.shift[columns]

    def latents_of(self, inputs: GraphInputs, rows: npt.NDArray[np.bool_]) -> Tensor:
        """``X W - c`` of some rows (bool ``[N]``), in order."""
        return inputs.transform_features(self.weight * self.unit, rows) - self.shift

    def hops(self, inputs: GraphInputs, hop: Tensor) -> Iterator[Tensor]:
        """``S^k z`` of latents z for k = 0, 1, ...: one at a time, so that only one is in memory."""
        yield hop
        for _ in range(self.mix.shape[1] - 1):
            hop = inputs.propagation(hop)
            yield hop

    def embed(self, inputs: GraphInputs, rows: Rows = None) -> Tensor:
        """As :meth:`forward`, nothing hidden."""
        return self.forward(inputs, rows=rows)

    def forward(
        self,
        inputs: GraphInputs,
        hidden: Tensor | None = None,
        token: Tensor | None = None,
        rows: Rows = None,
    ) -> Tensor:
        """Embeddings ``[N, blocks * L]``, or only those of ``rows`` (bool ``[N]``), in order.

        Nodes in ``hidden`` (bool ``[N]``) show ``token`` (``[F]``) instead of their features.
        """
        kept = slice(None) if rows is None else torch.from_numpy(rows).to(inputs.device)
        hops = self.hops(inputs, self.latents(inputs, slice(None), hidden, token))
        return self.finish(torch.cat(self._mixed(hops, kept), dim=1))

    def finish(self, rows: Tensor) -> Tensor:
        """What is done to whole rows in the end."""
        if not self.equal_rows:
            return rows
        length: Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
        scale: Tensor = self.out_dim**0.5 / torch.where(length > 0, length, 1.0)
        return rows * scale

    def embed_columns(self, inputs: GraphInputs) -> Iterator[tuple[slice, Tensor]]:
        """By columns, before :meth:`finish`: a slice and ``[N, its width]``, as the inputs can hold them.

        A block comes as soon as it has heard its last hop; :attr:`held` arrays are in memory at a time.
        """
        latents, farthest = self.weight.shape[1], self._farthest
        for group in inputs.column_groups(latents):
            blocks: dict[int, Tensor] = {}
            for k, hop in enumerate(self.hops(inputs, self.latents(inputs, group))):
                for block, weight in enumerate(self.mix[:, k]):
                    if k == 0:
                        blocks[block] = weight * hop
                    elif weight:
                        _add(blocks[block], weight, hop)
                    if farthest[block] == k:
                        yield (
                            slice(block * latents + group.start, block * latents + group.stop),
                            blocks.pop(block),
                        )

    @property
    def held(self) -> int:
        """Arrays that are as long as the graph and in memory at a time: two hops and unfinished blocks."""
        return 2 + max(1, sum(hop > 0 for hop in self._farthest))

    @property
    def _farthest(self) -> list[int]:
        """The last hop that each block hears."""
        return [max(np.flatnonzero(weights).tolist(), default=0) for weights in self.mix.numpy()]

    def _mixed(self, hops: Iterator[Tensor], kept: Any) -> list[Tensor]:
        blocks: list[Tensor] = []
        for hop, weights in zip(hops, self.mix.T, strict=True):
            heard = hop[kept]
            if not blocks:
                blocks = [weight * heard for weight in weights]
                continue
            for block, weight in zip(blocks, weights, strict=True):
                if weight:  # a block need not hear every hop
                    block += weight * heard
        return blocks


def _add(block: Tensor, weight: Tensor, heard: Tensor) -> None:
    """``block += weight * heard``, some rows at a time: the product is never as long as the graph."""
    for low in range(0, len(block), _ROWS):
        block[low : low + _ROWS] += weight * heard[low : low + _ROWS]
