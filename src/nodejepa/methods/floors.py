"""The floors: what costs no training. A method that does not beat them has learned nothing useful."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from nodejepa.config import require
from nodejepa.errors import ConfigError
from nodejepa.graph import Graph
from nodejepa.graph_checks import Features
from nodejepa.graph_rows import RowGraph
from nodejepa.methods.estimator import Estimator
from nodejepa.nn.gcn import GCN
from nodejepa.nn.inputs import StoredInputs, WholeGraph
from nodejepa.nn.sparse import density, to_dense
from nodejepa.nn.stored import StoredFeatures, Tall, TallRows
from nodejepa.store.graph import StoredGraph
from nodejepa.training.journal import Logging
from nodejepa.training.run import History, Run
from nodejepa.training.seeding import seeded


class Floor(Estimator, ABC):
    """What is known of a graph before anything is learned."""

    usual: ClassVar[Mapping[str, Any]] = {}  # settings that are not the defaults of the config class

    @classmethod
    def preset(cls, name: str, dataset: str | None = None) -> Any:  # noqa: ARG003 - one for all
        """``default``: one setting for all graphs."""
        if name != "default":
            raise ConfigError(f"{cls.name} has no preset {name!r}", fix="Use default.")
        return cls.config_class(**cls.usual)

    def learn(
        self,
        inputs: WholeGraph | StoredInputs,
        run: Run | None,  # noqa: ARG002 - nothing to go on with
        logging: Logging,  # noqa: ARG002 - nothing to show
    ) -> tuple[nn.Module, History]:
        """Nothing is learned; weights, where there are any, are drawn."""
        with seeded(self.seed, "init"):
            return self.make_encoder(inputs.num_features), []

    def width(self, graph: RowGraph) -> int:
        """As set, or as wide as the features."""
        return int(getattr(self.config, "hidden", graph.num_features))


class FeatureMap(nn.Module):
    """A function of a graph in the place of an encoder: it has no weights, and sparse may stay sparse."""

    def __init__(self, function: Callable[[Graph], Features]) -> None:
        super().__init__()
        self.function = function

    def embed(self, inputs: WholeGraph) -> Features:
        """``[N, F]``."""
        return self.function(inputs.graph)


@dataclass(frozen=True)
class RawConfig:
    """Raw features have nothing to set."""


class RawFeatures(Floor):
    """The node features X themselves."""

    name = "raw"
    config_class = RawConfig

    def make_encoder(self, in_dim: int) -> FeatureMap:  # noqa: ARG002 - no weights
        """X ``[N, F]``, sparse if the graph's features are."""
        return FeatureMap(lambda graph: graph.features)

    def transform_stored(self, graph: StoredGraph, scratch: Path | None = None) -> TallRows:  # noqa: ARG002
        """X of a graph on disk."""
        return StoredFeatures(graph)


@dataclass(frozen=True)
class SGCConfig:
    """Settings of :class:`SGC`."""

    hops: int = 2  # S^2 X (docs/decisions.md)

    def __post_init__(self) -> None:
        require(self.hops >= 0, "hops", self.hops, "0 or more")


class SGC(Floor):
    """Features propagated k times, :math:`S^k X` (Wu et al. 2019): smoothing without learning."""

    name = "sgc"
    config_class = SGCConfig

    def transform_stored(self, graph: StoredGraph, scratch: Path | None = None) -> TallRows:
        """The same of a graph on disk, some columns after the others."""
        inputs, parts = StoredInputs(graph, scratch), []
        for group in inputs.column_groups(graph.num_features):
            for hop in _stored_hops(inputs, group, self.config.hops):
                last = hop
            parts.append(inputs.put_away(last, of=graph.num_features))
        return Tall(tuple(parts))

    def make_encoder(self, in_dim: int) -> FeatureMap:  # noqa: ARG002 - no weights
        """``S^k X`` ``[N, F]``; stays sparse as long as that saves memory."""

        def propagated(graph: Graph) -> Features:
            x = graph.features
            for _ in range(self.config.hops):
                x = _propagate(graph, x)
            return x

        return FeatureMap(propagated)


class SGC1(SGC):
    """Once: a node among its neighbours."""

    name = "sgc-1"
    usual: ClassVar[Mapping[str, Any]] = {"hops": 1}


class SGC3(SGC):
    """Three times: as far as the paper's encoder sees."""

    name = "sgc-3"
    usual: ClassVar[Mapping[str, Any]] = {"hops": 3}


@dataclass(frozen=True)
class EqualHopsConfig:
    """Settings of :class:`EqualHops`."""

    hops: int = 2

    def __post_init__(self) -> None:
        require(self.hops >= 0, "hops", self.hops, "0 or more")


class EqualHops(Floor):
    r"""Features and what they look like one and two hops away, equally loud:
    :math:`\sum_k S^k X / \|S^k X\|_F`.

    Propagation drowns a node's own features where degrees are high; this keeps them audible.
    """

    name = "equal-hops"
    config_class = EqualHopsConfig

    def transform_stored(self, graph: StoredGraph, scratch: Path | None = None) -> TallRows:
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

    def make_encoder(self, in_dim: int) -> FeatureMap:  # noqa: ARG002 - no weights
        """``[N, F]``; stays sparse as long as that saves memory."""

        def mixed(graph: Graph) -> Features:
            hop = graph.features
            total = _scaled(hop)
            for _ in range(self.config.hops):
                hop = _propagate(graph, hop)
                total = total + _scaled(hop)
            return total if sp.issparse(total) else np.asarray(total, dtype=np.float32)

        return FeatureMap(mixed)


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


@dataclass(frozen=True)
class RandomGCNConfig:
    """Settings of :class:`RandomGCN`: the paper's encoder."""

    hidden: int = 256
    layers: int = 3
    activation: str = "relu"

    def __post_init__(self) -> None:
        require(self.hidden > 0, "hidden", self.hidden, "at least 1")
        require(self.layers > 0, "layers", self.layers, "at least 1")


class RandomGCN(Floor):
    """The paper's encoder with random weights: what the architecture is worth before any training."""

    name = "random-gcn"
    config_class = RandomGCNConfig

    def make_encoder(self, in_dim: int) -> GCN:
        """As set, with fresh weights."""
        return GCN(in_dim, **vars(self.config))
