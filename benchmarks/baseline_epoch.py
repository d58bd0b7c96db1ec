"""What the four rows of the baselines share: one training step of ours against one on GCNConv."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.timing import Row, best_of
from nodejepa.data import load_dataset
from nodejepa.nn.inputs import GraphInputs
from nodejepa.training.task import Moment, Task

MOMENT = Moment(0, 60, 0, 0.3)
HUGE_PAGES = "THP_MEM_ALLOC_ENABLE"  # PyTorch's own setting, which nodejepa switches on
NaiveStep = Callable[[], Tensor]


@dataclass(frozen=True)
class Comparison:
    """One epoch each: loss, backward, clipping, AdamW, and what follows a step.

    Attributes:
        name: of the row and of its module.
        make_task: our method on a graph.
        make_naive: from dense features ``[N, F]`` and an edge_index to modules and a loss.
        note: what the row says beside the threads.
    """

    name: str
    make_task: Callable[[GraphInputs], Task]
    make_naive: Callable[[Tensor, Tensor], tuple[nn.Module, NaiveStep]]
    note: str = ""

    def run(self, dataset: str = "synthetic-arxiv") -> Row:
        """Ours as the package comes, the naive one as PyTorch comes, each in a process of its own."""
        naive_s = self._naive_process(dataset, huge_pages="0")
        favoured_s = self._naive_process(dataset, huge_pages="1")
        ours_s, nodes = self.ours_seconds(dataset)
        favoured = f"{favoured_s:.1f} s, {favoured_s / ours_s:.1f}x"
        note = (
            f"one epoch, 3 x 256, {nodes:,} nodes, {torch.get_num_threads()} threads{self.note}; "
            f"the naive one in huge pages too, as our package sets PyTorch: {favoured}"
        )
        return Row(self.name, ours_s, naive_s, note)

    def ours_seconds(self, dataset: str) -> tuple[float, int]:
        """Seconds of our epoch, and the graph's nodes."""
        graph = load_dataset(dataset).graph
        torch.manual_seed(0)
        task = self.make_task(GraphInputs(graph))
        epoch = _epoch(task, lambda: task.losses(MOMENT)["loss"])

        def with_update() -> None:
            epoch()
            task.after_step(0.3)

        with_update()  # compiles, and computes what is computed once
        return best_of(with_update, 3), graph.num_nodes

    def naive_seconds(self, dataset: str) -> float:
        """Seconds of the epoch on GCNConv."""
        graph = load_dataset(dataset).graph
        source, target, _ = graph.edge_arrays()
        edge_index = torch.stack([torch.from_numpy(source), torch.from_numpy(target)])
        x = graph.features if isinstance(graph.features, np.ndarray) else graph.features.toarray()
        return best_of(_epoch(*self.make_naive(torch.from_numpy(np.array(x)), edge_index)), 2)

    def _naive_process(self, dataset: str, huge_pages: str) -> float:
        code = f"from benchmarks.{self.name} import ROW; print(ROW.naive_seconds({dataset!r}))"
        environment = {**os.environ, HUGE_PAGES: huge_pages}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True)
        return float(done.stdout)


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
