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


def seed_by_seed(graph: Graph, ratio: float, hops: int, repeats: int) -> tuple[float, int, int]:
    """Hide neighbourhood by neighbourhood: seconds of a mask, nodes it hides, neighbourhoods it took."""
    source, target, _ = graph.edge_arrays()
    edge_index = torch.stack([torch.from_numpy(source), torch.from_numpy(target)])
    budget, found = round(ratio * graph.num_nodes), (0, 0)

    def search() -> None:
        nonlocal found
        masked = torch.zeros(graph.num_nodes, dtype=torch.bool)
        order = np.random.default_rng(1).permutation(graph.num_nodes)
        for count, seed in enumerate(order, start=1):
            nodes, *_ = k_hop_subgraph(int(seed), hops, edge_index, num_nodes=graph.num_nodes)
            masked[nodes] = True
            found = int(masked.sum()), count
            if found[0] >= budget:
                return
        raise AssertionError("the budget was never reached")

    return best_of(search, repeats), *found


def run() -> Row:
    graph = load_dataset("synthetic-arxiv").graph
    khop_mask(graph, RATIO, HOPS, np.random.default_rng(0))  # compile
    ours_s = best_of(lambda: khop_mask(graph, RATIO, HOPS, np.random.default_rng(1)), 20)
    hidden = khop_mask(graph, RATIO, HOPS, np.random.default_rng(1)).sum()
    assert hidden == round(RATIO * graph.num_nodes)
    naive_s, size, seeds = seed_by_seed(graph, RATIO, HOPS, repeats=3)
    note = (
        f"mask of {RATIO:.0%} at {HOPS} hops on synthetic-arxiv; the naive one took {seeds} seeds "
        f"for {size:,} nodes"
    )
    return Row("khop_mask", ours_s, naive_s, note)
