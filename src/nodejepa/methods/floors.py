"""The floors: what costs no training. A method that does not beat them has learned nothing useful."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from nodejepa.config import require
from nodejepa.errors import ConfigError
from nodejepa.graph import Graph
from nodejepa.graph_checks import Features
from nodejepa.io import as_graph
from nodejepa.methods.arguments import check_columns, check_config, check_seed
from nodejepa.methods.estimator import pick_device
from nodejepa.nn.gcn import GCN
from nodejepa.nn.inputs import StoredInputs, WholeGraph
from nodejepa.nn.sparse import density, to_dense
from nodejepa.nn.stored import Tall, embed_stored
from nodejepa.store.graph import StoredGraph
from nodejepa.training.seeding import seeded


@dataclass(frozen=True)
class RawConfig:
    """Raw features have nothing to set."""


class RawFeatures:
    """The node features themselves."""

    config_class = RawConfig

    def __init__(self, config: RawConfig | None = None, *, seed: int = 0, device: str = "auto") -> None:
        self.config = check_config(RawConfig() if config is None else config, RawConfig, "raw")
        self.seed, self.device = check_seed(seed), device

    def fit(self, graph: Any) -> RawFeatures:
        """Nothing to learn."""
        _given(graph)
        return self

    def transform(self, graph: Any) -> Features:
        """X ``[N, F]``, sparse if the graph's features are."""
        return as_graph(graph).features

    def transform_stored(self, graph: StoredGraph, scratch: Path | None = None) -> Tall:
        """X of a graph on disk."""
        return Tall((StoredInputs(graph, scratch).features,))


@dataclass(frozen=True)
class SGCConfig:
    """Settings of :class:`SGC`."""

    hops: int = 2  # S^2 X (docs/decisions.md)

    def __post_init__(self) -> None:
        require(self.hops >= 0, "hops", self.hops, "0 or more")


class SGC:
    """Features propagated k times, :math:`S^k X` (Wu et al. 2019): smoothing without learning."""

    config_class = SGCConfig

    def __init__(self, config: SGCConfig | None = None, *, seed: int = 0, device: str = "auto") -> None:
        self.config = check_config(SGCConfig() if config is None else config, SGCConfig, "sgc")
        self.seed, self.device = check_seed(seed), device

    def fit(self, graph: Any) -> SGC:
        """Nothing to learn."""
        _given(graph)
        return self

    def transform_stored(self, graph: StoredGraph, scratch: Path | None = None) -> Tall:
        """The same of a graph on disk, some columns after the others."""
        inputs, parts = StoredInputs(graph, scratch), []
        for group in inputs.column_groups(graph.num_features):
            for hop in _stored_hops(inputs, group, self.config.hops):
                last = hop
            parts.append(inputs.put_away(last, of=graph.num_features))
        return Tall(tuple(parts))

    def transform(self, graph: Any) -> Features:
        """``S^k X`` ``[N, F]``; stays sparse as long as that saves memory."""
        graph = as_graph(graph)
        x = graph.features
        for _ in range(self.config.hops):
            x = _propagate(graph, x)
        return x


@dataclass(frozen=True)
class EqualHopsConfig:
    """Settings of :class:`EqualHops`."""

    hops: int = 2

    def __post_init__(self) -> None:
        require(self.hops >= 0, "hops", self.hops, "0 or more")


