r"""Graphs of any size with communities, hubs and noisy features: a degree-corrected stochastic block model.

Node i has weight :math:`\theta_i` from a Pareto law. An edge starts at a node drawn by weight; with chance
``homophily`` it ends in the same class, else in another one, again by weight (Karrer & Newman 2011). Features
are the class centre, drawn from N(0, I), plus ``feature_noise`` times N(0, I).
"""

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from annotated_types import Ge, Gt, Le, Lt, MultipleOf

from nodejepa.config import NonNegativeInt, PositiveInt, Settings, Share, require
from nodejepa.data.dataset import Dataset
from nodejepa.graph import Graph
from nodejepa.graph_checks import compact_csr
from nodejepa.machine import Room, progress_bar

_EDGES_AT_ONCE = 1 << 21
_FEATURE_ROWS_AT_ONCE = 1 << 18
_BLOCK_MODEL_ROUNDS = 20


@dataclass(frozen=True)
class SyntheticSpec(Settings):
    """What to generate; the same spec gives the same bits.

    Args:
        nodes: how many nodes, in random order (not sorted by class).
        edges: stored edges, exactly: twice the undirected ones, so an even number.
        features: columns of dense float32 features.
        classes: the r-th has a size in proportion to 1 / sqrt(r), none is empty.
        homophily: chance of an edge to stay within its class. Repeated edges are dropped, which costs small
            dense classes a little of it.
        degree_exponent: of the power law of degrees, above 2; smaller means heavier hubs.
        max_degree_share: the largest degree aimed at, as a share of all nodes; dropped repeats make it less.
        feature_noise: standard deviation of the noise; class centres have 1 in every column.
        seed: of everything random here.
    """

    nodes: Annotated[int, Ge(2), Le(2**31 - 2)] = 10_000
    edges: Annotated[int, Ge(0), MultipleOf(2)] = 100_000  # both directions of an edge are stored
    features: PositiveInt = 64
    classes: PositiveInt = 8
    homophily: Share = 0.7
    degree_exponent: Annotated[float, Gt(2)] = 2.4
    max_degree_share: Annotated[float, Gt(0), Le(1)] = 0.1
    feature_noise: Annotated[float, Ge(0), Lt(1e6)] = 5.0
    seed: NonNegativeInt = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        possible = self.nodes * (self.nodes - 1)
        rule = f"at most half of the {possible} possible ones"
        require(2 * self.edges <= possible, "edges", self.edges, rule)
        require(self.classes <= self.nodes, "classes", self.classes, "at most the number of nodes")


# tuned to ogbn-arxiv: mean degree 13.7, median 6, largest 13,161, homophily 0.65
ARXIV_LIKE = SyntheticSpec(
    nodes=169_343,
    edges=2_315_598,
    features=128,
    classes=40,
    homophily=0.69,
    degree_exponent=2.25,
    max_degree_share=0.175,
    feature_noise=5.0,
)


def make_synthetic(spec: SyntheticSpec, name: str = "synthetic") -> Dataset:
    """Generate the graph of ``spec``; time and memory grow with nodes x features and with edges."""
    # at its highest while edges are drawn, or while features stand beside the finished edges
    drawn, done = 32 * spec.edges + 40 * spec.nodes, 8 * spec.edges + 8 * spec.nodes * (spec.features + 2)
    size = f"{spec.nodes:,} nodes, {spec.edges:,} edges and {spec.features:,} features"
    Room.of().require(max(drawn, done), f"a graph of {size}", name, "Lower nodes, edges or features.")
    rng = np.random.default_rng(spec.seed)
    labels = rng.permutation(np.repeat(np.arange(spec.classes), _class_sizes(spec.nodes, spec.classes)))
    adjacency = _symmetric(_distinct_pairs(spec, labels, rng), spec.nodes)
    return Dataset(name, Graph(adjacency, _features(spec, labels, rng)), labels)


def _class_sizes(nodes: int, classes: int) -> npt.NDArray[np.int64]:
    """Sizes in proportion to 1 / sqrt(rank), at least one each."""
    share = 1 / np.sqrt(np.arange(1, classes + 1))
    ends = np.floor(np.cumsum(share) / share.sum() * (nodes - classes) + 0.5).astype(np.int64)
    sizes: npt.NDArray[np.int64] = np.diff(ends, prepend=0) + 1
    return sizes


