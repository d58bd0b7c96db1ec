"""Ids -> positions in order of first appearance, batch by batch, with only the distinct ids in memory.

One open-addressing table over the bytes of the ids: Arrow's own hash tables cannot be kept between batches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nodejepa.compiled import compiled
from nodejepa.errors import GraphError

_MOST = np.iinfo(np.int32).max


class Numbering:
    """Distinct ids seen so far; ``width`` 8 for whole numbers, 0 for text.

    >>> numbers = Numbering(0)
    >>> numbers.codes(pa.chunked_array([["b", "a", "b"]])).tolist(), len(numbers)
    ([0, 1, 0], 2)
    """

    def __init__(self, width: int) -> None:
        self.width, self.count = width, 0
        self._slots = np.zeros(1 << 16, dtype=np.int32)
        self._letters = np.zeros(1 << 20, dtype=np.uint8)
        self._ends = np.zeros((1 << 15) + 1, dtype=np.int64)  # of text; that of id i is entry i + 1

    def __len__(self) -> int:
        return self.count

    def codes(self, values: pa.ChunkedArray) -> npt.NDArray[np.int32]:
        """Positions of the values, which are int64 or text without missing ones; new ids are numbered."""
        parts = [self._chunk(chunk) for chunk in values.chunks if len(chunk)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32)

    def _chunk(self, chunk: pa.Array) -> npt.NDArray[np.int32]:
        size = len(chunk)
        if self.width:
            letters = np.ascontiguousarray(chunk.to_numpy(zero_copy_only=False), dtype=np.int64).view(
                np.uint8
            )
            ends = np.arange(0, 8 * (size + 1), 8, dtype=np.int64)
        else:
            chunk = chunk.cast(pa.large_string())
            _, offsets, text = chunk.buffers()
            ends = np.frombuffer(offsets, dtype=np.int64)[chunk.offset : chunk.offset + size + 1]
            letters = np.frombuffer(text or b"", dtype=np.uint8)
        codes = np.empty(size, dtype=np.int32)
        self._make_room(int(ends[-1] - ends[0]), size)
        self.count = _number(
            letters, ends, self._slots, self._letters, self._ends, self.width, self.count, codes
        )
        return codes

    def _make_room(self, letters: int, ids: int) -> None:
        """For what may come; at most a batch more than what is there."""
        if self.count + ids > _MOST:
            raise GraphError(f"there are more than {_MOST} ids", where="ids")
        used = self.count * self.width if self.width else int(self._ends[self.count])
        if used + letters > len(self._letters):
            self._letters = _grown(self._letters, used + letters)
        if not self.width and self.count + ids + 1 > len(self._ends):
            self._ends = _grown(self._ends, self.count + ids + 1)
        if 2 * (self.count + ids) > len(self._slots):
            size = 1 << int(2 * (self.count + ids)).bit_length()
            self._slots = np.zeros(size, dtype=np.int32)
            _enter(self._letters, self._ends, self.width, self.count, self._slots)

    def ids(self) -> pa.Array:
        """The distinct ids, in order."""
        if self.width:
            return pa.array(self._letters[: 8 * self.count].view(np.int64))
        text = pa.py_buffer(self._letters[: self._ends[self.count]])
        offsets = pa.py_buffer(self._ends[: self.count + 1])
        return pa.Array.from_buffers(pa.large_string(), self.count, [None, offsets, text])


def _grown(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    larger = np.zeros(max(size, len(array) * 3 // 2), dtype=array.dtype)
    larger[: len(array)] = array
    return larger


@compiled()
def _hash(letters: Any, start: int, end: int) -> Any:
    """FNV-1a, then mixed: the table uses the low bits."""
    h = np.uint64(14695981039346656037)
    for i in range(start, end):
        h = (h ^ np.uint64(letters[i])) * np.uint64(1099511628211)
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(29))


@compiled()
def _number(
    letters: Any, ends: Any, slots: Any, known: Any, known_ends: Any, width: int, count: int, codes: Any
) -> int:
    """Look up or enter values; room was made for all of them. Returns how many distinct ones there are."""
    mask = np.uint64(len(slots) - 1)
    one = np.uint64(1)
    for row in range(len(codes)):
        start, end = ends[row], ends[row + 1]
        size = end - start
        slot = _hash(letters, start, end) & mask
        while True:
            code = slots[slot] - 1
            if code < 0:
                place = count * width if width else known_ends[count]
                for i in range(size):
                    known[place + i] = letters[start + i]
                if not width:
                    known_ends[count + 1] = place + size
                count += 1
                slots[slot] = count
                codes[row] = count - 1
                break
            place = code * width if width else known_ends[code]
            same = width > 0 or known_ends[code + 1] - place == size
            i = 0
            while same and i < size:
                same = known[place + i] == letters[start + i]
                i += 1
            if same:
                codes[row] = code
                break
            slot = (slot + one) & mask
    return count


@compiled()
def _enter(known: Any, known_ends: Any, width: int, count: int, slots: Any) -> None:
    """All ids into an empty table."""
    mask = np.uint64(len(slots) - 1)
    for code in range(count):
        start = code * width if width else known_ends[code]
        end = start + width if width else known_ends[code + 1]
        slot = _hash(known, start, end) & mask
        while slots[slot]:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = code + 1
