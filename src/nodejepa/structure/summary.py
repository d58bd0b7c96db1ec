"""What a person wants to know of a graph before training on it: sizes, pieces, degrees, features."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from nodejepa.graph import Graph
from nodejepa.graph_checks import Features
from nodejepa.structure.undirected import undirected_rows

_LISTED_COMPONENTS = 5
_HUB_SHARE = 0.01


@dataclass(frozen=True)
class GraphSummary:
    """Facts about a graph; degrees count neighbours, whatever the direction and weight of the edges.

    ``hub_edge_share`` is the share of all edge ends that the 1 % of nodes with most neighbours hold.
    """

    nodes: int
    edges: int
    directed: bool
    weighted: bool
    components: int
    component_sizes: tuple[int, ...]  # the largest, largest first
    isolated_nodes: int
    mean_degree: float
    median_degree: float
    degree_99: float
    max_degree: int
    hub_edge_share: float
    feature_columns: int
    feature_density: float
    sparse_features: bool
    constant_columns: int
    zero_rows: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self) | {"component_sizes": list(self.component_sizes)}


def summarise_graph(graph: Graph) -> GraphSummary:
    """The facts, in one pass over the edges and one over the features.

    >>> summary = summarise_graph(Graph.from_edges([0, 1], [1, 2], features=np.eye(4)))
    >>> summary.components, summary.isolated_nodes, summary.max_degree
    (2, 1, 2)
    """
    adjacency = undirected_rows(graph, 0, graph.num_nodes)
    degrees = np.diff(adjacency.indptr).astype(np.int64)
    count, member = connected_components(adjacency, directed=False)
    sizes = np.sort(np.bincount(member, minlength=count))[::-1]
    filled, constant, zero_rows = _features(graph.features)
    hubs = max(1, round(_HUB_SHARE * degrees.size))
    cells = graph.num_nodes * graph.num_features
    return GraphSummary(
        nodes=graph.num_nodes,
        edges=graph.num_edges if graph.directed else graph.num_edges // 2,
        directed=graph.directed,
        weighted=graph.is_weighted,
        components=int(count),
        component_sizes=tuple(int(size) for size in sizes[:_LISTED_COMPONENTS]),
        isolated_nodes=int(np.count_nonzero(degrees == 0)),
        mean_degree=float(degrees.mean()),
        median_degree=float(np.median(degrees)),
        degree_99=float(np.quantile(degrees, 0.99)),
        max_degree=int(degrees.max()),
        hub_edge_share=float(np.sort(degrees)[-hubs:].sum() / max(degrees.sum(), 1)),
        feature_columns=graph.num_features,
        feature_density=filled / cells if cells else 0.0,
        sparse_features=bool(sp.issparse(graph.features)),
        constant_columns=constant,
        zero_rows=zero_rows,
    )


def _features(features: Features) -> tuple[int, int, int]:
    """Stored values other than 0, columns that say the same of every node, rows of zeros only."""
    rows, columns = features.shape
    if not columns:
        return 0, 0, rows
    # none of these makes a second copy of a large matrix
    if isinstance(features, np.ndarray):
        filled, low, high = np.count_nonzero(features), features.min(axis=0), features.max(axis=0)
        empty = ~features.any(axis=1)
    else:
        filled = features.count_nonzero()
        low, high = (end.toarray().ravel() for end in (features.min(axis=0), features.max(axis=0)))
        empty = abs(features).max(axis=1).toarray().ravel() == 0
    return int(filled), int(np.count_nonzero(low == high)), int(np.count_nonzero(empty))
