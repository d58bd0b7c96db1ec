"""Row ``khop_mask``: the k-hop mask against the paper's way, PyG's k_hop_subgraph seed by seed."""

from __future__ import annotations

import time

import numpy as np
import torch

from benchmarks.timing import Row, best_of
from nodejepa.data import load_dataset
from nodejepa.masking.khop import khop_mask

RATIO, HOPS = 0.5, 2


def run() -> Row:
    graph = load_dataset("synthetic-arxiv").graph
    source, target, _ = graph.edge_arrays()
    edge_index = torch.stack([torch.from_numpy(source), torch.from_numpy(target)])
    budget = round(RATIO * graph.num_nodes)

    def naive(generator: np.random.Generator) -> tuple[int, int]:
        from torch_geometric.utils import k_hop_subgraph

        masked = torch.zeros(graph.num_nodes, dtype=torch.bool)
        for count, seed in enumerate(generator.permutation(graph.num_nodes), start=1):
            nodes, *_ = k_hop_subgraph(int(seed), HOPS, edge_index, num_nodes=graph.num_nodes)
            masked[nodes] = True
            if int(masked.sum()) >= budget:
                return int(masked.sum()), count
        raise AssertionError("the budget was never reached")

    khop_mask(graph, RATIO, HOPS, np.random.default_rng(0))  # compile
    ours_s = best_of(lambda: khop_mask(graph, RATIO, HOPS, np.random.default_rng(1)), 20)
    assert khop_mask(graph, RATIO, HOPS, np.random.default_rng(1)).sum() == budget
    started = time.perf_counter()
    size, seeds = naive(np.random.default_rng(1))
    naive_s = time.perf_counter() - started
    note = (
        f"mask of {RATIO:.0%} at {HOPS} hops on synthetic-arxiv; the naive one took {seeds} seeds "
        f"for {size:,} nodes"
    )
    return Row("khop_mask", ours_s, naive_s, note)
