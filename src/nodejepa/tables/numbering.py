"""Ids -> positions in order of first appearance, batch by batch, with only the distinct ids in memory.

One open-addressing table over the bytes of the ids: Arrow's own hash tables cannot be kept between batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nodejepa.compiled import compiled
from nodejepa.errors import GraphError
from nodejepa.machine import Room

_MOST = np.iinfo(np.int32).max  # positions are 32-bit numbers in every array of the store
_ROWS = 1 << 18  # looked up together: room for as many new ids is made before
_LETTERS = 1 << 25
_AHEAD = 256  # look-ups whose memory is fetched together
_TAG = np.uint64(0xFFFFFFFF00000000)  # of a slot: the upper half of the hash; the lower is the code + 1


class Numbering:
    """Distinct ids seen so far; ``width`` 8 for whole numbers, 0 for text. They must fit into ``room``.

    >>> numbers = Numbering(0)
    >>> numbers.codes(pa.chunked_array([["b", "a", "b"]])).tolist(), len(numbers)
    ([0, 1, 0], 2)
    """

    def __init__(self, width: int, room: Room | None = None) -> None:
        self.width, self.count, self.room = width, 0, room
        self._slots = np.zeros(1 << 16, dtype=np.uint64)
        self._letters = np.zeros(1 << 20, dtype=np.uint8)
        self._ends = np.zeros((1 << 15) + 1, dtype=np.int64)  # of text; that of id i is entry i + 1
        self._require(0)

    def __len__(self) -> int:
        return self.count

    def codes(self, values: pa.ChunkedArray) -> npt.NDArray[np.int32]:
        """Positions of the values, which are int64 or text without missing ones; new ids are numbered."""
        parts = [self._part(*part) for chunk in values.chunks for part in self._parts(chunk)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32)

    def _parts(self, chunk: pa.Array) -> Iterator[tuple[Any, Any]]:
        """Letters and where the values of some rows end in them, bounded in rows and in letters."""
        size = len(chunk)
        if self.width:
            whole = np.ascontiguousarray(chunk.to_numpy(zero_copy_only=False), dtype=np.int64)
            letters, ends = whole.view(np.uint8), np.arange(0, 8 * (size + 1), 8, dtype=np.int64)
        else:
            chunk = chunk.cast(pa.large_string())
            _, offsets, text = chunk.buffers()
            ends = np.frombuffer(offsets, dtype=np.int64)[chunk.offset : chunk.offset + size + 1]
            letters = np.frombuffer(text or b"", dtype=np.uint8)
        low = 0
        while low < size:
            high = int(np.searchsorted(ends, ends[low] + _LETTERS, side="right")) - 1
            high = max(low + 1, min(high, low + _ROWS, size))
            yield letters, ends[low : high + 1]
            low = high

    def _part(self, letters: Any, ends: Any) -> npt.NDArray[np.int32]:
        codes = np.empty(len(ends) - 1, dtype=np.int32)
        self._make_room(int(ends[-1] - ends[0]), len(codes))
        hashes = np.empty(len(codes), dtype=np.uint64)
        _hash(letters, ends, hashes)
        known = (self._letters, self._ends, self.width, self.count)
        self.count = _number(letters, ends, hashes, self._slots, *known, codes)
        return codes

    def _make_room(self, letters: int, ids: int) -> None:
        """For what may come: no more than one part holds beyond what is there."""
        if self.count + ids > _MOST:
            raise GraphError(
                f"there are more than {_MOST - _ROWS:,} nodes",
                where="ids",
                fix="Split the graph: positions of nodes are 32-bit numbers.",
            )
        used = self.count * self.width if self.width else int(self._ends[self.count])
        if used + letters > len(self._letters):
            self._letters = self._grown(self._letters, used + letters)
        if not self.width and self.count + ids + 1 > len(self._ends):
            self._ends = self._grown(self._ends, self.count + ids + 1)
        if 2 * (self.count + ids) > len(self._slots):
            slots = 1 << int(2 * (self.count + ids)).bit_length()
            self._require(8 * slots)
            self._slots = np.zeros(slots, dtype=np.uint64)
            ends = np.arange(0, 8 * self.count + 1, 8) if self.width else self._ends[: self.count + 1]
            hashes = np.empty(self.count, dtype=np.uint64)
            _hash(self._letters, ends, hashes)
            _enter(hashes, self._slots)

    def _grown(self, array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
        size = max(size, len(array) * 3 // 2)
        self._require(size * array.itemsize)
        larger = np.zeros(size, dtype=array.dtype)
        larger[: len(array)] = array
        return larger

    def _require(self, more: int) -> None:
        held = self._letters.nbytes + self._ends.nbytes + self._slots.nbytes
        if self.room is not None:
            self.room.require(held + more, f"numbering {self.count:,} ids and more", "ids")

    def ids(self) -> pa.Array:
        """The distinct ids, in order."""
        if self.width:
            return pa.array(self._letters[: 8 * self.count].view(np.int64))
        text = pa.py_buffer(self._letters[: self._ends[self.count]])
        offsets = pa.py_buffer(self._ends[: self.count + 1])
        return pa.Array.from_buffers(pa.large_string(), self.count, [None, offsets, text])


@compiled()
def _hash(letters: Any, ends: Any, hashes: Any) -> None:
    """Eight letters at a time, multiplied and mixed; the table uses the low bits, its tags the high ones."""
    prime = np.uint64(0x9E3779B97F4A7C15)
    for row in range(len(hashes)):
        at, end = ends[row], ends[row + 1]
        h = np.uint64(end - at)
        while at < end:
            word = np.uint64(0)
            if at + 8 <= end:
                for i in range(8):  # of a known length: one load
                    word |= np.uint64(letters[at + i]) << np.uint64(8 * i)
            else:
                for i in range(end - at):
                    word |= np.uint64(letters[at + i]) << np.uint64(8 * i)
            h = (h ^ word) * prime
            h ^= h >> np.uint64(32)
            at += 8
        h *= np.uint64(0xBF58476D1CE4E5B9)
        hashes[row] = h ^ (h >> np.uint64(29))


@compiled()
def _number(
    letters: Any,
    ends: Any,
    hashes: Any,
    slots: Any,
    known: Any,
    known_ends: Any,
    width: int,
    count: int,
    codes: Any,
) -> int:
    """Look up or enter values; room was made for all of them. Returns how many distinct ones there are.

    Memory is what this waits for, so the first slots of many values, and where their ids are kept, are read
    before any is compared: the processor fetches them at the same time.
    """
    mask, one = np.uint64(len(slots) - 1), np.uint64(1)
    first = np.empty(_AHEAD, dtype=np.uint64)
    starts, stops = np.empty(_AHEAD, dtype=np.int64), np.empty(_AHEAD, dtype=np.int64)
    fetched = np.empty(_AHEAD, dtype=np.uint8)
    for low in range(0, len(codes), _AHEAD):
        size = min(_AHEAD, len(codes) - low)
        for i in range(size):
            first[i] = slots[hashes[low + i] & mask]
        for i in range(size):
            starts[i], stops[i] = -1, -1
            if first[i] != 0 and (first[i] ^ hashes[low + i]) & _TAG == 0:
                starts[i], stops[i] = _place(first[i], known_ends, width)
        for i in range(size):
            fetched[i] = known[max(starts[i], 0)]
        for i in range(size):
            row = low + i
            start, end = ends[row], ends[row + 1]
            if starts[i] >= 0 and _same(letters, start, end, known, starts[i], stops[i]):
                codes[row] = _code(first[i])
                continue
            slot = hashes[row] & mask
            while True:
                kept = slots[slot]
                if kept == 0:
                    place = count * width if width else known_ends[count]
                    for j in range(end - start):
                        known[place + j] = letters[start + j]
                    if not width:
                        known_ends[count + 1] = place + end - start
                    codes[row] = count
                    count += 1
                    slots[slot] = (hashes[row] & _TAG) | np.uint64(count)
                    break
                if (kept ^ hashes[row]) & _TAG == 0:
                    place, stop = _place(kept, known_ends, width)
                    if _same(letters, start, end, known, place, stop):
                        codes[row] = _code(kept)
                        break
                slot = (slot + one) & mask
    return count


@compiled(inline="always")
def _code(slot: Any) -> Any:
    return np.int64(slot & np.uint64(0xFFFFFFFF)) - 1


@compiled(inline="always")
def _place(slot: Any, known_ends: Any, width: int) -> Any:
    """Where the letters of the id in a slot begin and end."""
    code = _code(slot)
    if width:
        return code * width, (code + 1) * width
    return known_ends[code], known_ends[code + 1]


@compiled()
def _same(letters: Any, start: int, end: int, known: Any, place: int, stop: int) -> bool:
    size, i = end - start, 0
    if stop - place != size:
        return False
    while i < size and known[place + i] == letters[start + i]:
        i += 1
    return i == size


@compiled()
def _enter(hashes: Any, slots: Any) -> None:
    """All ids into an empty table."""
    mask, one = np.uint64(len(slots) - 1), np.uint64(1)
    for code in range(len(hashes)):
        slot = hashes[code] & mask
        while slots[slot]:
            slot = (slot + one) & mask
        slots[slot] = (hashes[code] & _TAG) | np.uint64(code + 1)
