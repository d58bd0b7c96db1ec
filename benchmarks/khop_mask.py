"""Row ``khop_mask``: the k-hop mask against the paper's way, PyG's k_hop_subgraph seed by seed."""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.utils import k_hop_subgraph

from benchmarks.timing import Row, best_of
from nodejepa.data import load_dataset
from nodejepa.graph import Graph
from nodejepa.masking.khop import khop_mask

RATIO, HOPS = 0.5, 2


def seed_by_seed(graph: Graph, ratio: float, hops: int, generator: np.random.Generator) -> tuple[int, int]:
    """Hide neighbourhood by neighbourhood; how many nodes are hidden in the end, by how many of them."""
    source, target, _ = graph.edge_arrays()
    edge_index = torch.stack([torch.from_numpy(source), torch.from_numpy(target)])
    masked = torch.zeros(graph.num_nodes, dtype=torch.bool)
    for count, seed in enumerate(generator.permutation(graph.num_nodes), start=1):
        nodes, *_ = k_hop_subgraph(int(seed), hops, edge_index, num_nodes=graph.num_nodes)
        masked[nodes] = True
        if int(masked.sum()) >= round(ratio * graph.num_nodes):
            return int(masked.sum()), count
    raise AssertionError("the budget was never reached")


def run() -> Row:
    graph = load_dataset("synthetic-arxiv").graph
    khop_mask(graph, RATIO, HOPS, np.random.default_rng(0))  # compile
    ours_s = best_of(lambda: khop_mask(graph, RATIO, HOPS, np.random.default_rng(1)), 20)
    hidden = khop_mask(graph, RATIO, HOPS, np.random.default_rng(1)).sum()
    assert hidden == round(RATIO * graph.num_nodes)
    naive_s = best_of(lambda: seed_by_seed(graph, RATIO, HOPS, np.random.default_rng(1)), 3)
    size, seeds = seed_by_seed(graph, RATIO, HOPS, np.random.default_rng(1))
    note = (
        f"mask of {RATIO:.0%} at {HOPS} hops on synthetic-arxiv; the naive one took {seeds} seeds "
        f"for {size:,} nodes"
    )
    return Row("khop_mask", ours_s, naive_s, note)
