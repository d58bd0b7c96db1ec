"""What a person wants to know of a graph before training on it: sizes, pieces, degrees, features."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from nodejepa.graph import Graph
from nodejepa.graph_checks import Features
from nodejepa.structure.undirected import undirected_rows

_LISTED_COMPONENTS = 5
_HUB_SHARE = 0.01
_BLOCK_ELEMENTS = 2**22


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
    cells = graph.num_nodes * graph.num_features
    return GraphSummary(
        nodes=graph.num_nodes,
        edges=graph.num_edges if graph.directed else graph.num_edges // 2,
        directed=graph.directed,
        weighted=graph.is_weighted,
        components=int(count),
        component_sizes=tuple(int(size) for size in sizes[:_LISTED_COMPONENTS]),
        isolated_nodes=int(np.count_nonzero(degrees == 0)),
        mean_degree=float(degrees.mean()) if degrees.size else 0.0,
        median_degree=float(np.median(degrees)) if degrees.size else 0.0,
        degree_99=float(np.quantile(degrees, 0.99)) if degrees.size else 0.0,
        max_degree=int(degrees.max(initial=0)),
        hub_edge_share=_hub_edge_share(degrees),
        feature_columns=graph.num_features,
        feature_density=filled / cells if cells else 0.0,
        sparse_features=bool(sp.issparse(graph.features)),
        constant_columns=constant,
        zero_rows=zero_rows,
    )


def _hub_edge_share(degrees: npt.NDArray[np.int64]) -> float:
    total = int(degrees.sum())
    if not total:
        return 0.0
    hubs = max(1, round(_HUB_SHARE * degrees.size))
    return float(np.partition(degrees, degrees.size - hubs)[-hubs:].sum() / total)


def _features(features: Features) -> tuple[int, int, int]:
    """Stored values other than 0, columns that say the same of every node, rows of zeros only."""
    rows, columns = features.shape
    if not rows or not columns:
        return 0, columns if rows else 0, rows
    if not isinstance(features, np.ndarray):
        return _sparse_features(features)
    filled, zero_rows = 0, 0
    varies = np.zeros(columns, dtype=bool)
    step = max(1, _BLOCK_ELEMENTS // columns)  # no second copy of a large matrix
    for start in range(0, rows, step):
        block = features[start : start + step]
        filled += int(np.count_nonzero(block))
        zero_rows += int(np.count_nonzero(~block.any(axis=1)))
        varies |= (block != features[0]).any(axis=0)
    return filled, int(np.count_nonzero(~varies)), zero_rows


def _sparse_features(features: Any) -> tuple[int, int, int]:
    rows, columns = features.shape
    used = features.data != 0
    filled_columns = np.bincount(features.indices[used], minlength=columns)
    low, high = np.full(columns, np.inf), np.full(columns, -np.inf)
    np.minimum.at(low, features.indices[used], features.data[used])
    np.maximum.at(high, features.indices[used], features.data[used])
    empty = filled_columns == 0
    same = empty | ((filled_columns == rows) & (low == high))
    row_of = np.repeat(np.arange(rows), np.diff(features.indptr))
    in_row = np.bincount(row_of[used], minlength=rows)
    return int(used.sum()), int(same.sum()), int(np.count_nonzero(in_row == 0))
