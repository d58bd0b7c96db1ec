"""Row ``graphmae_epoch``: an epoch of GraphMAE against the same on GCNConv."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity

from benchmarks.baseline_epoch import NaiveStep, compare
from benchmarks.nodejepa_epoch import NaiveGCN
from benchmarks.timing import Row
from nodejepa.methods.graphmae import GraphMAEConfig, GraphMAETask


class _Naive(nn.Module):
    def __init__(self, in_dim: int) -> None:
        super().__init__()
        from torch_geometric.nn import GCNConv

        self.encoder, self.decoder = NaiveGCN(in_dim, 256), GCNConv(256, in_dim)
        self.bridge = nn.Linear(256, 256, bias=False)
        self.token = nn.Parameter(torch.zeros(in_dim))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        masked = torch.randperm(len(x))[: len(x) // 2]
        hidden = x.clone()
        hidden[masked] = self.token
        h = self.bridge(self.encoder(hidden, edge_index))
        h = h.index_fill(0, masked, 0)
        guess = self.decoder(h, edge_index)
        return (1 - cosine_similarity(x[masked], guess[masked])).square().mean()


def _naive(x: Tensor, edge_index: Tensor) -> tuple[nn.Module, NaiveStep]:
    model = _Naive(x.shape[1])
    return model, lambda: model(x, edge_index)


def run() -> Row:
    return compare(
        "graphmae_epoch",
        lambda inputs: GraphMAETask(inputs, GraphMAEConfig()),
        _naive,
        ", half of the nodes masked",
    )
