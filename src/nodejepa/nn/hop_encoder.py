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
from nodejepa.progress import progress_bar

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

    @torch.no_grad()
    def embed(self, inputs: GraphInputs, rows: Rows = None) -> Any:
        """As :meth:`forward`, nothing hidden, no gradients; of a graph on disk some columns at a time."""
        if rows is not None:
            return self.forward(inputs, rows=rows)
        space = inputs.workspace
        found: dict[int, Tensor] = {}
        with (
            progress_bar("Embedding", total=self.out_dim, shown=space.on_disk) as advance,
            space.holding(self.arrays_held),
        ):
            for group in space.column_groups(self.weight.shape[1]):
                for column, part in self.columns(inputs, group):
                    found[column] = space.keep(part, of=self.out_dim)
                    del part  # while propagation goes on, there is no room for it
                    advance(group.stop - group.start)
        space.forget()
        return space.join([found.pop(start) for start in sorted(found)], self.finish)

    @property
    def arrays_held(self) -> int:
        """Arrays that embedding has in memory: two hops and the blocks that still wait for one."""
        return 2 + max(1, sum(hop > 0 for hop in self._farthest()))

    def columns(self, inputs: GraphInputs, latents: slice) -> Iterator[tuple[int, Tensor]]:
        """What some latents become in each block ``[N, l]``, and the first of these columns.

        Rows are not finished yet: that needs all columns.
        """
        for block, part in self._mixed(inputs, self.latents(inputs, latents)):
            yield block * self.weight.shape[1] + latents.start, part
            del part

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
        blocks = dict(self._mixed(inputs, self.latents(inputs, slice(None), hidden, token), rows))
        return self.finish(torch.cat([blocks[block] for block in sorted(blocks)], dim=1))

    def finish(self, rows: Tensor) -> Tensor:
        """What is done to whole rows in the end."""
        if not self.equal_rows:
            return rows
        length: Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
        scale: Tensor = self.out_dim**0.5 / torch.where(length > 0, length, 1.0)
        return rows * scale

    def _mixed(self, inputs: GraphInputs, hop: Tensor, rows: Rows = None) -> Iterator[tuple[int, Tensor]]:
        """Mixtures of the hops ``S^k z`` of latents z, each as soon as its last hop has been added."""
        kept = None if rows is None else torch.from_numpy(rows).to(inputs.device)
        farthest = self._farthest()
        blocks: dict[int, Tensor] = {}
        for k, weights in enumerate(self.mix.T):
            hop = inputs.propagation(hop) if k else hop
            heard = hop if kept is None else hop[kept]
            for block, weight in enumerate(weights):
                if k == 0:
                    blocks[block] = weight * heard
                elif weight:  # a block need not hear every hop
                    _add(blocks[block], weight, heard)
                if farthest[block] == k:
                    yield block, blocks.pop(block)

    def _farthest(self) -> list[int]:
        """The last hop of each block."""
        return [max(np.flatnonzero(weights).tolist(), default=0) for weights in self.mix.cpu().numpy()]


def _add(block: Tensor, weight: Tensor, heard: Tensor) -> None:
    """``block += weight * heard``; without gradients the product is never as long as the graph."""
    if block.requires_grad:
        block += weight * heard
        return
    for low in range(0, len(block), _ROWS):
        block[low : low + _ROWS] += weight * heard[low : low + _ROWS]
