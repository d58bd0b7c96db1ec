"""Methods that are trained by gradient descent, from random weights or from the closed form."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from nodejepa.errors import ConfigError
from nodejepa.graph import Graph, RowGraph
from nodejepa.methods.arguments import pick_device
from nodejepa.methods.blocks import EncoderConfig, build_encoder
from nodejepa.methods.budget import Budget, ClosedFormCost, GradientCost, Workload
from nodejepa.methods.estimator import Estimator
from nodejepa.methods.linear_jepa import LinearJEPA, LinearJEPAConfig, hartley
from nodejepa.nn.hop_encoder import HopEncoder
from nodejepa.nn.inputs import GraphInputs, RowInputs
from nodejepa.structure.partition import METIS_ENTRIES, partition, random_parts
from nodejepa.training.batches import Parts, Source, Whole
from nodejepa.training.logger import Logging
from nodejepa.training.loop import train
from nodejepa.training.run import History, Run
from nodejepa.training.task import Task, seeded
from nodejepa.validation import require

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

    @abstractmethod
    def make_task(self, inputs: Any) -> Task:
        """Network and loss for a graph or parts of it: in memory or on disk."""

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
        from nodejepa.nn.parts import StoredPart  # the readers of files come with it
        from nodejepa.tables.ordered import ordered_by_part

        copy, device = ordered_by_part(cast(Any, graph), part), pick_device(self.device)
        return lambda chosen: StoredPart(copy, chosen, device)


# What the encoder is before the first step. ``random``: the network that ``encoder.*`` describes, with random
# weights. ``closed-form``: LinearJEPA's solution, ``encoder.hidden`` columns wide. ``random-hops``: the same
# encoder with directions drawn at random, to tell what the start is worth.
Start = Literal["random", "closed-form", "random-hops"]


def check_start(start: Start, encoder: EncoderConfig) -> None:
    """Refuse settings of a network where there is none."""
    if start == "random":
        return
    usual = EncoderConfig()
    for name in (field.name for field in fields(encoder)):
        value = getattr(encoder, name)
        if name not in ("hidden", "activation") and value != getattr(usual, name):
            raise ConfigError(
                f"encoder.{name} is {value!r}, which an encoder with start={start} does not have",
                where="start",
                fix="Set start=random, or take preset paper, to train a network.",
            )
    whole = encoder.hidden >= 4 and encoder.hidden % 4 == 0
    require(whole, "encoder.hidden", encoder.hidden, f"a multiple of 4 with start={start}")


class Latents(nn.Module):
    """What is predicted and guarded of an encoder that starts at the closed form: latents before propagation.

    Both in the units of the start. Predicted latents are centred and, as a whole, of unit variance: among
    themselves they keep the closed form's weights. Guarded ones are of unit variance each, so that the guards
    ask to keep the start's shape and not to undo those weights.
    """

    mean: Tensor
    spread: Tensor

    def __init__(self, encoder: HopEncoder, inputs: RowInputs) -> None:
        super().__init__()
        self.count = encoder.weight.shape[1]
        with torch.no_grad():
            z = encoder.latents(inputs)
            mean, spread = z.mean(dim=0), z.std(dim=0, correction=0)
        self.register_buffer("mean", mean)
        self.register_buffer("spread", torch.where(spread > 0, spread, torch.ones_like(spread)))

    def predicted(self, encoder: HopEncoder, inputs: GraphInputs, rows: npt.NDArray[np.bool_]) -> Tensor:
        """What is to be predicted of ``rows`` (bool ``[N]``)."""
        return (encoder.latents_of(inputs, rows) - self.mean) / self.spread.square().mean().sqrt()

    def guarded(self, encoder: HopEncoder, inputs: GraphInputs, rows: npt.NDArray[np.bool_]) -> Tensor:
        """What must not collapse, of ``rows`` (bool ``[N]``)."""
        return (encoder.latents_of(inputs, rows) - self.mean) / self.spread


class StartedEstimator(TrainedEstimator, ABC):
    """A method whose encoder may start at the closed form, as its setting ``start`` says."""

    solved_: LinearJEPA  # without it the encoder is a network

    def start(self, inputs: RowInputs) -> HopEncoder | None:
        """The encoder before the first step, ready to be trained; none where it is a network."""
        if self.config.start == "random":
            return None
        # not rotated yet: the guards take every latent in its own unit
        encoder, _ = self._solve(inputs, Logging(description="Solving the closed form"), rotated=False)
        entry = float(encoder.weight.double().square().mean().sqrt()) or 1.0  # root of the mean square
        encoder.unit = 2.0 ** round(math.log2(entry))
        encoder.weight.div_(encoder.unit)  # exact: a power of two
        return encoder.requires_grad_(True)

    def _solve(
        self, inputs: RowInputs, logging: Logging, *, rotated: bool = True
    ) -> tuple[HopEncoder, History]:
        self.solved_ = self._linear(rotated=rotated)
        self.solved_.process_group = self.process_group
        encoder, history = self.solved_.learn(inputs, None, logging)
        if self.config.start == "random-hops":
            _redraw(encoder, inputs, self.solved_.findings_.mean_kept)
        return encoder, history

    def _linear(self, *, rotated: bool = True) -> LinearJEPA:
        return LinearJEPA(device=self.device, dim=self.config.encoder.hidden, rotated=rotated)

    def learn(self, inputs: RowInputs, run: Run | None, logging: Logging) -> tuple[Any, History]:
        """As LinearJEPA where the start is kept as it is."""
        if self.config.start == "closed-form" and not self.config.training.epochs:
            return self._solve(inputs, logging)
        return super().learn(inputs, run, logging)

    def trained_encoder(self, task: Any) -> Any:
        """The encoder to keep, its weights in plain units and rotated as LinearJEPA's are."""
        encoder = super().trained_encoder(task)
        if isinstance(encoder, HopEncoder):
            with torch.no_grad():
                encoder.weight.mul_(encoder.unit)
                if encoder.equal_rows:  # hops that stand side by side are neither
                    rotation = hartley(len(encoder.shift)).to(encoder.weight)
                    encoder.weight.copy_(encoder.weight @ rotation)
                    encoder.shift.copy_(encoder.shift @ rotation)
            encoder.unit = 1.0
            encoder.requires_grad_(False)
        return encoder

    def make_encoder(self, in_dim: int) -> Any:
        """What the settings ``encoder.*`` say, or LinearJEPA's, as large as the graph asked for."""
        return (
            super().make_encoder(in_dim)
            if self.config.start == "random"
            else self.solved_.make_encoder(in_dim)
        )

    def width(self, graph: RowGraph) -> int:
        """As LinearJEPA's, where it starts there."""
        return super().width(graph) if self.config.start == "random" else self._linear().width(graph)

    def describe(self) -> str:
        """What the closed form found, where it was the start."""
        return self.solved_.describe() if self.config.start == "closed-form" else ""

    def spectrum(self) -> tuple[float, ...]:
        """rho of every latent of the closed form, where it was the start."""
        return self.solved_.spectrum() if self.config.start == "closed-form" else ()

    def own_facts(self) -> dict[str, Any]:
        """What the closed form found, which also says how large the encoder is."""
        return {} if self.config.start == "random" else self.solved_.own_facts()

    def take_facts(self, facts: Mapping[str, Any]) -> None:
        """The findings back from a file."""
        if self.config.start != "random":
            self.solved_ = self._linear()
            self.solved_.take_facts(facts)


def _redraw(encoder: HopEncoder, inputs: RowInputs, mean_kept: float) -> None:
    """Directions drawn at random, as long as those found; the mean's share and the mixture of hops stay."""
    length = encoder.weight.norm(dim=0) / math.sqrt(len(encoder.weight))
    encoder.weight.copy_(torch.randn(encoder.weight.shape).to(length.device) * length)
    if encoder.shift.any():
        encoder.shift.zero_()
        encoder.shift.copy_((1 - mean_kept) * encoder.latents(inputs).mean(dim=0))


@dataclass(frozen=True)
class StartedCost:
    """Of a method that may start at the closed form: that of solving it and that of training."""

    training: GradientCost

    def budget(self, config: Any, work: Workload, **where: Any) -> Budget:
        """As :meth:`nodejepa.methods.budget.Cost.budget`."""
        trained = self.training.budget(config, work, **where)
        if config.start == "random":
            return trained
        solved = ClosedFormCost().budget(LinearJEPAConfig(dim=config.encoder.hidden), work, **where)
        if not config.training.epochs:
            return solved
        return Budget(
            max(solved.training_bytes, trained.training_bytes),
            max(solved.embedding_bytes, trained.embedding_bytes),
            solved.seconds + trained.seconds,
        )
