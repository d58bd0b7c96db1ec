"""Embeddings of a graph on disk: layer by layer, each in blocks of rows, the layers on disk where large."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from nodejepa.graph_checks import Features
from nodejepa.nn.hop_encoder import HopEncoder
from nodejepa.nn.sparse import to_dense
from nodejepa.nn.stack import Encoder
from nodejepa.nn.stored_inputs import StoredInputs
from nodejepa.progress import progress_bar
from nodejepa.tables.store import StoredGraph


@final
@dataclass(frozen=True, eq=False)
class StoredFeatures:
    """X of a graph on disk."""

    graph: StoredGraph

    @property
    def shape(self) -> tuple[int, int]:
        """Nodes and columns."""
        return self.graph.num_nodes, self.graph.num_features

    def rows(self, low: int, high: int) -> npt.NDArray[np.float32]:
        """Rows ``low`` to ``high - 1``."""
        return to_dense(self.graph.feature_rows(low, high))

    def at(self, nodes: npt.NDArray[np.int64]) -> Features:
        """The rows of some nodes, ascending."""
        bounds = ((span[0], *np.searchsorted(nodes, span).tolist(), span[1]) for span in self.graph.spans())
        parts = [self.graph.feature_rows(low, high)[nodes[a:b] - low] for low, a, b, high in bounds]
        return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else sp.csr_array(sp.vstack(parts))


@final
@dataclass(frozen=True, eq=False)
class Tall:
    """Tall rows that were computed, some columns after the others, and are finished when read."""

    parts: tuple[Tensor, ...]
    finish: Callable[[Tensor], Tensor] = lambda rows: rows

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.parts[0]), sum(part.shape[1] for part in self.parts)

    def rows(self, low: int, high: int) -> npt.NDArray[np.float32]:
        """Rows ``low`` to ``high - 1``."""
        return self.finish(torch.cat([part[low:high] for part in self.parts], dim=1)).numpy()

    def at(self, nodes: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """The rows of some nodes, ascending."""
        places = torch.from_numpy(nodes)
        return self.finish(torch.cat([part[places] for part in self.parts], dim=1)).numpy()


def embed_stored(encoder: Encoder | HopEncoder, inputs: StoredInputs) -> Tall:
    """What ``encoder.embed`` gives for the graph in memory: to the bit for a GCN, else but for rounding."""
    return _hops(encoder, inputs) if isinstance(encoder, HopEncoder) else _layers(encoder, inputs)


def _hops(encoder: HopEncoder, inputs: StoredInputs) -> Tall:
    found: dict[int, Tensor] = {}
    with progress_bar("Embedding", total=encoder.out_dim) as advance, inputs.holding(encoder.held):
        for columns, part in encoder.embed_columns(inputs):
            found[columns.start] = inputs.put_away(part, of=encoder.out_dim)
            del part  # while the walk goes on, there is no room for it
            advance(columns.stop - columns.start)
    inputs.__dict__.pop("propagation", None)  # its rows take room on disk until nobody knows it
    return Tall(tuple(found[start] for start in sorted(found)), encoder.finish)


def _layers(encoder: Encoder, inputs: StoredInputs) -> Tall:
    given = inputs.row_normalised if encoder.row_normalise else inputs
    assert isinstance(given, StoredInputs)
    h = torch.empty(0, 0)  # the first layer reads features
    with progress_bar("Embedding", total=len(encoder.norms)) as advance:
        for layer in range(len(encoder.norms)):
            h = _layer(encoder, layer, given, h)
            given.forget()
            advance()
    return Tall((h,))


def _layer(encoder: Encoder, layer: int, inputs: StoredInputs, before: Tensor) -> Tensor:
    shared, sample = before, before[:1]
    if layer and (changed := encoder.shared(layer, sample)) is not sample:
        shared = inputs.tall(changed.shape[1], lambda low, high: encoder.shared(layer, before[low:high]))

    def block(low: int, high: int) -> Tensor:
        rows = np.zeros(inputs.num_nodes, dtype=bool)
        rows[low:high] = True
        out = (
            encoder.later_layer(layer, inputs, shared, rows)
            if layer
            else encoder.first_layer(inputs, None, None, rows)
        )
        done: Tensor = encoder.activations[layer](encoder.norms[layer](out))
        return done

    return inputs.tall(encoder.widths[layer + 1], block)
