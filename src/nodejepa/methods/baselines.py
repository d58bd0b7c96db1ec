"""Untrained baselines: what costs no training. A method that does not beat them has learned nothing."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from torch import Tensor, nn

from nodejepa.config import Depth, Hops, Settings, ShareBelowOne, Width
from nodejepa.graph import RowGraph
from nodejepa.methods.estimator import Estimator
from nodejepa.nn.encoders import GCN, Activation
from nodejepa.nn.hop_encoder import pagerank_weights
from nodejepa.nn.inputs import RowInputs
from nodejepa.nn.sparse import density, to_dense
from nodejepa.training.logger import Logging
from nodejepa.training.run import History, Run
from nodejepa.training.task import seeded

Hop = Any  # an array [N, columns]: a tensor of a graph on disk, NumPy's or SciPy's of one in memory


class UntrainedBaseline(Estimator, ABC):
    """What is known of a graph before anything is learned."""

    usual: ClassVar[Mapping[str, Any]] = {}  # settings that are not the defaults of the config class

    seeded = False
    trained = False
    by_gradient = False

    @classmethod
    def preset_config(cls, name: str, dataset: str | None) -> Any:  # noqa: ARG003 - one for all
        """``default``: one setting for all graphs."""
        return cls.config_class(**cls.usual)

    def learn(
        self,
        inputs: RowInputs,
        run: Run | None,  # noqa: ARG002 - nothing to go on with
        logging: Logging,  # noqa: ARG002 - nothing to show
    ) -> tuple[nn.Module, History]:
        """Nothing is learned; weights, where there are any, are drawn."""
        with seeded(self.seed, "init"):
            return self.make_encoder(inputs.num_features), []

    def width(self, graph: RowGraph) -> int:
        """As set, or as wide as the features."""
        return int(getattr(self.config, "hidden", graph.num_features))


@dataclass(frozen=True)
class RandomGCNConfig(Settings):
    """Settings of :class:`RandomGCN`: the paper's encoder."""

    hidden: Width = 256
    layers: Depth = 3
    activation: Activation = "relu"


class RandomGCN(UntrainedBaseline):
    """The paper's encoder with random weights: what the architecture is worth before any training."""

    name = "random-gcn"
    title = "Random GCN"
    summary = "untrained 3 x 256 GCN encoder"
    citation = "Kipf & Welling 2017"
    seeded = True
    config_class = RandomGCNConfig

    def make_encoder(self, in_dim: int) -> GCN:
        """As set, with fresh weights."""
        return GCN(in_dim, **vars(self.config))


class FeatureMap(nn.Module):
    """A function of a graph in the place of an encoder: it has no weights, and sparse may stay sparse."""

    def __init__(self, function: Callable[[RowInputs], Any], out_dim: int) -> None:
        super().__init__()
        self.embed, self.out_dim = function, out_dim


class FeatureBaseline(UntrainedBaseline, ABC):
    """The features over several hops; sparse ones stay sparse in memory as long as that saves memory."""

    def make_encoder(self, in_dim: int) -> FeatureMap:
        """``[N, F]``."""
        return FeatureMap(self.embed, in_dim)

    @abstractmethod
    def embed(self, inputs: RowInputs) -> Any:
        """What is made of the features."""


@dataclass(frozen=True)
class RawConfig(Settings):
    """Raw features have nothing to set."""


class RawFeatures(FeatureBaseline):
    """The node features X themselves."""

    name = "raw"
    title = "Raw features"
    summary = "the node features themselves"
    citation = "-"
    config_class = RawConfig

    def embed(self, inputs: RowInputs) -> Any:
        """X ``[N, F]``, sparse if the graph's features are."""
        return inputs.given_features()


@dataclass(frozen=True)
class SGCConfig(Settings):
    """Settings of :class:`SGC` and :class:`EqualHops`."""

    hops: Hops = 2  # S^2 X (docs/decisions.md)


class SGC(FeatureBaseline):
    """Features propagated k times, :math:`S^k X` (Wu et al. 2019): smoothing without learning."""

    name = "sgc"
    title = "Propagated (S^2 X)"
    summary = "features propagated twice, S^2 X"
    citation = "Wu et al. 2019"
    config_class = SGCConfig

    def embed(self, inputs: RowInputs) -> Any:
        """``S^k X``."""
        last = self.config.hops
        return _combined(inputs, last, lambda k, hop: hop if k == last else None)


