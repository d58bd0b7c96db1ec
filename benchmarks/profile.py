"""Where the time of an epoch goes: ``python -m benchmarks.profile DATASET METHOD > benchmarks/profile.txt``.

One epoch after the curriculum, which is the costliest, under PyTorch's profiler. Seconds per epoch and peak
memory of every method are measured by the study ``efficiency``.
"""

from __future__ import annotations

import sys

import torch

from nodejepa.data import load_dataset
from nodejepa.errors import NodeJEPAError
from nodejepa.methods import make_method
from nodejepa.nn.inputs import WholeGraph
from nodejepa.training.task import StepContext

FIRST = 60  # the curriculum has ended


class Epochs:
    """A task with its optimiser, run epoch by epoch as the training loop does."""

    def __init__(self, dataset: str, method: str) -> None:
        estimator = make_method(method, preset="paper", dataset=dataset, seed=0)
        torch.manual_seed(0)
        self.inputs = WholeGraph(load_dataset(dataset).graph)
        self.task = estimator.make_task(self.inputs)
        self.parameters = [p for p in self.task.parameters() if p.requires_grad]
        self.optimiser = torch.optim.AdamW(self.parameters, lr=1e-3, weight_decay=1e-4)
        self.epoch = FIRST

    def run(self) -> None:
        for step in range(self.task.steps_per_epoch):
            self.optimiser.zero_grad(set_to_none=True)
            self.task.losses(self.inputs, StepContext(0, self.epoch, step, 0.3))["loss"].backward()
            torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
            self.optimiser.step()
            self.task.after_step(0.3)
        self.epoch += 1


def main(dataset: str = "synthetic-arxiv", method: str = "nodejepa") -> None:
    epochs = Epochs(dataset, method)
    epochs.run()  # warm up
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        epochs.run()
    print(f"An epoch of {method} on {dataset}, {torch.get_num_threads()} threads")
    table = profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=15)
    print("\n".join(line.rstrip() for line in table.splitlines()))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except NodeJEPAError as error:
        sys.exit(str(error))
