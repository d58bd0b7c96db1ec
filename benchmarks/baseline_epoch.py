"""What the four rows of the baselines share: one training step of ours against one on GCNConv."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.timing import Row, best_of
from nodejepa.data import load_dataset
from nodejepa.nn.inputs import WholeGraph
from nodejepa.training.task import StepContext, Task

CONTEXT = StepContext(0, 60, 0, 0.3)
NaiveStep = Callable[[], Tensor]


def compare(
    name: str,
    make_task: Callable[[WholeGraph], Task],
    make_naive: Callable[[Tensor, Tensor], tuple[nn.Module, NaiveStep]],
    note: str = "",
) -> Row:
    """One epoch each: loss, backward, clipping, AdamW, and what follows a step.

    Args:
        name: of the row.
        make_task: our method on a graph.
        make_naive: from dense features ``[N, F]`` and an edge_index to modules and a loss.
        note: what the row says beside the threads.
    """
    graph = load_dataset("synthetic-arxiv").graph
    torch.manual_seed(0)
    inputs = WholeGraph(graph)
    task = make_task(inputs)
    source, target, _ = graph.edge_arrays()
    edge_index = torch.stack([torch.from_numpy(source), torch.from_numpy(target)])
    x = graph.features if isinstance(graph.features, np.ndarray) else graph.features.toarray()
    modules, naive_loss = make_naive(torch.from_numpy(np.array(x)), edge_index)
    ours = _epoch(task, lambda: task.losses(inputs, CONTEXT)["loss"])

    def with_update() -> None:
        ours()
        task.after_step(0.3)

    with_update()  # compiles, and computes what is computed once
    ours_s = best_of(with_update, 3)
    naive_s = best_of(_epoch(modules, naive_loss), 2)
    text = f"one epoch, 3 x 256, {graph.num_nodes:,} nodes, {torch.get_num_threads()} threads{note}"
    return Row(name, ours_s, naive_s, text)


def _epoch(module: nn.Module, loss: NaiveStep) -> Callable[[], None]:
    parameters = [p for p in module.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(parameters, lr=1e-3)

    def step() -> None:
        optimiser.zero_grad()
        loss().backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()

    return step


def naive_view(x: Tensor, edge_index: Tensor, share: float = 0.2) -> tuple[Tensor, Tensor]:
    """A view as most repositories draw it: a new edge list and an edited copy of the features."""
    from torch_geometric.utils import dropout_edge

    kept, _ = dropout_edge(edge_index, p=share, force_undirected=True)
    return x * (torch.rand(x.shape[1]) >= share), kept
