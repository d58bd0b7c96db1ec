"""Scores of a method on a graph that need no labels: part of the graph is hidden, and found again or not.

* **links**: a tenth of the links is taken out before anything is learned. How often is a node nearer to the
  one it was linked to than to a stranger (AUC), and at which place does that one stand (mean reciprocal
  rank)? Strangers are drawn as ends of links, so they have the degrees that linked nodes have.
* **features**: half of the feature columns are hidden. How well are those of a node told by its nearest
  neighbours among the embeddings? Mean cosine between what they say and what is true, both without the
  average over all nodes: 1 is exact, 0 no better than the average.
* **stability**: the share of a node's nearest neighbours that another seed finds, too.

Nearness is the cosine of rows less their mean. On graphs where neighbours differ, links alone mislead; how
far all of these agree with labels is measured in ``studies/compare``.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nodejepa.diagnostics import Embeddings
from nodejepa.graph import Graph
from nodejepa.graph_checks import Features
from nodejepa.neighbours import nearest_neighbours
from nodejepa.nn.sparse import to_dense

Nodes = npt.NDArray[np.int64]
Rows = npt.NDArray[np.float64]

SHARE = 0.1  # of the links is taken out
STRANGERS, NEIGHBOURS = 20, 10
_MOST_LINKS, _MOST_NODES = 2000, 500  # that are scored
_TRIES = 50  # to draw somebody who is a stranger
_AT_ONCE = 64  # links whose rows are dense float64 at a time


@dataclass(frozen=True, eq=False)
class HeldOut:
    """A graph with links and columns taken out, and what was taken."""

    graph: Graph  # what a method may see
    links: Nodes  # [m, 2]
    strangers: Nodes  # [m, 20] of the first node of each link; -1 where none was found
    hidden: Features | None  # [N, H] feature columns; none where there is a single one
    asked: Nodes  # nodes whose hidden features are asked for

    @classmethod
    def of(cls, graph: Graph, seed: int = 0) -> Self:
        """Hide a tenth of the links and half of the columns, drawn with ``seed``.

        No links where the features are coordinates of the adjacency: they would know those that are hidden.
        """
        rng = np.random.default_rng(seed)
        whole = graph.adjacency if graph.directed else sp.triu(graph.adjacency, k=1)
        pairs = np.stack([part.astype(np.int64) for part in whole.tocoo().coords], axis=1)
        asks_links = len(pairs) > 1 and not graph.incomparable
        taken = rng.permutation(len(pairs))[: int(np.ceil(SHARE * len(pairs))) if asks_links else 0]
        links = pairs[taken[:_MOST_LINKS]]
        if not graph.directed:
            links = rng.permuted(links, axis=1)  # either end may be the one that asks
        strangers = _strangers(graph, links, pairs, rng)
        columns = rng.permutation(graph.num_features)
        half = graph.num_features // 2
        seen = graph.features[:, np.sort(columns[half:])]
        asked = np.sort(rng.permutation(graph.num_nodes)[:_MOST_NODES])
        hidden = graph.features[:, np.sort(columns[:half])] if half else None
        less = _without(graph, pairs[taken]).with_features(seen)
        return cls(less, links, strangers, hidden, asked)


@dataclass(frozen=True)
class UnlabelledScores:
    """All between 0 and 1 (features: -1 and 1), higher is better; None where nothing could be asked."""

    links_auc: float | None
    links_mrr: float | None
    features: float | None
    stability: float | None = None  # None as well where only one seed was looked at

    def with_stability(self, first: Embeddings, second: Embeddings, seed: int = 0) -> Self:
        """These with the share of nearest neighbours that two embeddings of the same nodes have in common."""
        asked = np.random.default_rng(seed).permutation(first.shape[0])[:_MOST_NODES]
        return replace(self, stability=common_neighbours(first, second, asked))


def score_held_out(embeddings: Embeddings, held: HeldOut) -> UnlabelledScores:
    """What embeddings of ``held.graph`` know of what was taken out of it."""
    z = _centred(embeddings)
    features = None
    if held.hidden is not None:
        near = nearest_neighbours(z, held.asked, k=NEIGHBOURS).rows
        average = np.asarray(held.hidden.mean(axis=0, dtype=np.float64)).ravel()
        said = np.stack([np.asarray(held.hidden[rows].mean(axis=0)).ravel() for rows in near]) - average
        true = to_dense(held.hidden[held.asked]) - average
        features = float(np.mean(np.sum(_unit(said) * _unit(true), axis=1)))
    return UnlabelledScores(*_links(z, held), features)


def common_neighbours(first: Embeddings, second: Embeddings, asked: Nodes) -> float:
    """Mean share of the nearest neighbours that two embeddings of the same nodes agree on."""
    near = [nearest_neighbours(_centred(z), asked, k=NEIGHBOURS).rows for z in (first, second)]
    shared = [len(set(a) & set(b)) / max(len(a), 1) for a, b in zip(*(n.tolist() for n in near), strict=True)]
    return float(np.mean(shared))


def _links(z: npt.NDArray[np.float32], held: HeldOut) -> tuple[float | None, float | None]:
    """AUC and mean reciprocal rank; a tie counts half."""
    beaten, reciprocal = [], []
    for start in range(0, len(held.links), _AT_ONCE):
        links, strangers = held.links[start : start + _AT_ONCE], held.strangers[start : start + _AT_ONCE]
        own, other = _unit(z[links[:, 0]]), _unit(z[links[:, 1]])
        against = _unit(z[strangers.ravel()]).reshape(*strangers.shape, -1)
        true, false = np.sum(own * other, axis=1)[:, None], np.einsum("id,ikd->ik", own, against)
        real = strangers >= 0
        ahead = np.sum(real * ((false > true) + 0.5 * (false == true)), axis=1)
        asked = real.sum(axis=1)
        beaten += (1 - ahead[asked > 0] / asked[asked > 0]).tolist()
        reciprocal += (1 / (1 + ahead[asked > 0])).tolist()
    return (float(np.mean(beaten)), float(np.mean(reciprocal))) if beaten else (None, None)


def _strangers(graph: Graph, links: Nodes, pairs: Nodes, rng: np.random.Generator) -> Nodes:
    """Ends of random links, drawn again while they are the node itself or linked to it."""
    ends = pairs[:, 1] if graph.directed else pairs.ravel()
    drawn = np.full((len(links), STRANGERS), -1, dtype=np.int64)
    linked = graph.adjacency
    for _ in range(_TRIES):
        open_, place = np.nonzero(drawn < 0)
        if not len(open_):
            break
        who, candidate = links[open_, 0], ends[rng.integers(0, len(ends), len(open_))]
        known = np.asarray(linked[who, candidate]).ravel() != 0
        strange = ~known & (who != candidate)
        drawn[open_[strange], place[strange]] = candidate[strange]
    return drawn


def _without(graph: Graph, pairs: Nodes) -> Graph:
    """The graph without some edges, in both directions where it is undirected."""
    size = graph.num_nodes
    both = pairs if graph.directed else np.concatenate([pairs, pairs[:, ::-1]])
    gone = both[:, 0] * size + both[:, 1]
    source, target, weight = graph.edge_arrays()
    kept = ~np.isin(source * size + target, gone)
    return Graph.from_edges(
        source[kept],
        target[kept],
        weights=weight[kept],
        num_nodes=size,
        direction="keep" if graph.directed else "check",
    )


def _centred(embeddings: Embeddings) -> npt.NDArray[np.float32]:
    z = to_dense(embeddings)  # a copy
    z -= z.mean(axis=0, dtype=np.float64).astype(np.float32)
    return z


def _unit(rows: npt.NDArray[np.floating]) -> Rows:
    rows = rows.astype(np.float64)
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows / np.where(length > 0, length, 1.0)
