"""The linear encoder of LinearJEPA: latents of the features, mixed over several hops.

Columns are independent until rows are finished. So they are embedded in groups that fit into memory, and
several machines take some columns each and propagate them without talking. The processes of one machine share
its memory and make some rows of each array. When a group of columns is done, it goes to the first process. It
keeps those of a graph on disk in files: killed and started again, the processes go on after the last group.
"""

from __future__ import annotations

import hashlib
import shutil
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from nodejepa.files import atomic_path
from nodejepa.machine import progress_bar
from nodejepa.nn.encoders import transformed
from nodejepa.nn.inputs import GraphInputs, RowInputs
from nodejepa.nn.sparse import Rows
from nodejepa.nn.workspace import Block, Workspace, mapped
from nodejepa.training.distributed import SINGLE, ProcessGroup

_ROWS = 1 << 10  # that are added to a block at a time: they stay in the processor's cache


def pagerank_weights(hops: int, restart: float) -> Tensor:
    """Weights of hops 0, 1, ... in so many steps of APPNP, ``y = restart z + (1 - restart) S y`` from z."""
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

    def latents(self, inputs: GraphInputs, columns: slice = slice(None)) -> Tensor:
        """Columns of ``X W - c``."""
        weight = self.weight[:, columns]
        weight = weight if self.unit == 1 else weight * self.unit
        product, shift = transformed(inputs, weight), self.shift[columns]
        if torch.is_grad_enabled():
            return product - shift
        for low, high in inputs.workspace.own_spans():
            product[low:high] -= shift
        inputs.workspace.team.wait()
        return product

    def latents_of(self, inputs: GraphInputs, rows: npt.NDArray[np.bool_]) -> Tensor:
        """``X W - c`` of some rows (bool ``[N]``), in order."""
        return inputs.transform_features(self.weight * self.unit, rows) - self.shift

    @torch.no_grad()
    def embed(
        self,
        inputs: GraphInputs,
        rows: Rows = None,
        *,
        group: ProcessGroup = SINGLE,
        scratch: Path | None = None,
    ) -> Any:
        """As :meth:`forward`, no gradients; of a graph on disk some columns at a time.

        Every process of a ``group`` calls it, with the same encoder and graph, and the first has the rows.
        What is too large for memory lies in a folder in ``scratch`` until the embeddings are gone.
        """
        if rows is not None:
            return self.forward(inputs, rows=rows)
        space, latents = inputs.workspace, self.weight.shape[1]
        found: dict[int, Tensor] = {}
        shown = space.on_disk and group.leads
        with (
            progress_bar("Embedding", total=self.out_dim, shown=shown) as advance,
            space.holding(self._arrays_held, group),
        ):
            folder = None
            if scratch is not None and group.leads and not space.keeps(self.out_dim):
                folder = self._folder(inputs, scratch)
            machines = group.size // space.team.size
            share = -(-latents // machines)
            for part in space.column_groups(share):  # that each machine works on at a time
                firsts = range(0, share * machines, share)
                shares = [
                    slice(*(min(at + end, latents) for end in (part.start, part.stop))) for at in firsts
                ]
                kept = {} if folder is None else self._kept(folder, shares)
                if not group.decide(bool(kept)):
                    kept = self._round(inputs, shares, group, folder)
                found |= kept
                advance(sum(part.shape[1] for part in kept.values()))
        space.forget()
        if not group.leads:
            return torch.empty(0, self.out_dim)
        z = space.join([found.pop(start) for start in sorted(found)], self.finish)
        if folder is not None:
            weakref.finalize(z, shutil.rmtree, folder, ignore_errors=True)
        return z

    @property
    def _arrays_held(self) -> int:
        """Arrays that embedding has in memory: two hops and the blocks that still wait for one."""
        return 2 + max(1, sum(hop > 0 for hop in self._farthest()))

    def _round(
        self, inputs: GraphInputs, shares: list[slice], group: ProcessGroup, folder: Path | None
    ) -> dict[int, Tensor]:
        """Columns that all machines made, each of its share, by the first of them; in the first process."""
        found: dict[int, Tensor] = {}
        space, latents = inputs.workspace, self.weight.shape[1]
        mine = shares[group.rank // space.team.size]
        if mine.start == mine.stop:
            return found
        for block, part in self._mixed(inputs, self.latents(inputs, mine)):
            if space.team.place == 0 and not group.leads:
                for low, high in space.spans():
                    group.send(part[low:high])
            for machine, share in enumerate(shares if group.leads else []):
                start, width = block * latents + share.start, share.stop - share.start
                if width:
                    path = None if folder is None else folder / _name(start, width)
                    rows = _rows(part, group, machine * space.team.size, width)
                    found[start] = self._collected(inputs, rows, path)
                    del rows
            del part  # while propagation goes on, there is no room for it
        return found

    def _collected(self, inputs: GraphInputs, rows: Tensor | Block, path: Path | None) -> Tensor:
        """Columns where they stay until the end."""
        space = inputs.workspace
        if path is None:
            whole = rows if isinstance(rows, Tensor) else torch.cat([rows(*span) for span in space.spans()])
            columns: Tensor = space.keep(whole, of=self.out_dim)
            return columns
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            for low, high in space.spans():
                block = rows[low:high] if isinstance(rows, Tensor) else rows(low, high)
                file.write(block.contiguous().numpy().data)
        return _read(path)

    def _folder(self, inputs: GraphInputs, scratch: Path) -> Path:
        """Of the columns of this encoder on this graph."""
        assert isinstance(inputs, RowInputs)
        sha = hashlib.sha256(inputs.graph.content_hash.encode())
        for tensor in self.state_dict().values():
            sha.update(tensor.cpu().contiguous().numpy().data)
        folder = scratch / f".columns-{sha.hexdigest()[:16]}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _kept(self, folder: Path, shares: list[slice]) -> dict[int, Tensor]:
        """The columns of a round that an earlier start has left; none if some are missing."""
        wanted = {
            at + share.start: folder / _name(at + share.start, share.stop - share.start)
            for at in range(0, self.out_dim, self.weight.shape[1])
            for share in shares
            if share.start < share.stop
        }
        if not all(path.is_file() for path in wanted.values()):
            return {}
        return {start: _read(path) for start, path in wanted.items()}

    def forward(self, inputs: GraphInputs, rows: Rows = None) -> Tensor:
        """Embeddings ``[N, blocks * L]``, or only those of ``rows`` (bool ``[N]``), in order."""
        blocks = dict(self._mixed(inputs, self.latents(inputs), rows))
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
        farthest, space = self._farthest(), inputs.workspace
        blocks: dict[int, Tensor] = {}
        free: Tensor | None = None  # the hop before the last: new memory would have to be cleared
        for k, weights in enumerate(self.mix.T):
            if k:
                before, hop = hop, inputs.propagation(hop, free)
                free = before if k > 1 and not torch.is_grad_enabled() else None
                del before
            seen = hop if kept is None else hop[kept]
            own = space.own_spans() if kept is None else [(0, len(seen))]
            for block, weight in enumerate(weights):
                if k == 0:
                    blocks[block] = _begun(space, weight, seen) if kept is None else weight * seen
                elif weight:  # a block need not have every hop
                    _add(blocks[block], weight, seen, own)
                if farthest[block] == k:
                    space.team.wait()
                    yield block, blocks.pop(block)

    def _farthest(self) -> list[int]:
        """The last hop of each block."""
        return [max(np.flatnonzero(weights).tolist(), default=0) for weights in self.mix.cpu().numpy()]


def _begun(space: Workspace, weight: Tensor, hop: Tensor) -> Tensor:
    """``weight * hop``, which a team makes together."""
    block: Tensor = space.fill(hop.shape[1], lambda low, high: weight * hop[low:high])
    return block


def _add(block: Tensor, weight: Tensor, hop: Tensor, spans: Sequence[tuple[int, int]]) -> None:
    """``block += weight * hop`` of some rows; without gradients the product is never as long as the graph."""
    if block.requires_grad:
        block += weight * hop
        return
    for first, end in spans:
        for low in range(first, end, _ROWS):
            rows = slice(low, min(low + _ROWS, end))
            block[rows] += weight * hop[rows]


def _rows(part: Tensor, group: ProcessGroup, rank: int, width: int) -> Tensor | Block:
    """Columns of process ``rank``: the own ``part``, or what is received by blocks of rows in their order."""
    device = part.device
    if rank == group.rank:
        return part
    return lambda low, high: group.receive(rank, high - low, width).to(device)


def _name(start: int, width: int) -> str:
    return f"{start}-{start + width}.f32"


def _read(path: Path) -> Tensor:
    """A file of columns, which is whole or not there."""
    first, end = map(int, path.stem.split("-"))
    with path.open("rb") as file:
        return mapped(file, torch.float32).view(-1, end - first)