class SGC1(SGC):
    """Once: a node among its neighbours."""

    name = "sgc-1"
    title = "Propagated (S X)"
    summary = "features propagated once, S X"
    citation = "Wu et al. 2019"
    usual: ClassVar[Mapping[str, Any]] = {"hops": 1}


class SGC3(SGC):
    """Three times: as far as the paper's encoder sees."""

    name = "sgc-3"
    title = "Propagated (S^3 X)"
    summary = "propagated three times, S^3 X"
    citation = "Wu et al. 2019"
    usual: ClassVar[Mapping[str, Any]] = {"hops": 3}


class EqualHops(FeatureBaseline):
    r"""The sum of features and of what they look like one and two hops away, each scaled to the same norm:
    :math:`\sum_k S^k X / \|S^k X\|_F`.

    Propagation drowns a node's own features where degrees are high; this keeps their weight.
    """

    name = "equal-hops"
    title = "Mean of scaled hops"
    summary = "mean of X, S X and S^2 X, each scaled to the same norm"
    citation = "-"
    config_class = SGCConfig

    def embed(self, inputs: RowInputs) -> Any:
        """Where columns come in groups, one pass finds the norms of the hops and one adds them up."""
        hops, columns = self.config.hops, inputs.workspace.column_groups(inputs.num_features)
        if len(columns) == 1:
            return _combined(inputs, hops, lambda _, hop: hop * _unit(_squares(inputs, hop), inputs))
        squares = [0.0] * (hops + 1)
        for group in columns:
            for k, hop in enumerate(_hops(inputs, group, hops)):
                squares[k] += _squares(inputs, hop)
        return _combined(inputs, hops, lambda k, hop: hop * _unit(squares[k], inputs))


@dataclass(frozen=True)
class APPNPConfig(Settings):
    """Settings of :class:`APPNP`: those of LinearJEPA's propagation."""

    hops: Depth = 10
    restart: ShareBelowOne = 0.15


class APPNP(FeatureBaseline):
    """Features after the personalised-PageRank propagation that LinearJEPA's latents take (APPNP, Gasteiger
    et al. 2019): what propagation is worth without what was learned.
    """

    name = "walk"
    title = "APPNP features"
    summary = "X after personalised-PageRank (APPNP) propagation"
    citation = "Gasteiger et al. 2019"
    config_class = APPNPConfig

    def embed(self, inputs: RowInputs) -> Any:
        """The weighted sum of the hops."""
        weights = pagerank_weights(self.config.hops, self.config.restart).float().tolist()
        return _combined(inputs, self.config.hops, lambda k, hop: hop * weights[k])


def _combined(inputs: RowInputs, hops: int, term: Callable[[int, Hop], Hop | None]) -> Any:
    """The sum of ``term(k, S^k X)``, some columns after the others."""
    space, parts = inputs.workspace, []
    for group in space.column_groups(inputs.num_features):
        total = None
        for k, hop in enumerate(_hops(inputs, group, hops)):
            part = term(k, hop)
            if part is not None:
                if total is None:
                    total = part
                else:
                    total += part
        parts.append(space.keep(total, of=inputs.num_features))
    return space.join(parts)


def _hops(inputs: RowInputs, columns: slice, hops: int) -> Iterator[Hop]:
    """Columns of X, S X, ... one after the other, by SciPy's product: sparse or dense."""
    width, given = columns.stop - columns.start, inputs.graph.feature_rows

    def features(low: int, high: int) -> Any:
        rows = given(low, high)
        return rows if width == inputs.num_features else rows[:, columns]

    x = inputs.workspace.fill(width, features)
    yield x
    for _ in range(hops):
        before = x.numpy() if isinstance(x, Tensor) else x

        def propagated(low: int, high: int, before: Any = before) -> Any:
            product = inputs.hop_rows(low, high) @ before
            # CSR keeps 8 bytes an entry, dense 4
            return to_dense(product) if sp.issparse(product) and density(product) > 0.5 else product

        x = inputs.workspace.fill(width, propagated)
        yield x


def _squares(inputs: RowInputs, hop: Hop) -> float:
    """The sum of squares, in float64."""
    if sp.issparse(hop):
        return float(np.sum(np.square(hop.data, dtype=np.float64)))
    spans = inputs.graph.spans()
    return sum(float(np.sum(np.square(np.asarray(hop[a:b]), dtype=np.float64))) for a, b in spans)


def _unit(squares: float, inputs: RowInputs) -> float:
    """What to multiply with so that rows have a mean square of 1."""
    mean = squares / inputs.num_nodes
    return float(np.float32(1 / np.sqrt(mean))) if mean > 0 else 1.0
