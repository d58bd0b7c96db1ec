"""Row ``patchjepa_epoch``: an epoch of PatchJEPA, one step, against GCNConv and dense features."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import nn

from benchmarks.nodejepa_epoch import NaiveGCN, copy_encoders
from benchmarks.timing import Row, best_of
from nodejepa.data import load_dataset
from nodejepa.methods.patchjepa import PatchJEPA, PatchJEPATask
from nodejepa.nn.inputs import WholeGraph
from nodejepa.objectives.sigreg import sigreg
from nodejepa.training.task import StepContext


def run() -> Row:
    graph = load_dataset("synthetic-arxiv").graph
    torch.manual_seed(0)
    config = PatchJEPA(preset="paper", dataset="synthetic-arxiv").config
    inputs = WholeGraph(graph)
    task = PatchJEPATask(inputs, config)
    context = StepContext(0, 0, 0, 0.0)
    mine = torch.optim.AdamW([p for p in task.parameters() if p.requires_grad], lr=1e-3)

    def ours() -> None:
        mine.zero_grad()
        task.losses(inputs, context)["loss"].backward()
        nn.utils.clip_grad_norm_(task.parameters(), 1.0)
        mine.step()
        task.after_step(0.0)

    source, target, _ = graph.edge_arrays()
    edge_index = torch.stack([torch.from_numpy(source), torch.from_numpy(target)])
    x = torch.from_numpy(np.array(graph.features))
    encoder, target_encoder = NaiveGCN(x.shape[1], 256), NaiveGCN(x.shape[1], 256).requires_grad_(False)
    copy_encoders(task, encoder, target_encoder)
    predictor = copy.deepcopy(task.predictor)
    trained = [*encoder.parameters(), *predictor.parameters()]
    optimiser = torch.optim.AdamW(trained, lr=1e-3)
    asked = config.patches
    seen, hidden = task.patches.sample(context.numpy("mask"), asked.contexts, asked.targets)
    members = [torch.from_numpy(task.patches.expanded(int(p)).astype(np.int64)) for p in (*seen, *hidden)]
    descriptors = task.descriptors[hidden]

    def naive_loss() -> torch.Tensor:
        h = encoder(x, edge_index)
        with torch.no_grad():
            t = target_encoder(x, edge_index)
            wanted = torch.stack([t[nodes].mean(dim=0) for nodes in members[1:]])
        pooled = h[members[0]].mean(dim=0)
        guess = predictor(pooled.expand(len(wanted), -1), descriptors)
        a, b = guess.mean(dim=1).clamp(-5, 5), wanted.mean(dim=1).clamp(-5, 5)
        hyperbola = nn.functional.smooth_l1_loss(
            torch.stack([a.cosh(), a.sinh()]), torch.stack([b.cosh(), b.sinh()])
        )
        loss = 1 - nn.functional.cosine_similarity(guess, wanted).mean() + hyperbola
        return loss + 0.02 * sigreg(pooled[None], context.torch("noise"))

    def naive() -> None:
        optimiser.zero_grad()
        naive_loss().backward()
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimiser.step()
        with torch.no_grad():
            for a, b in zip(target_encoder.parameters(), encoder.parameters(), strict=True):
                a.lerp_(b, 0.004)

    difference = abs(task.losses(inputs, context)["loss"].item() - naive_loss().item())
    assert difference < 1e-4, difference
    ours()
    naive()
    ours_s, naive_s = best_of(ours, 3), best_of(naive, 2)
    note = (
        f"one epoch (one step on the whole graph, 256 patches), synthetic-arxiv, {torch.get_num_threads()} "
        f"threads; losses differ by {difference:.0e}"
    )
    return Row("patchjepa_epoch", ours_s, naive_s, note)
