"""Row ``nodejepa_epoch``: a whole epoch of NodeJEPA against the same on GCNConv and dense features."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from benchmarks.timing import Row, best_of
from nodejepa.data import load_dataset
from nodejepa.masking.khop import khop_mask
from nodejepa.methods.blocks import TeacherTask
from nodejepa.methods.nodejepa import NodeJEPAConfig, NodeJEPATask
from nodejepa.nn.inputs import WholeGraph
from nodejepa.objectives.sigreg import sigreg
from nodejepa.training.task import StepContext

EPOCH = 60  # after the curriculum: ratio 0.5, 2 hops


class NaiveGCN(nn.Module):
    """Three GCNConv layers with LayerNorm, as most repositories write it."""

    def __init__(self, in_dim: int, width: int) -> None:
        super().__init__()
        from torch_geometric.nn import GCNConv

        self.convs = nn.ModuleList(GCNConv(d, width) for d in (in_dim, width, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            x = norm(conv(x, edge_index))
            x = torch.relu(x) if i < 2 else x
        return x


class NaivePredictor(nn.Module):
    """Three GCNConv layers on the edges that leave context nodes."""

    def __init__(self, width: int, descriptor_dim: int) -> None:
        super().__init__()
        from torch_geometric.nn import GCNConv

        self.convs = nn.ModuleList(GCNConv(width, width, normalize=False) for _ in range(3))
        self.structure = nn.ModuleList(nn.Linear(descriptor_dim, width, bias=False) for _ in range(3))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))

    def forward(
        self, h: torch.Tensor, edge_index: torch.Tensor, weight: torch.Tensor, descriptors: torch.Tensor
    ) -> torch.Tensor:
        for i, (conv, structure) in enumerate(zip(self.convs, self.structure, strict=True)):
            h = conv(h, edge_index, weight) + structure(descriptors)
            h = torch.relu(self.norms[i](h)) if i < 2 else h
        return h


@torch.no_grad()
def copy_encoders(task: TeacherTask, encoder: NaiveGCN, target: NaiveGCN) -> None:
    for mine, naive in ((task.encoder, encoder), (task.target_encoder, target)):
        for i, weight in enumerate([mine.first.weight, *mine.weights]):
            naive.convs[i].lin.weight.copy_(weight.T)
            naive.convs[i].bias.copy_(mine.biases[i])


@torch.no_grad()
def copy_predictor(task: NodeJEPATask, predictor: NaivePredictor) -> None:
    for i, message in enumerate(task.predictor.messages):
        predictor.convs[i].lin.weight.copy_(message.weight)
        predictor.convs[i].bias.copy_(message.bias)
        predictor.structure[i].weight.copy_(task.predictor.structure[i].weight)


def run() -> Row:
    graph = load_dataset("synthetic-arxiv").graph
    torch.manual_seed(0)
    config = NodeJEPAConfig()
    inputs = WholeGraph(graph)
    task = NodeJEPATask(inputs, config)
    context = StepContext(0, EPOCH, 0, 0.3)
    mine = torch.optim.AdamW([p for p in task.parameters() if p.requires_grad], lr=1e-3)

    def ours() -> None:
        mine.zero_grad()
        task.losses(inputs, context)["loss"].backward()
        nn.utils.clip_grad_norm_(task.parameters(), 1.0)
        mine.step()
        task.after_step(0.3)

    source, target, _ = graph.edge_arrays()
    edge_index = torch.stack([torch.from_numpy(source), torch.from_numpy(target)])
    x = torch.from_numpy(np.array(graph.features))
    encoder, target_encoder = NaiveGCN(x.shape[1], 256), NaiveGCN(x.shape[1], 256).requires_grad_(False)
    predictor, token = NaivePredictor(256, task.descriptors.shape[1]), nn.Parameter(torch.zeros(x.shape[1]))
    trained = [*encoder.parameters(), *predictor.parameters(), token]
    optimiser = torch.optim.AdamW(trained, lr=1e-3)
    mask_of = lambda: khop_mask(graph, 0.5, 2, context.numpy("mask"))  # noqa: E731
    masked = torch.from_numpy(mask_of())
    normalised = graph.normalized_adjacency.tocoo()
    every = torch.from_numpy(np.stack([normalised.col, normalised.row]).astype(np.int64))
    leaves_context = ~masked[every[0]]
    from_context, weight = (
        every[:, leaves_context],
        torch.from_numpy(np.array(normalised.data))[leaves_context],
    )
    copy_encoders(task, encoder, target_encoder)
    copy_predictor(task, predictor)

    def naive_loss() -> torch.Tensor:
        hidden = x.clone()
        hidden[masked] = token
        h = encoder(hidden, edge_index)
        with torch.no_grad():
            wanted = target_encoder(x, edge_index)[masked]
        state = torch.where(masked[:, None], torch.zeros(()), h)
        guess = predictor(state, from_context, weight, task.descriptors)[masked]
        centred = h - h.mean(dim=0)
        c = centred.T @ centred / (len(h) - 1)
        variance = torch.relu(1 - (c.diagonal() + 1e-4).sqrt()).mean()
        covariance = (c - torch.diag(c.diagonal())).square().sum() / (len(c) * (len(c) - 1))
        loss = 1 - nn.functional.cosine_similarity(guess, wanted).mean() + 0.2 * variance + 0.2 * covariance
        return loss + 0.02 * sigreg(h, context.torch("noise"))

    def naive() -> None:
        optimiser.zero_grad()
        naive_loss().backward()
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimiser.step()
        with torch.no_grad():
            for a, b in zip(target_encoder.parameters(), encoder.parameters(), strict=True):
                a.lerp_(b, 0.003)

    with torch.no_grad():
        difference = abs(task.losses(inputs, context)["loss"].item() - naive_loss().item())
    assert difference < 1e-4, difference
    ours()
    naive()
    ours_s = best_of(ours, 3)
    mask_s = best_of(mask_of, 5)
    naive_s = best_of(naive, 2)
    note = (
        f"one epoch at mask 50 %, 2 hops, synthetic-arxiv, {torch.get_num_threads()} threads, without masks: "
        f"ours takes {mask_s * 1000:.1f} ms, {mask_s / ours_s:.1%} of the epoch; "
        f"losses differ by {difference:.0e}"
    )
    return Row("nodejepa_epoch", ours_s - mask_s, naive_s, note)