def _stub_counts(spec: SyntheticSpec, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Edge ends wanted by each node: Pareto quantiles, capped, scaled to the wanted sum, rounded at random.

    Quantiles instead of draws: the largest of many heavy-tailed draws would differ wildly between seeds.
    """
    quantile = (np.arange(spec.nodes) + 0.5) / spec.nodes
    degree = quantile ** (-1 / (spec.degree_exponent - 1))
    cap = max(1.0, spec.max_degree_share * spec.nodes)
    for _ in range(10):  # capping lowers the sum and scaling lifts the rest: settles quickly
        degree = np.minimum(degree * (max(spec.edges, 1) / degree.sum()), cap)
    return rng.permutation(np.floor(degree + rng.random(spec.nodes)).astype(np.int64))


@dataclass(frozen=True, eq=False)
class _BlockModel:
    """Every node as often as it wants edges, class after class; class c owns ``stubs[first[c]:last[c]]``.

    A uniform draw from a range of this list is a draw by weight: one memory access, no search.
    """

    labels: npt.NDArray[np.int64]
    stubs: npt.NDArray[np.int32]
    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    homophily: float

    @classmethod
    def from_spec(cls, spec: SyntheticSpec, labels: npt.NDArray[np.int64], rng: np.random.Generator) -> Self:
        counts = _stub_counts(spec, rng)
        order = np.argsort(labels, kind="stable").astype(np.int32)
        sizes = np.bincount(labels, weights=counts, minlength=spec.classes).astype(np.int64)
        last = np.cumsum(sizes)
        return cls(labels, np.repeat(order, counts[order]), last - sizes, last, spec.homophily)

    def draw(
        self, count: int, rng: np.random.Generator
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Sources and targets of ``count`` edges; loops and repeats are not avoided."""
        source = self.stubs[rng.integers(0, self.stubs.size, count)]
        own = self.labels[source]
        first, width = self.first[own], (self.last - self.first)[own]
        stays = rng.random(count) < self.homophily
        stays |= width == self.stubs.size  # no other class has an edge to offer
        # a position within the class, or one among all others: those behind the class are shifted past it
        position = (rng.random(count) * np.where(stays, width, self.stubs.size - width)).astype(np.int64)
        position += np.where(stays, first, np.where(position >= first, width, 0))
        return source, self.stubs[position]


def _distinct_pairs(
    spec: SyntheticSpec, labels: npt.NDArray[np.int64], rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """``edges / 2`` distinct pairs i < j as sorted codes ``i * nodes + j``: drawn in excess, then thinned."""
    model = _BlockModel.from_spec(spec, labels, rng)
    wanted = spec.edges // 2
    pairs = np.zeros(0, dtype=np.int64)
    rounds = 0
    with progress_bar("Drawing edges", total=wanted) as advance:
        while pairs.size < wanted:
            # a few strong hubs can exhaust their pairs; then any pair will do, so that the count is met
            by_weight = rounds < _BLOCK_MODEL_ROUNDS and model.stubs.size > 0
            draws = int(1.1 * (wanted - pairs.size)) + 64
            batches = [pairs]
            for start in range(0, draws, _EDGES_AT_ONCE):
                count = min(_EDGES_AT_ONCE, draws - start)
                if by_weight:
                    source, target = model.draw(count, rng)
                else:
                    source, target = rng.integers(0, spec.nodes, (2, count), dtype=np.int32)
                batches.append(_codes(source, target, spec.nodes))
                advance(count / 1.1)
            pairs = np.concatenate(batches)
            pairs.sort()  # in place: np.unique would copy twice
            fresh = np.ones(pairs.size, dtype=bool)
            np.not_equal(pairs[1:], pairs[:-1], out=fresh[1:])
            pairs = pairs[fresh]
            rounds += 1
    keep = np.ones(pairs.size, dtype=bool)
    keep[rng.choice(pairs.size, pairs.size - wanted, replace=False, shuffle=False)] = False
    return pairs[keep]


def _codes(source: npt.NDArray[np.int32], target: npt.NDArray[np.int32], nodes: int) -> npt.NDArray[np.int64]:
    low, high = np.minimum(source, target), np.maximum(source, target)
    proper = low != high
    codes: npt.NDArray[np.int64] = low[proper].astype(np.int64) * nodes + high[proper]
    return codes


def _symmetric(pairs: npt.NDArray[np.int64], nodes: int) -> sp.csr_array:
    """The adjacency of sorted pairs i < j: the upper triangle is CSR already, the lower is its transpose."""
    row, column = np.divmod(pairs, nodes)
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=nodes))])
    upper = compact_csr(np.ones(pairs.size, dtype=np.float32), column, starts, nodes)
    del row, column
    both = (upper + upper.T).tocsr()
    both.sort_indices()
    return compact_csr(both.data, both.indices, both.indptr, nodes)


def _features(
    spec: SyntheticSpec, labels: npt.NDArray[np.int64], rng: np.random.Generator
) -> npt.NDArray[np.float32]:
    centres = rng.standard_normal((spec.classes, spec.features), dtype=np.float32)
    features = np.empty((spec.nodes, spec.features), dtype=np.float32)
    for start in range(0, spec.nodes, _FEATURE_ROWS_AT_ONCE):
        rows = slice(start, start + _FEATURE_ROWS_AT_ONCE)
        rng.standard_normal(out=features[rows], dtype=np.float32)
        features[rows] *= np.float32(spec.feature_noise)
        features[rows] += centres[labels[rows]]
    return features
