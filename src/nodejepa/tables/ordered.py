"""A copy of a stored graph whose rows are ordered by part: a part is then one range of each file."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from nodejepa.errors import NodeJEPAError
from nodejepa.files import lock_file, refusals
from nodejepa.graph import digest
from nodejepa.graph_checks import Features, SparseMatrix
from nodejepa.machine import progress_bar
from nodejepa.tables.store import (
    DENSE,
    SPARSE,
    Manifest,
    StoredGraph,
    damaged,
    put,
    whole_folder,
    write_array,
)

Int32Array = npt.NDArray[np.int32]
_PREFIX = "parts-"
_OWN = ("order.i32", "in_weights.f64")  # that other stores do not have


@final
class OrderedStore:
    """Rows of the copy, part after part, as :class:`nodejepa.nn.stored_inputs.StoredPart` reads them.

    Args:
        folder: of the copy.
        directed: whether the graph is.
        starts: the first row of every part, and the number of all rows.
    """

    def __init__(self, folder: Path, directed: bool, starts: npt.NDArray[np.int64]) -> None:
        self._graph = StoredGraph(folder)
        self.directed, self.num_features, self.starts = directed, self._graph.num_features, starts
        self.sparse_features = self._graph.sparse_features
        self._order = np.memmap(folder / _OWN[0], dtype=np.int32, mode="r")
        self.in_weights = np.asarray(np.memmap(folder / _OWN[1], dtype=np.float64, mode="r"))
        if not len(self._order) == len(self.in_weights) == self._graph.num_nodes:
            raise damaged(folder, "it does not have as many nodes as rows")
        # opened now: another process may remove the copy, and who has it open reads on
        self.rows(0, 1), self.features(0, 1)

    def verify(self) -> None:
        """Read all of it and compare checksums; what has changed is an error."""
        self._graph.verify()

    def rows(self, low: int, high: int) -> SparseMatrix:
        """Rows of the adjacency; their columns are rows of the copy."""
        return self._graph.rows(low, high)

    def features(self, low: int, high: int) -> Features:
        """Rows of X."""
        return self._graph.feature_rows(low, high)

    def nodes(self, low: int, high: int) -> Int32Array:
        """Where they are in the graph."""
        return np.asarray(self._order[low:high])


def ordered_by_part(graph: StoredGraph, part: Int32Array) -> OrderedStore:
    """The copy, in the folder of the graph: made by the first process that asks, while others wait for it.

    A copy of other parts is removed, since each is as large as the graph; who reads it may go on. One that is
    there already is read once to compare its checksums, and made again where bytes have changed.
    """
    starts = np.concatenate([[0], np.cumsum(np.bincount(part))])
    folder = graph.folder / f"{_PREFIX}{digest(part)[:16]}"
    with refusals(folder), lock_file(graph.folder / ".parts.lock", wait=True):
        try:
            found = OrderedStore(folder, graph.directed, starts)
            found.verify()
            return found
        except (NodeJEPAError, OSError, ValueError):  # none is there, or not a whole one
            for other in graph.folder.glob(f"*{_PREFIX}*"):
                shutil.rmtree(other)
        with whole_folder(folder) as unfinished:
            _write(graph, part, unfinished)
        return OrderedStore(folder, graph.directed, starts)


def _write(graph: StoredGraph, part: Int32Array, folder: Path) -> None:
    order = np.argsort(part, kind="stable").astype(np.int32)
    place = np.empty_like(order)
    place[order] = np.arange(order.size, dtype=np.int32)
    sparse = graph.manifest.feature_entries is not None
    lengths, into = np.empty(order.size, dtype=np.int64), np.empty(order.size)
    for low, high in graph.spans():
        lengths[low:high] = np.diff(graph.rows(low, high).indptr)
        incoming = graph.in_rows(low, high)
        of = np.repeat(np.arange(high - low), np.diff(incoming.indptr))
        into[low:high] = np.bincount(of, incoming.data, minlength=high - low)
    pointers = _pointers(lengths[order])
    arrays: dict[str, npt.NDArray[Any]] = {"indptr.i64": pointers, _OWN[0]: order, _OWN[1]: into[order]}
    of_features = _pointers(graph.feature_lengths[order]) if sparse else None
    if of_features is not None:
        arrays[SPARSE[0]] = of_features
    for name, array in arrays.items():
        write_array(folder / name, array)
    names = ["indices.i32", *(["weights.f32"] if graph.is_weighted else [])]
    names += SPARSE[1:] if sparse else [DENSE]
    with ExitStack() as stack, progress_bar("Ordering the graph by part", total=order.size) as advance:
        files = {name: stack.enter_context((folder / name).open("wb")) for name in names}
        for low, high in graph.spans():
            by = np.argsort(part[low:high], kind="stable")
            rows, x = graph.rows(low, high)[by], graph.feature_rows(low, high)[by]
            columns = place[rows.indices]
            for first, last in _runs(part[low:high][by]):
                at = int(place[low + by[first]])
                entries = slice(rows.indptr[first], rows.indptr[last])
                _put_at(files["indices.i32"], int(pointers[at]), columns[entries])
                if graph.is_weighted:
                    _put_at(files["weights.f32"], int(pointers[at]), rows.data[entries])
                if of_features is None or isinstance(x, np.ndarray):
                    _put_at(files[DENSE], at * graph.num_features, x[first:last])
                    continue
                entries = slice(x.indptr[first], x.indptr[last])
                for name, values in zip(SPARSE[1:], (x.indices.astype(np.int32), x.data), strict=True):
                    _put_at(files[name], int(of_features[at]), values[entries])
            advance(high - low)
    # only out-edges are asked of it, so that it is written as a graph without directions
    sized = (order.size, graph.num_edges, graph.num_features, False, graph.is_weighted)
    facts = Manifest(*sized, id_kind="position", feature_entries=graph.manifest.feature_entries)
    facts.write(folder, _OWN)


def _pointers(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)])


def _runs(values: Int32Array) -> Iterator[tuple[int, int]]:
    """``(first, last)`` of runs of equal values."""
    bounds = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), values.size]
    return pairwise(bounds)


def _put_at(file: Any, place: int, array: npt.NDArray[Any]) -> None:
    file.seek(place * array.itemsize)
    put(file, array)
