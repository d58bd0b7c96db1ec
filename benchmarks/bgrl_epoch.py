"""Row ``bgrl_epoch``: an epoch of BGRL, views included, against the same on GCNConv."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity

from benchmarks.baseline_epoch import NaiveStep, compare, naive_view
from benchmarks.nodejepa_epoch import NaiveGCN
from benchmarks.timing import Row
from nodejepa.methods.bgrl import BGRLConfig, BGRLTask


def _naive(x: Tensor, edge_index: Tensor) -> tuple[nn.Module, NaiveStep]:
    online, target = NaiveGCN(x.shape[1], 256), NaiveGCN(x.shape[1], 256).requires_grad_(False)
    predictor = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))

    def loss() -> Tensor:
        one, two = naive_view(x, edge_index), naive_view(x, edge_index)
        q1, q2 = predictor(online(*one)), predictor(online(*two))
        with torch.no_grad():
            y1, y2 = target(*one), target(*two)
            for a, b in zip(target.parameters(), online.parameters(), strict=True):
                a.lerp_(b, 0.004)
        return 2 - cosine_similarity(q1, y2).mean() - cosine_similarity(q2, y1).mean()

    return nn.ModuleList([online, predictor]), loss


def run() -> Row:
    return compare(
        "bgrl_epoch",
        lambda inputs: BGRLTask(inputs, BGRLConfig()),
        _naive,
        ", edges and features of two views dropped anew",
    )
