"""Graphs as PyG and NetworkX have them."""

from __future__ import annotations

import networkx as nx
import numpy as np
import torch
from torch_geometric.data import Data

from nodejepa import Graph


def dense_features(graph: Graph) -> np.ndarray:
    return np.array(graph.features if isinstance(graph.features, np.ndarray) else graph.features.toarray())


def to_pyg(graph: Graph) -> Data:
    source, target, weight = graph.edge_arrays()
    edges = torch.from_numpy(np.stack([source, target]))
    data = Data(x=torch.from_numpy(dense_features(graph)), edge_index=edges)
    data.num_nodes = graph.num_nodes
    if graph.is_weighted:
        data.edge_weight = torch.from_numpy(weight)
    return data


def to_networkx(graph: Graph) -> nx.Graph:
    """Named by the ids, with ``weight`` on edges and each node's features as ``x``."""
    names = list(range(graph.num_nodes)) if graph.node_ids is None else graph.node_ids.tolist()
    out = nx.DiGraph() if graph.directed else nx.Graph()
    out.add_nodes_from((name, {"x": row}) for name, row in zip(names, dense_features(graph), strict=True))
    source, target, weight = (part.tolist() for part in graph.edge_arrays())
    out.add_weighted_edges_from(
        (names[i], names[j], w) for i, j, w in zip(source, target, weight, strict=True)
    )
    return out
