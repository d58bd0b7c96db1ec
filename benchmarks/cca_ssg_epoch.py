"""Row ``cca_ssg_epoch``: an epoch of CCA-SSG, views included, against the same on GCNConv."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.baseline_epoch import NaiveStep, compare, naive_view
from benchmarks.nodejepa_epoch import NaiveGCN
from benchmarks.timing import Row
from nodejepa.methods.ccassg import CCASSGConfig, CCASSGTask


def _naive(x: Tensor, edge_index: Tensor) -> tuple[nn.Module, NaiveStep]:
    encoder = NaiveGCN(x.shape[1], 256)

    def loss() -> Tensor:
        z1, z2 = (encoder(*naive_view(x, edge_index)) for _ in range(2))
        rows = torch.randperm(len(x))[:8192]
        z1, z2 = ((z - z.mean(dim=0)) / z.std(dim=0) for z in (z1[rows], z2[rows]))
        eye, size = torch.eye(256), len(rows)
        decorrelation = sum(((eye - z.T @ z / size).square().sum() for z in (z1, z2)), torch.zeros(()))
        return -torch.trace(z1.T @ z2) / size + 1e-3 * decorrelation

    return encoder, loss


def run() -> Row:
    return compare(
        "cca_ssg_epoch",
        lambda inputs: CCASSGTask(inputs, CCASSGConfig()),
        _naive,
        ", edges and features of two views dropped anew, loss on 8,192 nodes",
    )
