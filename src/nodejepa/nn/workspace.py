"""Where arrays with one row per node are made and kept: in memory at once, or by blocks and on disk."""

import mmap
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nodejepa.graph_checks import Features
from nodejepa.machine import Room
from nodejepa.nn.sparse import to_dense
from nodejepa.training.distributed import SINGLE, ProcessGroup, Team

Block = Callable[[int, int], Any]  # rows low to high - 1 of an array: a tensor, or a matrix of NumPy or SciPy
Write = Callable[[int, int, Tensor], Any]  # the same, written into a tensor

_MEMORY = 4_000_000_000  # bytes of arrays, unless set otherwise or less is free
_ARRAYS = 5  # that are as long as the graph and in memory at a time, unless set otherwise
_LINE = 16  # numbers in a line of the processor's cache
# A private map that may be written to counts as memory in full, and one larger than the machine is refused,
# although nobody writes; unless the system is asked not to set memory aside (Python names it from 3.13 on).
_NOT_SET_ASIDE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


@final
@dataclass(frozen=True, eq=False)
class StoredRows:
    """An array ``[N, width]`` that may be larger than memory, read by rows as a NumPy array is.

    It was computed some columns after the others; whole rows are finished when they are read.
    """

    parts: tuple[Tensor, ...]
    finish: Callable[[Tensor], Tensor] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.parts[0]), sum(part.shape[1] for part in self.parts)

    def __getitem__(self, rows: slice | npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        places = rows if isinstance(rows, slice) else torch.from_numpy(rows)
        joined = torch.cat([part[places] for part in self.parts], dim=1)
        return (joined if self.finish is None else self.finish(joined)).numpy()


@final
class Workspace:
    """Arrays ``[N, width]`` of a graph's nodes. In memory all rows are one block, and nothing has to move.

    Of a graph on disk, what is small against ``memory`` is in memory, the rest in files that are mapped and
    gone with their array.

    Args:
        nodes: N.
        spans: of a graph on disk, bounds ``(low, high)`` of blocks that may be in memory one at a time.
        scratch: folder for files; the system's own if not given.
        memory: bytes that arrays may take in all, about; 4 GB, or half of what is free, if not given.
    """

    def __init__(
        self,
        nodes: int,
        spans: Callable[[], Iterator[tuple[int, int]]] | None = None,
        scratch: Path | None = None,
        memory: int | None = None,
    ) -> None:
        self.on_disk = spans is not None  # not all rows of a thing are at hand at once
        self.spans = spans or (lambda: iter([(0, nodes)]))
        self._nodes, self._scratch, self._held, self.team = nodes, scratch, _ARRAYS, Team()
        self.memory = array_bytes(Room.of()) if self.on_disk and memory is None else memory or 0
        self.kept: dict[Any, Any] = {}  # products and operators that several blocks of a layer read

    def fill(self, width: int, block: Block) -> Any:
        """The array whose rows ``low`` to ``high - 1`` are ``block(low, high)``; in memory all at once."""
        if not self.on_disk:
            return block(0, self._nodes)
        return self.fill_in_place(
            width, lambda low, high, rows: rows.copy_(torch.from_numpy(_dense(block(low, high))))
        )

    def fill_in_place(self, width: int, write: Write, out: Tensor | None = None) -> Tensor:
        """As :meth:`fill` of a graph on disk, where blocks can be written to where they stay: in ``out``, if
        that is given.
        """
        array = self._empty(width) if out is None else out
        for low, high in self.own_spans():
            write(low, high, array[low:high])
        self.team.wait()
        return array

    def own_spans(self) -> Sequence[tuple[int, int]]:
        """Those of the blocks of rows that this process of the team makes."""
        return self.team.share([*self.spans()])

    def _empty(self, width: int) -> Tensor:
        large = 4 * self._nodes * width > self.memory // self._held
        if large or self.team.size > 1:
            folder = Path(self._scratch or tempfile.gettempdir()) if large else None
            shared = self.team.memory(4 * self._nodes * width, folder)
            return torch.frombuffer(shared, dtype=torch.float32).view(-1, width)
        # NumPy asks for large pages, PyTorch does not: products read rows from all over the array. They read
        # a line more of each where it does not begin with one.
        held = np.empty(self._nodes * width + _LINE, dtype=np.float32)
        start = -held.ctypes.data // held.itemsize % _LINE
        return torch.from_numpy(held[start : start + self._nodes * width].reshape(-1, width))

    def column_groups(self, width: int) -> list[slice]:
        """Columns of an array ``[N, width]`` that are worked on together: as many as have room in memory."""
        if not self.on_disk or width == 0:
            return [slice(0, width)][:width]
        most = max(1, self.memory // (self._held * 4 * self._nodes))
        most = most - most % _LINE if most > _LINE else most
        size = -(-width // -(-width // most))  # as even as can be: no last group of a few columns
        size = min(size + -size % _LINE, most)
        return [slice(at, min(at + size, width)) for at in range(0, width, size)]

    @contextmanager
    def holding(self, arrays: int, group: ProcessGroup = SINGLE) -> Iterator[None]:
        """Meanwhile no more than so many arrays are in memory at a time: the fewer, the wider each may be.

        The processes of ``group`` that are on this machine make them together if the graph is on disk. All of
        the group do the same, within the least memory that one of them has.
        """
        before = self._held, self.memory, self.team
        self._held = arrays
        if self.on_disk:
            self.memory, self.team = group.least(self.memory) * group.team.size, group.team
        try:
            yield
        finally:
            self._held, self.memory, self.team = before

    def keeps(self, width: int) -> bool:
        """Whether a finished array of so many columns stays in memory."""
        return not self.on_disk or 4 * self._nodes * width <= self.memory // _ARRAYS

    def keep(self, array: Any, of: int) -> Any:
        """Columns of an array that will have ``of``: they stay in memory only if all of them can."""
        if self.keeps(of):
            return array
        blocks = (_dense(array[low:high]) for low, high in self.spans())
        return self.write(blocks, torch.float32).view(-1, array.shape[1])

    def forget(self) -> None:
        """Let go of what was kept for blocks to come."""
        self.kept.clear()

    def join(self, parts: list[Any], finish: Callable[[Tensor], Tensor] | None = None) -> Any:
        """Columns side by side; ``finish`` is what is done to whole rows in the end."""
        if self.on_disk:
            return StoredRows(tuple(parts), finish)
        joined = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
        parts.clear()  # no room for them beside what is finished
        return joined if finish is None else finish(joined)

    def write(self, arrays: Iterable[npt.NDArray[Any]], dtype: torch.dtype) -> Tensor:
        """Arrays one after the other, in a file without a name that is gone with the tensor or process."""
        # written, not mapped: a full disk is an error then, and not the end of the process
        with tempfile.TemporaryFile(dir=self._scratch) as file:
            for array in arrays:
                file.write(array.data)
            file.flush()
            size = os.fstat(file.fileno()).st_size
            return mapped(file, dtype) if size else torch.empty(0, dtype=dtype)


def _dense(rows: Tensor | Features) -> npt.NDArray[np.float32]:
    if isinstance(rows, Tensor):
        return np.ascontiguousarray(rows.numpy(), dtype=np.float32)
    return to_dense(rows)


def mapped(file: IO[bytes], dtype: torch.dtype) -> Tensor:
    """All of a file that is not empty. Torch wants memory it could write to; the file stays as it is."""
    held = mmap.mmap(
        file.fileno(), 0, flags=mmap.MAP_PRIVATE | _NOT_SET_ASIDE, prot=mmap.PROT_READ | mmap.PROT_WRITE
    )
    return torch.frombuffer(held, dtype=dtype)


def array_bytes(room: Room) -> int:
    """What arrays may take in all: half of what a person allowed, or of what is free, then 4 GB at most."""
    return room.free // 2 if room.given else min(_MEMORY, room.free // 2)