class EqualHops:
    r"""Features and what they look like one and two hops away, equally loud:
    :math:`\sum_k S^k X / \|S^k X\|_F`.

    Propagation drowns a node's own features where degrees are high; this keeps them audible.
    """

    config_class = EqualHopsConfig

    def __init__(self, config: EqualHopsConfig | None = None, *, seed: int = 0, device: str = "auto") -> None:
        self.config = check_config(
            EqualHopsConfig() if config is None else config, EqualHopsConfig, "equal-hops"
        )
        self.seed, self.device = check_seed(seed), device

    def fit(self, graph: Any) -> EqualHops:
        """Nothing to learn."""
        _given(graph)
        return self

    def transform_stored(self, graph: StoredGraph, scratch: Path | None = None) -> Tall:
        """The same of a graph on disk: one pass finds how loud the hops are, one adds them up."""
        inputs, width = StoredInputs(graph, scratch), graph.num_features
        squares = [0.0] * (self.config.hops + 1)
        for group in inputs.column_groups(width):
            for k, hop in enumerate(_stored_hops(inputs, group, self.config.hops)):
                squares[k] += sum(_squares(hop[low:high].numpy()) for low, high in graph.spans())
        parts = []
        for group in inputs.column_groups(width):
            scaled = (
                hop * _loudness(square, graph.num_nodes)
                for hop, square in zip(_stored_hops(inputs, group, self.config.hops), squares, strict=True)
            )
            total = next(scaled)
            for hop in scaled:
                total += hop
            parts.append(inputs.put_away(total, of=width))
        return Tall(tuple(parts))

    def transform(self, graph: Any) -> Features:
        """``[N, F]``; stays sparse as long as that saves memory."""
        graph = as_graph(graph)
        hop = graph.features
        total = _scaled(hop)
        for _ in range(self.config.hops):
            hop = _propagate(graph, hop)
            total = total + _scaled(hop)
        return total if sp.issparse(total) else np.asarray(total, dtype=np.float32)


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
    width = columns.stop - columns.start
    x = inputs.tall(width, lambda low, high: inputs.features[low:high, columns])
    yield x
    for _ in range(hops):
        before = x.numpy()

        def block(low: int, high: int, before: Any = before) -> Tensor:
            return torch.from_numpy(inputs.operator_rows("propagation", low, high).matrix @ before)

        x = inputs.tall(width, block)
        yield x


def _given(graph: Any) -> Graph | StoredGraph:
    return graph if isinstance(graph, StoredGraph) else as_graph(graph)


def _propagate(graph: Graph, x: Features) -> Features:
    x = graph.normalized_adjacency @ x
    return to_dense(x) if sp.issparse(x) and density(x) > 0.5 else x  # CSR keeps 8 bytes an entry, dense 4


@dataclass(frozen=True)
class RandomGCNConfig:
    """Settings of :class:`RandomGCN`: the paper's encoder."""

    hidden: int = 256
    layers: int = 3
    activation: str = "relu"

    def __post_init__(self) -> None:
        require(self.hidden > 0, "hidden", self.hidden, "at least 1")
        require(self.layers > 0, "layers", self.layers, "at least 1")


class RandomGCN:
    """The paper's encoder with random weights: what the architecture is worth before any training."""

    config_class = RandomGCNConfig

    def __init__(self, config: RandomGCNConfig | None = None, *, seed: int = 0, device: str = "auto") -> None:
        self.config = check_config(
            RandomGCNConfig() if config is None else config, RandomGCNConfig, "random-gcn"
        )
        self.seed, self.device = check_seed(seed), device

    def fit(self, graph: Any) -> RandomGCN:
        """Draw the weights for this graph's number of features."""
        self.in_dim_ = _given(graph).num_features
        with seeded(self.seed, "init"):
            self.encoder_ = GCN(
                self.in_dim_,
                hidden=self.config.hidden,
                layers=self.config.layers,
                activation=self.config.activation,
            )
        return self

    def transform(self, graph: Any) -> Features:
        """Embeddings ``[N, hidden]``."""
        if not hasattr(self, "encoder_"):
            raise ConfigError("the method has not been fitted", fix="Call fit first.")
        graph = as_graph(graph)
        check_columns(graph, self.in_dim_)
        device = pick_device(self.device)
        z: Features = self.encoder_.eval().to(device).embed(WholeGraph(graph, device)).cpu().numpy()
        return z

    def transform_stored(self, graph: StoredGraph, scratch: Path | None = None) -> Tall:
        """The same of a graph on disk."""
        check_columns(graph, self.in_dim_)
        with torch.no_grad():
            return embed_stored(self.encoder_.eval().cpu(), StoredInputs(graph, scratch))
