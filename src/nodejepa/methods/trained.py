"""Methods that are trained by gradient descent."""

from abc import ABC
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
from torch import nn

from nodejepa.errors import ConfigError
from nodejepa.graph import Graph, RowGraph
from nodejepa.methods.blocks import build_encoder
from nodejepa.methods.estimator import Estimator
from nodejepa.nn.inputs import GraphInputs, RowInputs, pick_device
from nodejepa.structure.partition import METIS_ENTRIES, partition, random_parts
from nodejepa.training.logger import Logging
from nodejepa.training.loop import train
from nodejepa.training.run import History, Run
from nodejepa.training.task import Parts, Source, Task, seeded

NODES_OF_A_STEP = 10_000  # of a graph on disk, where nobody said how many
_PARTS_OF_A_STEP, _LEAST_NODES = 64, 16  # as many as that if parts are not smaller than this
# the same where clusters are put together: of smaller parts these would be nearly as many as nodes
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

    task_class: ClassVar[Callable[..., Task]]  # of a graph and the settings

    @classmethod
    def preset_config(cls, name: str, dataset: str | None) -> Any:
        """``official``: its authors' settings; else the defaults, for 200 epochs where the paper says so."""
        if name == "official":
            return cls.official(dataset)
        config = cls.config_class()
        if "paper" not in cls.presets or dataset not in ("arxiv", "synthetic-arxiv"):
            return config
        return replace(config, training=replace(config.training, epochs=200))

    @classmethod
    def official(cls, dataset: str | None) -> Any:
        """The settings of the method's authors, where they differ from the paper's."""
        raise NotImplementedError

    def make_task(self, inputs: RowInputs) -> Task:
        """Network and loss for a graph or parts of it: in memory or on disk."""
        return self.task_class(inputs, self.config)

    def make_encoder(self, in_dim: int) -> Any:
        """What the settings ``encoder.*`` say."""
        return build_encoder(self.config.encoder, in_dim)

    def width(self, graph: RowGraph) -> int:  # noqa: ARG002 - the same on all
        """That of the encoder, whatever the features are."""
        return int(self.make_encoder(1).out_dim)

    def check_processes(self, count: int) -> None:
        """They share the micro-batches of a step."""
        micro_batches = self.config.training.micro_batches
        if count > micro_batches:
            raise ConfigError(
                f"{count} processes are to share training.micro_batches={micro_batches}",
                where=self.name,
                fix=f"Cut a step into {count} or more: set e.g. parts={8 * count}, "
                f"parts_per_step={2 * count} and micro_batches={count}. Or start fewer processes.",
            )

    def trained_encoder(self, task: Any) -> Any:
        """The encoder to keep of a trained task."""
        return task.kept_encoder

    def prepare(self, graph: RowGraph) -> None:
        """The parts that are trained on; of a graph on disk the copy that is ordered by them."""
        if self.config.training.parts > 1:
            self._parts(self._inputs(graph, None))

    def learn(self, inputs: RowInputs, run: Run | None, logging: Logging) -> tuple[Any, History]:
        """Train on the whole graph, or on parts of it."""
        config, group = self.config.training, self.process_group
        if inputs.workspace.on_disk and config.parts == 1:
            parts, joined = joined_parts(inputs.num_nodes, entries=inputs.graph.num_edges).values()
            raise ConfigError(
                f"{self.name} learns from a graph on disk in parts only",
                where="training.parts",
                fix=f"Set training.parts, e.g. to {parts}, and training.parts_per_step, e.g. to {joined}: a "
                "step has so many of them in memory. Or use linear-jepa, which needs none.",
            )
        # a graph on disk is read by the CPU
        device = pick_device(self.device) if inputs.workspace.on_disk else inputs.device
        with seeded(self.seed, "init"):
            task = self.make_task(inputs).to(device)
        source = self._source(inputs, task)
        self.check_processes(group.size)
        logging = logging if group.leads else replace(logging, shown=False)
        history = train(task, source, config, seed=self.seed, run=run, logging=logging, group=group)
        return self.trained_encoder(task), history

    def _source(self, inputs: RowInputs, task: Task) -> Source:
        config = self.config.training
        if config.parts == 1:
            return Source(inputs, task.steps_per_epoch)
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
        joined = self._parts(inputs)
        watched: GraphInputs = inputs
        if inputs.workspace.on_disk:  # as much of it as a micro-batch sees
            watched = joined([*range(config.parts_per_step // config.micro_batches)])
        return Parts(watched, joined, config, task.steps_per_epoch)

    def _parts(self, inputs: RowInputs) -> Callable[[list[int]], GraphInputs]:
        """What joins some parts of the graph, which is split now."""
        config, graph = self.config.training, inputs.graph
        split = partition if config.partition == "metis" else random_parts
        part = split(graph, min(config.parts, graph.num_nodes))
        if int(part.max()) + 1 != config.parts:
            raise ConfigError(
                f"{graph.num_nodes} nodes are too few for {config.parts} parts",
                where="training.parts",
                fix=f"Use at most {int(part.max()) + 1}.",
            )
        if isinstance(graph, Graph):
            return lambda chosen: inputs.induced([np.flatnonzero(np.isin(part, chosen)).astype(np.int32)])
        from nodejepa.nn.stored_inputs import StoredPart  # the readers of files come with it
        from nodejepa.tables.ordered import ordered_by_part

        copy, device = ordered_by_part(cast(Any, graph), part), pick_device(self.device)
        return lambda chosen: StoredPart(copy, chosen, device)
