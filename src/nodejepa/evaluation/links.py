"""Link prediction without labels: some links are hidden before anything is learned, and found again or not.

Two nodes are as close as the cosine of their embeddings less the mean embedding. On graphs where neighbours
differ, close nodes are not linked; how far this score agrees with labels is measured in ``studies/compare``.

    split = split_links(graph)                                  # a tenth of the links is taken out
    z = LinearJEPA().fit_transform(split.graph)
    score_links(z, split)                                       # AUC and mean reciprocal rank
    likely_links(z, graph, "ann", k=10)                         # who is close and not linked yet
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nodejepa.diagnostics import Embeddings, check_embeddings
from nodejepa.errors import EvaluationError
from nodejepa.graph import Graph
from nodejepa.graph_checks import in_node_order
from nodejepa.neighbours import frame_ids, rows_asked
from nodejepa.nn.sparse import to_dense
from nodejepa.tables import as_graph

Nodes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

NEGATIVES = 20  # nodes that are not linked, for each link that is scored
_MOST_LINKS = 2000  # that are scored
_TRIES = 50  # to draw a node that is not linked
_AT_ONCE = 64  # links whose rows are dense float64 at a time


@dataclass(frozen=True, eq=False)
class LinkSplit:
    """A graph without some of its links, these links, and negatives to rank them among."""

    graph: Graph  # what a method may see
    links: Nodes  # [m, 2], hidden
    negatives: Nodes  # [at most 2000, 20]: not linked to the first node of the link; -1 where none was found


@dataclass(frozen=True)
class LinkScores:
    """Both between 0 and 1, higher is better."""

    auc: float  # chance that a node is closer to the one it was linked to than to a negative
    mrr: float  # mean of 1 / the place of that one among the negatives


def split_links(
    graph: Any, *, share: float = 0.1, seed: int = 0, sides: npt.ArrayLike | None = None
) -> LinkSplit:
    """Hide a share of the links, drawn with ``seed``.

    Negative pairs are drawn from the ends of links, so their degrees are those of linked nodes. Structural
    features of the whole graph contain the hidden links. So split first, and compute them on ``split.graph``.

    ``sides``: where links join two kinds of nodes, the kind of each node; negative pairs join two kinds, too.
    The ids of a graph that was read with ``bipartite=True`` tell it.
    """
    graph = as_graph(graph)
    if not 0 < share < 1:
        raise EvaluationError(f"share is {share!r}", where="links", fix="Give a number between 0 and 1.")
    if graph.incomparable:
        raise EvaluationError(
            "the features are coordinates of the adjacency, which know every link",
            where="links",
            fix="Split the graph without them; fit describes a graph that has no features.",
        )
    rng = np.random.default_rng(seed)
    upper = graph.adjacency if graph.directed else sp.triu(graph.adjacency, k=1)
    pairs = np.stack([part.astype(np.int64) for part in upper.tocoo().coords], axis=1)
    if len(pairs) < 2:
        raise EvaluationError(
            f"the graph has {len(pairs)} links", where="links", fix="At least two are needed to hide one."
        )
    links = pairs[rng.permutation(len(pairs))[: int(np.ceil(share * len(pairs)))]]
    less = _without(graph, links)
    if not graph.directed:
        links = rng.permuted(links, axis=1)  # either end may be the one that asks
    return LinkSplit(less, links, _negatives(graph, links[:_MOST_LINKS], pairs, rng, _sides(graph, sides)))


def score_links(embeddings: Embeddings, split: LinkSplit) -> LinkScores | None:
    """How well embeddings of ``split.graph`` rank the hidden links; None where no negative was found.

    A tie counts half. Of many links the first 2,000 are scored, which were drawn at random.
    """
    z = _centred(embeddings, split.graph)
    beaten, reciprocal = list[float](), list[float]()
    for start in range(0, len(split.negatives), _AT_ONCE):
        negatives = split.negatives[start : start + _AT_ONCE]
        links = split.links[start : start + len(negatives)]
        own, other = _unit(z[links[:, 0]]), _unit(z[links[:, 1]])
        against = _unit(z[negatives.ravel()]).reshape(*negatives.shape, -1)
        true, false = np.sum(own * other, axis=1)[:, None], np.einsum("id,ikd->ik", own, against)
        real = negatives >= 0
        ahead = np.sum(real * ((false > true) + 0.5 * (false == true)), axis=1)
        found = real.sum(axis=1)
        beaten += (1 - ahead[found > 0] / found[found > 0]).tolist()
        reciprocal += (1 / (1 + ahead[found > 0])).tolist()
    return LinkScores(float(np.mean(beaten)), float(np.mean(reciprocal))) if beaten else None


def score_pairs(embeddings: Embeddings, pairs: npt.ArrayLike) -> Floats:
    """Closeness of the nodes of each pair, -1 to 1; pairs are ``[m, 2]`` row numbers, or ids of a frame."""
    z, asked = _centred(embeddings), np.asarray(pairs)
    if asked.ndim != 2 or asked.shape[1] != 2:
        raise EvaluationError(f"pairs have shape {asked.shape}", where="links", fix="Give two rows a pair.")
    first, second = rows_asked(asked.ravel(), len(z), frame_ids(embeddings)).reshape(-1, 2).T
    closeness: Floats = np.sum(_unit(z[first]) * _unit(z[second]), axis=1)
    return closeness


def likely_links(
    embeddings: Embeddings, graph: Any, node: Any, *, k: int = 10, sides: npt.ArrayLike | None = None
) -> list[tuple[Any, float]]:
    """The ``k`` nodes that are closest to a node and not linked to it yet, with their closeness.

    Nodes are named by their ids where the graph has ids, else by row number. ``sides`` as in
    :func:`split_links`: only nodes of the other kind are proposed.

    >>> path = Graph.from_edges([0, 1, 2], [1, 2, 3])
    >>> [other for other, _ in likely_links(np.eye(4), path, 3)]
    [0, 1]
    """
    graph = as_graph(graph)
    z = _unit(_centred(embeddings, graph))
    (row,) = rows_asked([node], len(z), graph.node_ids)
    closeness = z @ z[row]
    closeness[[row, *graph.rows(row, row + 1).indices]] = -np.inf
    kind = _sides(graph, sides)
    if kind is not None:
        closeness[kind == kind[row]] = -np.inf
    best = np.argsort(-closeness, kind="stable")[: max(k, 0)]
    best = best[np.isfinite(closeness[best])]
    names = best if graph.node_ids is None else graph.node_ids[best]
    return list(zip(names.tolist(), closeness[best].tolist(), strict=True))


def _sides(graph: Graph, given: npt.ArrayLike | None) -> npt.NDArray[Any] | None:
    """The kind of each node where every link joins two kinds: as given, or before the colon of its id."""
    ids, (source, target, _) = graph.node_ids, graph.edge_arrays()
    if given is not None:
        kind: npt.NDArray[Any] = np.asarray(in_node_order(given, ids, graph.num_nodes, "sides"))
        if kind.shape != (graph.num_nodes,) or (kind[source] == kind[target]).any():
            raise EvaluationError(
                f"sides of shape {kind.shape} do not part the ends of every link",
                where="links",
                fix="Give each node one of two kinds such that no link joins nodes of one kind.",
            )
        return kind
    if ids is None or not len(source):
        return None
    named, kind = np.unique(
        [str(n).partition(":")[0] if ":" in str(n) else "" for n in ids], return_inverse=True
    )
    both = np.unique(kind[np.concatenate([source, target])])
    apart = len(both) == 2 and "" not in named[both] and (kind[source] != kind[target]).all()
    return kind if apart else None


def _negatives(
    graph: Graph, links: Nodes, pairs: Nodes, rng: np.random.Generator, kind: npt.NDArray[Any] | None
) -> Nodes:
    """Ends of random links, drawn again while they are the node itself, of its kind or linked to it."""
    ends = pairs[:, 1] if graph.directed else pairs.ravel()
    drawn = np.full((len(links), NEGATIVES), -1, dtype=np.int64)
    for _ in range(_TRIES):
        open_, place = np.nonzero(drawn < 0)
        if not len(open_):
            break
        node, candidate = links[open_, 0], ends[rng.integers(0, len(ends), len(open_))]
        linked = np.asarray(graph.adjacency[node, candidate]).ravel() != 0
        negative = ~linked & (node != candidate)
        if kind is not None:
            negative &= kind[node] != kind[candidate]
        drawn[open_[negative], place[negative]] = candidate[negative]
    return drawn


def _without(graph: Graph, pairs: Nodes) -> Graph:
    """The graph without some edges, in both directions where it is undirected."""
    both = pairs if graph.directed else np.concatenate([pairs, pairs[:, ::-1]])
    source, target, weight = graph.edge_arrays()
    kept = ~np.isin(source * graph.num_nodes + target, both[:, 0] * graph.num_nodes + both[:, 1])
    return Graph.from_edges(
        source[kept],
        target[kept],
        features=graph.features,
        weights=weight[kept],
        num_nodes=graph.num_nodes,
        node_ids=graph.node_ids,
        direction="keep" if graph.directed else "check",
    )


def _centred(embeddings: Embeddings, graph: Graph | None = None) -> npt.NDArray[np.float32]:
    if graph is not None:
        embeddings = in_node_order(embeddings, graph.node_ids, graph.num_nodes, "embeddings")
    z = to_dense(check_embeddings(embeddings))  # a copy
    if graph is not None and len(z) != graph.num_nodes:
        raise EvaluationError(
            f"embeddings have {len(z)} rows for {graph.num_nodes} nodes",
            where="links",
            fix="Give one row for every node of the graph.",
        )
    z -= z.mean(axis=0, dtype=np.float64).astype(np.float32)
    return z


def _unit(rows: npt.NDArray[np.floating]) -> Floats:
    rows = rows.astype(np.float64)
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows / np.where(length > 0, length, 1.0)
