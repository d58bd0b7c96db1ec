"""What methods that are trained by gradient descent share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from nodejepa.graph import Graph
from nodejepa.methods.blocks import build_encoder
from nodejepa.methods.estimator import Estimator
from nodejepa.nn.inputs import WholeGraph
from nodejepa.training.batches import Whole
from nodejepa.training.journal import Logging
from nodejepa.training.loop import train
from nodejepa.training.run import History, Run
from nodejepa.training.seeding import seeded
from nodejepa.training.task import Task


class TrainedEstimator(Estimator, ABC):
    """A method whose encoder the one loop trains; its settings have ``encoder`` and ``training``."""

    @abstractmethod
    def make_task(self, inputs: WholeGraph) -> Task:
        """Network and loss for a graph or parts of it."""

    def make_encoder(self, in_dim: int) -> Any:
        """What the settings ``encoder.*`` say."""
        return build_encoder(self.config.encoder, in_dim)

    def width(self, graph: Graph) -> int:  # noqa: ARG002 - the same on all
        """That of the encoder, whatever the features are."""
        return int(self.make_encoder(1).out_dim)

    def trained_encoder(self, task: Any) -> Any:
        """The encoder to keep of a trained task."""
        return task.kept_encoder

    def learn(self, inputs: WholeGraph, run: Run | None, logging: Logging) -> tuple[Any, History]:
        """Train on the whole graph."""
        with seeded(self.seed, "init"):
            task = self.make_task(inputs).to(inputs.device)
        source = Whole(inputs, task.steps_per_epoch)
        history = train(task, source, self.config.training, seed=self.seed, run=run, logging=logging)
        return self.trained_encoder(task), history
