"""Row ``dgi_epoch``: an epoch of DGI against PyG's DeepGraphInfomax on GCNConv."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.baseline_epoch import NaiveStep, compare
from benchmarks.nodejepa_epoch import NaiveGCN
from benchmarks.timing import Row
from nodejepa.methods.dgi import DGIConfig, DGITask


def _naive(x: Tensor, edge_index: Tensor) -> tuple[nn.Module, NaiveStep]:
    from torch_geometric.nn import DeepGraphInfomax

    model = DeepGraphInfomax(
        256,
        encoder=NaiveGCN(x.shape[1], 256),
        summary=lambda z, *_: z.mean(dim=0).sigmoid(),
        corruption=lambda x, edge_index: (x[torch.randperm(len(x))], edge_index),
    )

    def loss() -> Tensor:
        value: Tensor = model.loss(*model(x, edge_index))
        return value

    return model, loss


def run() -> Row:
    return compare("dgi_epoch", lambda inputs: DGITask(inputs, DGIConfig()), _naive)
