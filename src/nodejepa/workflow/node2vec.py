"""node2vec with p = q = 1, which is DeepWalk: what colleagues compare with first.

Perozzi et al., "DeepWalk", KDD 2014; Grover & Leskovec, "node2vec", KDD 2016. Random walks are sentences and
nodes are words of a skip-gram model with negative samples. gensim (the extra ``node2vec``) learns it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nodejepa.graph import Graph
from nodejepa.tables.convert import optional_module

WALKS, LENGTH, WINDOW = 10, 80, 10  # walks from each node, nodes of a walk: the defaults of node2vec


def require() -> Any:
    """gensim's models, or an error that says how to get them."""
    return optional_module("gensim.models", "node2vec")


def embed(graph: Graph, *, dim: int = 256, seed: int = 0) -> npt.NDArray[np.float32]:
    """Embeddings ``[N, dim]`` from the edges alone; a node without edges has zeros.

    It runs in one thread, so that the same seed gives the same bits.
    """
    z = np.zeros((graph.num_nodes, dim), dtype=np.float32)
    linked = np.flatnonzero(np.diff(graph.adjacency.indptr))
    if len(linked):
        sentences = _Sentences(graph, linked, seed)
        model = require().Word2Vec(
            sentences, vector_size=dim, window=WINDOW, min_count=0, sg=1, epochs=1, seed=seed, workers=1
        )
        z[linked] = model.wv[[str(node) for node in linked]]
    return z


def random_walks(
    graph: Graph, starts: npt.NDArray[np.integer], length: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """One walk from each start ``[starts, length]``; an edge is drawn with its weight, a dead end stays."""
    edges = graph.adjacency
    reached = np.cumsum(edges.data, dtype=np.float64)
    begin = np.concatenate([[0.0], reached])[edges.indptr]
    walks = np.empty((len(starts), length), dtype=np.int64)
    walks[:, 0] = here = np.asarray(starts)
    for step in range(1, length):
        low, high = begin[here], begin[here + 1]
        drawn = np.searchsorted(reached, low + (high - low) * rng.random(len(here)), side="right")
        drawn = np.minimum(drawn, edges.indptr[here + 1] - 1)  # rounding may reach the next node's first edge
        walks[:, step] = here = np.where(high > low, edges.indices[drawn], here)
    return walks


@dataclass(frozen=True, eq=False)
class _Sentences:
    """All walks as lists of words; gensim reads them twice, and they are drawn alike each time."""

    graph: Graph
    starts: npt.NDArray[np.integer]
    seed: int

    def __iter__(self) -> Iterator[list[str]]:
        rng, words = np.random.default_rng(self.seed), [str(node) for node in range(self.graph.num_nodes)]
        for _ in range(WALKS):
            for walk in random_walks(self.graph, rng.permutation(self.starts), LENGTH, rng).tolist():
                yield [words[node] for node in walk]
