"""Rows of features into files as they come: dense, or, where most of it is zero, CSR."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nodejepa.graph_checks import Features, compact_csr
from nodejepa.store.layout import DENSE, SPARSE, put

_ROWS = 1 << 12  # that are turned from one form into the other at a time


@final
class FeatureWriter:
    """Appends rows to the files of one form; given in the other form, rows are turned into it.

    Args:
        folder: of the store.
        sparse: the form.
    """

    def __init__(self, folder: Path, *, sparse: bool) -> None:
        self.folder, self.sparse, self.entries = folder, sparse, 0
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        names = SPARSE if self.sparse else (DENSE,)
        self._files = [self._stack.enter_context((self.folder / name).open("wb")) for name in names]
        if self.sparse:
            put(self._files[0], np.zeros(1, dtype=np.int64))
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: BaseException | TracebackType | None) -> None:
        self._stack.close()

    def add(self, rows: Features) -> None:
        """Write some more rows."""
        if not self.sparse:
            put(self._files[0], rows if isinstance(rows, np.ndarray) else rows.toarray())
            return
        matrix = sp.csr_array(rows)
        pointers, columns, values = self._files
        put(pointers, self.entries + matrix.indptr[1:].astype(np.int64))
        put(columns, matrix.indices.astype(np.int32))
        put(values, matrix.data)
        self.entries += int(matrix.nnz)


def turn_form(folder: Path, shape: tuple[int, int], *, sparse: bool) -> int:
    """Write features again in the other form (``sparse``: the new one), and remove them in the old one."""
    with FeatureWriter(folder, sparse=sparse) as writer:
        old = [folder / name for name in ((DENSE,) if sparse else SPARSE)]
        pointers = np.zeros(0) if sparse else np.fromfile(old[0], dtype=np.int64)
        for low in range(0, shape[0], _ROWS):
            high = min(low + _ROWS, shape[0])
            if sparse:
                count = (high - low) * shape[1]
                dense = np.fromfile(old[0], np.float32, count, offset=4 * low * shape[1])
                writer.add(dense.reshape(high - low, shape[1]))
            else:
                writer.add(_read(old, pointers[low : high + 1], shape[1]))
    for path in old:
        path.unlink()
    return writer.entries


def _read(paths: list[Path], pointers: npt.NDArray[Any], columns: int) -> sp.csr_array:
    first, count = int(pointers[0]), int(pointers[-1] - pointers[0])
    indices = np.fromfile(paths[1], np.int32, count, offset=4 * first)
    values = np.fromfile(paths[2], np.float32, count, offset=4 * first)
    return compact_csr(values, indices, pointers - first, len(pointers) - 1, columns)
