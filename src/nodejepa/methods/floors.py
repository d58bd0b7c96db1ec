"""The floors: what costs no training. A method that does not beat them has learned nothing useful."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import scipy.sparse as sp

from nodejepa.config import require
from nodejepa.errors import ConfigError
from nodejepa.graph_checks import Features
from nodejepa.io import as_graph
from nodejepa.methods.arguments import check_columns, check_config, check_seed
from nodejepa.methods.estimator import pick_device
from nodejepa.nn.gcn import GCN
from nodejepa.nn.inputs import WholeGraph
from nodejepa.nn.sparse import density, to_dense
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
        as_graph(graph)
        return self

    def transform(self, graph: Any) -> Features:
        """X ``[N, F]``, sparse if the graph's features are."""
        return as_graph(graph).features


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
        as_graph(graph)
        return self

    def transform(self, graph: Any) -> Features:
        """``S^k X`` ``[N, F]``; stays sparse as long as that saves memory."""
        graph = as_graph(graph)
        x = graph.features
        for _ in range(self.config.hops):
            x = graph.normalized_adjacency @ x
            if sp.issparse(x) and density(x) > 0.5:  # CSR keeps 8 bytes an entry, dense 4
                x = to_dense(x)
        return x


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
        self.in_dim_ = as_graph(graph).num_features
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
