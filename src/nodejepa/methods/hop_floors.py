"""Floors that hear the features over several hops: propagated, added up, walked. Nothing is learned."""

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from nodejepa.diagnostics import TallRows
from nodejepa.graph import Graph
from nodejepa.graph_checks import Features
from nodejepa.methods.floors import FeatureMap, Floor
from nodejepa.nn.hop_encoder import walk_weights
from nodejepa.nn.sparse import density, to_dense
from nodejepa.nn.stored import Tall
from nodejepa.nn.stored_inputs import StoredInputs
from nodejepa.tables.store import StoredGraph
from nodejepa.validation import NonNegativeInt, PositiveInt, Settings, ShareBelowOne


@dataclass(frozen=True)
class SGCConfig(Settings):
    """Settings of :class:`SGC` and :class:`EqualHops`."""

    hops: NonNegativeInt = 2  # S^2 X (docs/decisions.md)


class SGC(Floor):
    """Features propagated k times, :math:`S^k X` (Wu et al. 2019): smoothing without learning."""

    name = "sgc"
    config_class = SGCConfig

    def _embed_stored(self, graph: StoredGraph, scratch: Path | None) -> TallRows:
        """The same of a graph on disk, some columns after the others."""
        inputs, parts = self._stored_inputs(graph, scratch), []
        for group in inputs.column_groups(graph.num_features):
            for hop in _stored_hops(inputs, group, self.config.hops):
                last = hop
            parts.append(inputs.put_away(last, of=graph.num_features))
        return Tall(tuple(parts))

    def make_encoder(self, in_dim: int) -> FeatureMap:  # noqa: ARG002 - no weights
        """``S^k X`` ``[N, F]``; stays sparse as long as that saves memory."""

        def propagated(graph: Graph) -> Features:
            for hop in _hops(graph, self.config.hops):
                last = hop
            return last

        return FeatureMap(propagated)


class SGC1(SGC):
    """Once: a node among its neighbours."""

    name = "sgc-1"
    usual: ClassVar[Mapping[str, Any]] = {"hops": 1}


class SGC3(SGC):
    """Three times: as far as the paper's encoder sees."""

    name = "sgc-3"
    usual: ClassVar[Mapping[str, Any]] = {"hops": 3}


class EqualHops(Floor):
    r"""Features and what they look like one and two hops away, equally loud:
    :math:`\sum_k S^k X / \|S^k X\|_F`.

    Propagation drowns a node's own features where degrees are high; this keeps them audible.
    """

    name = "equal-hops"
    config_class = SGCConfig

    def _embed_stored(self, graph: StoredGraph, scratch: Path | None) -> TallRows:
        """The same of a graph on disk: one pass finds how loud the hops are, one adds them up."""
        inputs, width = self._stored_inputs(graph, scratch), graph.num_features
        squares = [0.0] * (self.config.hops + 1)
        for group in inputs.column_groups(width):
            for k, hop in enumerate(_stored_hops(inputs, group, self.config.hops)):
                squares[k] += sum(_squares(hop[low:high].numpy()) for low, high in graph.spans())
        return _stored_sum(inputs, width, [_loudness(square, graph.num_nodes) for square in squares])

    def make_encoder(self, in_dim: int) -> FeatureMap:  # noqa: ARG002 - no weights
        """``[N, F]``; stays sparse as long as that saves memory."""

        return FeatureMap(lambda graph: _sum(_scaled(hop) for hop in _hops(graph, self.config.hops)))


@dataclass(frozen=True)
class WalkConfig(Settings):
    """Settings of :class:`Walk`: those of LinearJEPA's walk."""

    hops: PositiveInt = 10
    restart: ShareBelowOne = 0.15


class Walk(Floor):
    r"""Features after the walk with restart that LinearJEPA's latents take (Gasteiger et al. 2019): what the
    walk is worth without what was learned.
    """

    name = "walk"
    config_class = WalkConfig

    def _weights(self) -> list[float]:
        return [float(np.float32(w)) for w in walk_weights(self.config.hops, self.config.restart)]

    def _embed_stored(self, graph: StoredGraph, scratch: Path | None) -> TallRows:
        """The same of a graph on disk."""
        return _stored_sum(self._stored_inputs(graph, scratch), graph.num_features, self._weights())

    def make_encoder(self, in_dim: int) -> FeatureMap:  # noqa: ARG002 - no weights
        """``[N, F]``; stays sparse as long as that saves memory."""
        weights = self._weights()
        return FeatureMap(
            lambda graph: _sum(
                hop * np.float32(weight)
                for hop, weight in zip(_hops(graph, self.config.hops), weights, strict=True)
            )
        )


def _hops(graph: Graph, hops: int) -> Iterator[Features]:
    """X, S X, ... one after the other."""
    x = graph.features
    yield x
    for _ in range(hops):
        x = _propagate(graph, x)
        yield x


def _sum(parts: Iterator[Features]) -> Features:
    total = next(parts)
    for part in parts:
        total = total + part
    return total if sp.issparse(total) else np.asarray(total, dtype=np.float32)


def _stored_sum(inputs: StoredInputs, width: int, weights: Sequence[float]) -> Tall:
    """Hops of a graph on disk, each as loud as its weight, added up some columns after the others."""
    parts = []
    for group in inputs.column_groups(width):
        hops = zip(_stored_hops(inputs, group, len(weights) - 1), weights, strict=True)
        total = operator.mul(*next(hops))
        for hop, weight in hops:
            total += hop * weight
        parts.append(inputs.put_away(total, of=width))
    return Tall(tuple(parts))


def _scaled(x: Features) -> Features:
    """As loud as any other: rows have a mean square of 1."""
    return x * np.float32(_loudness(_squares(x.data if sp.issparse(x) else x), x.shape[0]))


def _squares(values: Any) -> float:
    return float(np.sum(np.square(values, dtype=np.float64)))


def _loudness(squares: float, rows: int) -> float:
    mean = squares / max(rows, 1)
    return float(np.float32(1 / np.sqrt(mean))) if mean > 0 else 1.0


def _stored_hops(inputs: StoredInputs, columns: slice, hops: int) -> Iterator[Tensor]:
    """Columns of X, S X, ... with the bits of SciPy's product, which the graph in memory is multiplied by."""
    width, rows = columns.stop - columns.start, inputs.graph.feature_rows
    x = inputs.tall(width, lambda low, high: torch.from_numpy(to_dense(rows(low, high)[:, columns])))
    yield x
    for _ in range(hops):
        before = x.numpy()

        def block(low: int, high: int, before: Any = before) -> Tensor:
            return torch.from_numpy(inputs.operator_rows("propagation", low, high).matrix @ before)

        x = inputs.tall(width, block)
        yield x


def _propagate(graph: Graph, x: Features) -> Features:
    x = graph.normalized_adjacency @ x
    return to_dense(x) if sp.issparse(x) and density(x) > 0.5 else x  # CSR keeps 8 bytes an entry, dense 4
