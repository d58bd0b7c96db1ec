"""The floors: what costs no training. A method that does not beat them has learned nothing useful."""

from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from torch import nn

from nodejepa.diagnostics import TallRows
from nodejepa.errors import ConfigError
from nodejepa.graph import Graph, RowGraph
from nodejepa.graph_checks import Features
from nodejepa.methods.estimator import Estimator
from nodejepa.nn.encoders import GCN
from nodejepa.nn.inputs import WholeGraph
from nodejepa.nn.stack import Activation
from nodejepa.nn.stored import StoredFeatures
from nodejepa.nn.stored_inputs import StoredInputs
from nodejepa.tables.store import StoredGraph
from nodejepa.training.logger import Logging
from nodejepa.training.run import History, Run
from nodejepa.training.task import seeded
from nodejepa.validation import PositiveInt, Settings


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
class RawConfig(Settings):
    """Raw features have nothing to set."""


class RawFeatures(Floor):
    """The node features X themselves."""

    name = "raw"
    config_class = RawConfig

    def make_encoder(self, in_dim: int) -> FeatureMap:  # noqa: ARG002 - no weights
        """X ``[N, F]``, sparse if the graph's features are."""
        return FeatureMap(lambda graph: graph.features)

    def _embed_stored(self, graph: StoredGraph, scratch: Path | None) -> TallRows:  # noqa: ARG002
        """X of a graph on disk."""
        graph.trust()
        return StoredFeatures(graph)


@dataclass(frozen=True)
class RandomGCNConfig(Settings):
    """Settings of :class:`RandomGCN`: the paper's encoder."""

    hidden: PositiveInt = 256
    layers: PositiveInt = 3
    activation: Activation = "relu"


class RandomGCN(Floor):
    """The paper's encoder with random weights: what the architecture is worth before any training."""

    name = "random-gcn"
    config_class = RandomGCNConfig

    def make_encoder(self, in_dim: int) -> GCN:
        """As set, with fresh weights."""
        return GCN(in_dim, **vars(self.config))
