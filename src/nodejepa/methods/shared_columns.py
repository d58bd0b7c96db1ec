"""Embedding by a linear encoder in several processes: columns are independent, and each takes some of them.

All propagate without talking. When a group of columns is done, its rows go to the first process, which keeps
them in a file: killed and started again, the processes go on after the last group. Rows are finished when
they are read.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nodejepa.files import atomic_path
from nodejepa.nn.hop_encoder import HopEncoder
from nodejepa.nn.inputs import RowInputs
from nodejepa.nn.workspace import Workspace, mapped
from nodejepa.progress import progress_bar
from nodejepa.training.distributed import ProcessGroup


@torch.no_grad()
def embed_together(
    encoder: HopEncoder, inputs: RowInputs, group: ProcessGroup, scratch: Path | None = None
) -> Any:
    """Embeddings of a graph, as :meth:`HopEncoder.embed` has them, in the first process; no rows in others.

    All processes call it, with the same encoder and the same graph. Columns of a graph on disk lie in a
    folder in ``scratch`` until the embeddings are gone.
    """
    space = inputs.workspace
    folder = _folder(encoder, inputs, scratch) if space.on_disk and group.leads else None
    found: dict[int, Tensor] = {}
    with (
        progress_bar("Embedding", total=encoder.out_dim, shown=space.on_disk and group.leads) as advance,
        space.holding(encoder.arrays_held),
    ):
        for shares in _rounds(space, encoder.weight.shape[1], group):
            kept = {} if folder is None else _kept(folder, encoder, inputs, shares)
            if not group.decide(bool(kept)):
                kept = _round(encoder, inputs, group, shares, folder)
            found |= kept
            advance(sum(part.shape[1] for part in kept.values()))
    space.forget()
    if not group.leads:
        return torch.empty(0, encoder.out_dim)
    z = space.join([found.pop(start) for start in sorted(found)], encoder.finish)
    if folder is not None:
        weakref.finalize(z, shutil.rmtree, folder, ignore_errors=True)
    return z


def _rounds(space: Workspace, latents: int, group: ProcessGroup) -> list[list[slice]]:
    """Which latents each process works on at a time, as the first one has room for them."""
    share = -(-latents // group.size)

    def bounds() -> dict[str, Tensor]:
        return {"bounds": torch.tensor([[g.start, g.stop] for g in space.column_groups(share)])}

    return [
        [slice(min(at + low, latents), min(at + high, latents)) for at in range(0, share * group.size, share)]
        for low, high in group.first(bounds)["bounds"].tolist()
    ]


def _round(
    encoder: HopEncoder, inputs: RowInputs, group: ProcessGroup, shares: list[slice], folder: Path | None
) -> dict[int, Tensor]:
    """Columns of all processes by the first of them, in the first process."""
    found: dict[int, Tensor] = {}
    mine = shares[group.rank]
    if mine.start == mine.stop:
        return found
    for first, part in encoder.columns(inputs, mine):
        if not group.leads:
            for low, high in inputs.graph.spans():
                group.send(part[low:high])
            continue
        for rank, share in enumerate(shares):
            start, width = first - mine.start + share.start, share.stop - share.start
            if width:
                rows = _Rows(group, rank, width, part)
                found[start] = _stored(rows, inputs, None if folder is None else _path(folder, start, width))
    return found


@dataclass(frozen=True)
class _Rows:
    """Some columns of process ``rank``, asked for by blocks of rows in their order; ``part`` are the own."""

    group: ProcessGroup
    rank: int
    width: int
    part: Tensor

    def __call__(self, low: int, high: int) -> Tensor:
        if self.rank == self.group.rank:
            return self.part[low:high]
        return self.group.receive(self.rank, high - low, self.width).to(self.part.device)


def _stored(rows: _Rows, inputs: RowInputs, path: Path | None) -> Tensor:
    if path is None:
        columns: Tensor = inputs.workspace.fill(rows.width, rows)
        return columns
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        for span in inputs.graph.spans():
            file.write(rows(*span).contiguous().numpy().data)
    return _read(path, rows.width)


def _folder(encoder: HopEncoder, inputs: RowInputs, scratch: Path | None) -> Path:
    """Of the columns of this encoder on this graph."""
    sha = hashlib.sha256(inputs.graph.content_hash.encode())
    for tensor in encoder.state_dict().values():
        sha.update(tensor.cpu().contiguous().numpy().data)
    folder = (scratch or Path(tempfile.gettempdir())) / f".columns-{sha.hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _kept(folder: Path, encoder: HopEncoder, inputs: RowInputs, shares: list[slice]) -> dict[int, Tensor]:
    """The columns of a round that an earlier start has left; none if some are missing."""
    latents = encoder.weight.shape[1]
    wanted = {
        at + share.start: share.stop - share.start
        for at in range(0, encoder.out_dim, latents)
        for share in shares
        if share.start < share.stop
    }
    paths = {start: _path(folder, start, width) for start, width in wanted.items()}
    sizes = {start: 4 * inputs.num_nodes * width for start, width in wanted.items()}
    if not all(path.is_file() and path.stat().st_size == sizes[start] for start, path in paths.items()):
        return {}
    return {start: _read(path, wanted[start]) for start, path in paths.items()}


def _path(folder: Path, start: int, width: int) -> Path:
    return folder / f"{start}-{start + width}.f32"


def _read(path: Path, width: int) -> Tensor:
    with path.open("rb") as file:
        return mapped(file, torch.float32).view(-1, width)
