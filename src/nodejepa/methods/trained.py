"""What methods that are trained by gradient descent share."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

from torch import nn

from nodejepa.errors import ConfigError
from nodejepa.graph import Graph, RowGraph
from nodejepa.methods.arguments import pick_device
from nodejepa.methods.blocks import build_encoder
from nodejepa.methods.estimator import Estimator
from nodejepa.nn.inputs import GraphInputs, WholeGraph
from nodejepa.nn.parts import Renumbered, RowsPart, Stretches
from nodejepa.nn.stored_inputs import StoredInputs
from nodejepa.structure.partition import METIS_ENTRIES, partition, random_parts
from nodejepa.tables.ordered import ordered_by_part
from nodejepa.tables.store import StoredGraph
from nodejepa.training.batches import Parts, Source, Whole
from nodejepa.training.logger import Logging
from nodejepa.training.loop import train
from nodejepa.training.run import History, Run
from nodejepa.training.task import Task, seeded

NODES_OF_A_STEP = 10_000  # of a graph on disk, where nobody said how many
_PARTS_OF_A_STEP, _LEAST_NODES = 64, 16  # as many as that if parts are not smaller than this
# the same where METIS joins clusters: of smaller parts these would be nearly as many as nodes
_LEAST_CLUSTERED = 1600


def joined_parts(nodes: int, steps: int | None = None, *, entries: int = 0) -> dict[str, int]:
    """Settings for a graph of so many nodes: how many parts, and how many of them are joined in a step.

    A few large parts are a few communities, and a step on them is no fair sample of the graph; many small
    ones of the same size in all are nearer to one (``studies/parts``). ``steps`` is how many an epoch has,
    ``entries`` how many edges are stored.

    >>> joined_parts(1_000_000, entries=20_000_000)
    {'training.parts': 6400, 'training.parts_per_step': 64}
    >>> joined_parts(10_000_000, entries=200_000_000)
    {'training.parts': 6000, 'training.parts_per_step': 6}
    """
    steps = steps or max(nodes // NODES_OF_A_STEP, 2)
    least = _LEAST_CLUSTERED if entries > METIS_ENTRIES else _LEAST_NODES
    joined = max(min(_PARTS_OF_A_STEP, nodes // (steps * least)), 1)
    return {"training.parts": steps * joined, "training.parts_per_step": joined}


class TrainedEstimator(Estimator, ABC):
    """A method whose encoder the one loop trains; its settings have ``encoder`` and ``training``."""

    @abstractmethod
    def make_task(self, inputs: Any) -> Task:
        """Network and loss for a graph or parts of it: a :class:`WholeGraph`, or one on disk."""

    def make_encoder(self, in_dim: int) -> Any:
        """What the settings ``encoder.*`` say."""
        return build_encoder(self.config.encoder, in_dim)

    def width(self, graph: RowGraph) -> int:  # noqa: ARG002 - the same on all
        """That of the encoder, whatever the features are."""
        return int(self.make_encoder(1).out_dim)

    def trained_encoder(self, task: Any) -> Any:
        """The encoder to keep of a trained task."""
        return task.kept_encoder

    def prepare(self, graph: Graph | StoredGraph) -> None:
        """The parts that are trained on; of a graph on disk the copy that is ordered by them."""
        if self.config.training.parts > 1:
            self._stretches(graph)

    def learn(
        self, inputs: WholeGraph | StoredInputs, run: Run | None, logging: Logging
    ) -> tuple[Any, History]:
        """Train on the whole graph, or on parts of it."""
        config, group = self.config.training, self.process_group
        if isinstance(inputs, StoredInputs) and config.parts == 1:
            parts, joined = joined_parts(inputs.num_nodes, entries=inputs.graph.num_edges).values()
            raise ConfigError(
                f"{self.name} learns from a graph on disk in parts only",
                where="training.parts",
                fix=f"Set training.parts, e.g. to {parts}, and training.parts_per_step, e.g. to {joined}: a "
                "step has so many of them in memory. Or use linear-jepa, which needs none.",
            )
        device = inputs.device if isinstance(inputs, WholeGraph) else pick_device(self.device)
        with seeded(self.seed, "init"):
            task = self.make_task(inputs).to(device)
        source = self._source(inputs, task)
        if group.size > config.micro_batches:
            raise ConfigError(
                f"{group.size} processes are to share training.micro_batches={config.micro_batches}",
                where=self.name,
                fix=f"Set training.micro_batches to {group.size} or more, or start fewer processes.",
            )
        logging = logging if group.leads else replace(logging, shown=False)
        history = train(task, source, config, seed=self.seed, run=run, logging=logging, group=group)
        return self.trained_encoder(task), history

    def _source(self, inputs: WholeGraph | StoredInputs, task: Task) -> Source:
        config = self.config.training
        if config.parts == 1:
            return Whole(inputs, task.steps_per_epoch)
        if task.sees == "whole":
            raise ConfigError(
                f"{self.name} is trained on the whole graph only",
                where="training.parts",
                fix="Leave training.parts at 1.",
            )
        mixes = any(isinstance(module, nn.BatchNorm1d) for module in task.modules())
        if config.micro_batches > 1 and (mixes or task.sees == "parts"):
            why = "batch normalisation needs" if mixes else f"the loss of {self.name} needs"
            raise ConfigError(
                f"{why} all nodes of a step in one micro-batch",
                where="training.micro_batches",
                fix="Leave training.micro_batches at 1.",
            )
        stretches = self._stretches(inputs.graph)
        watched: GraphInputs = inputs
        if isinstance(inputs, StoredInputs):  # as much of it as a micro-batch sees
            seen = range(config.parts_per_step // config.micro_batches)
            watched = RowsPart(stretches, [*seen], pick_device(self.device))
        return Parts(watched, stretches, config, task.steps_per_epoch)

    def _stretches(self, graph: Graph | StoredGraph) -> Stretches:
        config = self.config.training
        if isinstance(graph, StoredGraph):
            graph.trust()
        split = partition if config.partition == "metis" else random_parts
        part = split(graph, min(config.parts, graph.num_nodes))
        if int(part.max()) + 1 != config.parts:
            raise ConfigError(
                f"{graph.num_nodes} nodes are too few for {config.parts} parts",
                where="training.parts",
                fix=f"Use at most {int(part.max()) + 1}.",
            )
        return Renumbered(graph, part) if isinstance(graph, Graph) else ordered_by_part(graph, part)
