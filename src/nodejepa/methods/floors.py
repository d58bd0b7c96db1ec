"""The floors: what costs no training. A method that does not beat them has learned nothing useful."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nodejepa.config import require
from nodejepa.errors import ConfigError
from nodejepa.graph import Graph
from nodejepa.graph_checks import Features
from nodejepa.io import graph_with_features
from nodejepa.methods.arguments import check_columns, check_config, check_seed
from nodejepa.methods.estimator import pick_device
from nodejepa.methods.habits import Habits
from nodejepa.nn.gcn import GCN
from nodejepa.nn.inputs import WholeGraph
from nodejepa.nn.sparse import density, to_dense
from nodejepa.training.seeding import seeded


@dataclass(frozen=True)
class RawConfig:
    """Raw features have nothing to set."""


class RawFeatures(Habits):
    """The node features themselves."""

    config_class = RawConfig

    def __init__(self, config: RawConfig | None = None, *, seed: int = 0, device: str = "auto") -> None:
        self.config = check_config(RawConfig() if config is None else config, RawConfig, "raw")
        self.seed, self.device = check_seed(seed), device

    def fit(self, graph: Any) -> RawFeatures:
        """Nothing to learn."""
        graph_with_features(graph)
        return self

    def transform(self, graph: Any) -> Features:
        """X ``[N, F]``, sparse if the graph's features are."""
        return graph_with_features(graph).features


@dataclass(frozen=True)
class SGCConfig:
    """Settings of :class:`SGC`."""

    hops: int = 2  # S^2 X (docs/decisions.md)

    def __post_init__(self) -> None:
        require(self.hops >= 0, "hops", self.hops, "0 or more")


class SGC(Habits):
    """Features propagated k times, :math:`S^k X` (Wu et al. 2019): smoothing without learning."""

    config_class = SGCConfig

    def __init__(self, config: SGCConfig | None = None, *, seed: int = 0, device: str = "auto") -> None:
        self.config = check_config(SGCConfig() if config is None else config, SGCConfig, "sgc")
        self.seed, self.device = check_seed(seed), device

    def fit(self, graph: Any) -> SGC:
        """Nothing to learn."""
        graph_with_features(graph)
        return self

    def transform(self, graph: Any) -> Features:
        """``S^k X`` ``[N, F]``; stays sparse as long as that saves memory."""
        graph = graph_with_features(graph)
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


class EqualHops(Habits):
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
        graph_with_features(graph)
        return self

    def transform(self, graph: Any) -> Features:
        """``[N, F]``; stays sparse as long as that saves memory."""
        graph = graph_with_features(graph)
        hop = graph.features
        total = _scaled(hop)
        for _ in range(self.config.hops):
            hop = _propagate(graph, hop)
            total = total + _scaled(hop)
        return total if sp.issparse(total) else np.asarray(total, dtype=np.float32)


def _scaled(x: Features) -> Features:
    """As loud as any other: rows have a mean square of 1."""
    values = x.data if sp.issparse(x) else x
    square = float(np.sum(np.square(values, dtype=np.float64))) / max(x.shape[0], 1)
    return x * np.float32(1 / np.sqrt(square)) if square > 0 else x


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


class RandomGCN(Habits):
    """The paper's encoder with random weights: what the architecture is worth before any training."""

    config_class = RandomGCNConfig

    def __init__(self, config: RandomGCNConfig | None = None, *, seed: int = 0, device: str = "auto") -> None:
        self.config = check_config(
            RandomGCNConfig() if config is None else config, RandomGCNConfig, "random-gcn"
        )
        self.seed, self.device = check_seed(seed), device

    def fit(self, graph: Any) -> RandomGCN:
        """Draw the weights for this graph's number of features."""
        self.in_dim_ = graph_with_features(graph).num_features
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
        graph = graph_with_features(graph)
        check_columns(graph, self.in_dim_)
        device = pick_device(self.device)
        z: Features = self.encoder_.eval().to(device).embed(WholeGraph(graph, device)).cpu().numpy()
        return z
