"""Will it fit? Estimated peak against the memory there is, and what fits where it does not.

Nothing is allocated for it. Memory is counted in what dominates it: arrays of one float32 row per node, as
wide as the encoder (activations that the backward pass needs, and their gradients), the adjacency and the
features. How many such arrays training keeps was measured (peak resident memory of two epochs, 2 thousand to
100 thousand nodes): from 4 for each of GraphMAE's layers to 11 for BGRL's; all methods are taken for one
between them. Time is counted in floating-point operations; how many this machine does in a second is measured
on the spot.
"""

import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import torch

from nodejepa.config import flatten, override
from nodejepa.data.splits import SPLIT_SEEDS, TRAIN
from nodejepa.evaluation.logistic import is_costly
from nodejepa.graph import Graph
from nodejepa.machine import Room, TooLarge, gigabytes, in_words, one_thread
from nodejepa.methods import UNTRAINED, make_method
from nodejepa.methods.estimator import Estimator
from nodejepa.methods.nodejepa import NodeJEPA
from nodejepa.methods.trained import NODES_OF_A_STEP, joined_parts
from nodejepa.nn.workspace import array_bytes
from nodejepa.structure.partition import METIS_ENTRIES
from nodejepa.tables import StoredGraph

BY_ROWS = "linear-jepa"
PREPARE = "keep the graph on disk: `nodejepa prepare`, then `nodejepa embed-graph` of the store"
_STEPS = (8, 64)  # of an epoch in parts
_MOST_PROPOSALS = 3
# of the probe, per split: settings tried, steps of each (many classes are solved roughly first), passes over
# the training rows in a step; measured with 2 to 58 classes and 16 to 745 columns
_SETTINGS, _STEPS_EACH, _ROUGH_STEPS, _PASSES = 12, 1000, 100, 4
_LEAST_SECONDS = 1.0  # of five splits, for what is no product of matrices
_FLOAT = 4
_FIXED_BYTES = 200_000_000  # compiled code, work space of the libraries
_LIBRARY_BYTES = 300_000_000  # of a process that has loaded them
_SPARSE_COST = 12.0  # an operation of a sparse product takes as long as so many of a dense one
_PER_LAYER, _BESIDE = 7.0, 6.0  # arrays [nodes, hidden] at the peak of training: of each layer, and besides
_PASSES_OF_AN_EPOCH = 8.0  # forward passes that an epoch's work is worth
_ATTENTION_BYTES, _ATTENTION_COST = 160, 4  # of a layer, for an edge; times the products of another encoder
_ELEMENTWISE_COST = 200.0  # operations' worth of norms and activations, for each value of a layer
_BYTES_PER_SECOND = 100e6  # of tables read, encoded and written


# ------------------------------------------------------------------ what a method takes


@dataclass(frozen=True)
class Workload:
    """The sizes that cost something."""

    nodes: int
    entries: int  # stored entries of the adjacency
    columns: int
    feature_entries: int  # nodes x columns if the features are dense
    dense: bool

    @classmethod
    def of(cls, graph: Graph | StoredGraph) -> Self:
        """The sizes of a graph."""
        cells = graph.num_nodes * graph.num_features
        if isinstance(graph, Graph):
            filled = None if isinstance(graph.features, np.ndarray) else int(graph.features.nnz)
        else:
            filled = graph.manifest.feature_entries
        entries = cells if filled is None else filled
        return cls(graph.num_nodes, graph.num_edges, graph.num_features, entries, filled is None)


@dataclass(frozen=True)
class Budget:
    """What a run takes beside what the process holds already."""

    training_bytes: int
    embedding_bytes: int
    seconds: float

    @property
    def peak_bytes(self) -> int:
        """The larger of the two."""
        return max(self.training_bytes, self.embedding_bytes)


@dataclass(frozen=True)
class OnDisk:
    """A graph that stays on disk: how much its arrays may take, and which processes share a step."""

    memory: int = 4_000_000_000  # of arrays with one row per node, as nn/workspace.py keeps them
    processes: int = 1  # that share a step
    started: int = 0  # of them on this machine, beside this process; 0: it is the one that is counted


def budget(
    estimator: Estimator, work: Workload, *, operations_per_second: float, where: OnDisk | None = None
) -> Budget:
    """Memory and time of learning with a method on a graph of these sizes and of embedding it.

    ``where`` is given for a graph that stays on disk; the time then includes preparing it.
    """
    config, speed = estimator.config, operations_per_second
    if not estimator.trained:
        return _untrained(config, work, speed, where)
    if not estimator.by_gradient:
        return _solved(config, work, speed, where)
    trained = _trained if where is None else partial(_trained_in_parts, where=where)
    found = trained(config, work, speed)
    if not isinstance(estimator, NodeJEPA) or config.start == "random":
        return found
    solved = _solved(estimator.solver().config, work, speed, where)
    if not config.training.epochs:
        return solved
    return Budget(
        max(solved.training_bytes, found.training_bytes),
        max(solved.embedding_bytes, found.embedding_bytes),
        solved.seconds + found.seconds,
    )


def _trained(config: Any, work: Workload, speed: float) -> Budget:
    """By gradient descent, on the whole graph or parts of it."""
    settings, encoder, asked = flatten(config), config.encoder, config.training
    hidden, layers, attends = encoder.hidden, encoder.layers, encoder.kind == "gat"
    array = _FLOAT * work.nodes * max(hidden, getattr(encoder, "out_dim", None) or hidden)
    graph = _graph_bytes(work, hidden) + attends * layers * _ATTENTION_BYTES * (work.entries + work.nodes)
    seen = asked.parts_per_step / asked.parts
    whole = settings.get("loss.sigreg_on") not in ("context", "pooled-context")  # the last layer, and guards
    kept = _PER_LAYER * layers + _BESIDE if whole else _PER_LAYER * (layers - 1)
    training = graph + int(seen * array * kept)
    embedding = graph + 5 * array  # two layers at a time, then the rows by column, to be written
    products = _propagation_flops(work, hidden * layers) * (_ATTENTION_COST if attends else 1)
    first = 2.0 * work.feature_entries * hidden * (1.0 if work.dense else _SPARSE_COST)
    later = 2.0 * work.nodes * hidden * hidden * (layers - 1)
    flops = _PASSES_OF_AN_EPOCH * (
        products + first + later + _ELEMENTWISE_COST * work.nodes * hidden * layers
    )
    if settings.get("predictor.kind") == "attention":  # every target looks at every context node
        flops += 6.0 * work.nodes**2 * int(settings["predictor.hidden"]) * seen
    steps = asked.epochs * int(settings.get("patches.steps_per_epoch", 1))
    return Budget(_FIXED_BYTES + training, _FIXED_BYTES + embedding, steps * flops / speed)


def _trained_in_parts(config: Any, work: Workload, speed: float, where: OnDisk) -> Budget:
    """The same on a graph on disk, with preparing and embedding it.

    A step costs what training costs on a graph as large as what one process has of it. Checked against
    ``benchmarks/scale_train.jsonl``.
    """
    asked = config.training
    if not asked.epochs or asked.parts == 1:  # which fit itself refuses
        return Budget(0, 0, 0.0)
    mine = -(-asked.micro_batches // where.processes)
    held = mine * asked.parts_per_step // asked.micro_batches  # parts that a process has in memory
    nodes, entries, filled = (
        size * held // asked.parts for size in (work.nodes, work.entries, work.feature_entries)
    )
    seen = Workload(nodes, entries, work.columns, filled, work.dense)
    alone = {"training.parts": 1, "training.parts_per_step": 1, "training.micro_batches": 1}
    step = _trained(override(config, alone), seen, speed)
    of_nodes = 100 * work.nodes
    stepping = max(where.started, 1) * (step.training_bytes + of_nodes) + where.started * _LIBRARY_BYTES
    splitting = 0
    if asked.partition == "metis":
        seen_by_metis = work.entries if work.entries <= METIS_ENTRIES else 0
        splitting = _FIXED_BYTES + 100 * seen_by_metis + of_nodes
    kept = _FLOAT * 5 * config.encoder.hidden * work.nodes
    embedding = 2 * _FIXED_BYTES + min(where.memory, kept) + 60 * work.nodes
    moved = 2 * _FLOAT * work.nodes * work.columns + 16 * work.entries
    seconds = asked.parts / held * step.seconds / where.processes + moved / _BYTES_PER_SECOND
    return Budget(max(stepping, splitting), embedding, seconds)


def _solved(config: Any, work: Workload, speed: float, where: OnDisk | None) -> Budget:
    """In closed form: products of the features with a basis, a few times, and one small eigenproblem."""
    basis, width = min(config.basis, work.columns), min(config.dim, work.columns)
    product = 2.0 * work.feature_entries * (1.0 if work.dense else _SPARSE_COST)
    flops = (
        14 * basis * product + _propagation_flops(work, 2 * basis + config.hops * width) + 200.0 * basis**3
    )
    if where is not None:  # by blocks of rows; checked against ``benchmarks/scale.jsonl``
        read = _FLOAT * work.nodes * work.columns + 8 * work.entries
        return _by_columns(work, width, config.dim, read, flops / speed, where)
    graph = _FIXED_BYTES + _graph_bytes(work, config.dim)
    fit = graph + _FLOAT * (4 * 256 * work.nodes + 8 * basis * (work.columns + basis))
    return Budget(fit, graph + _FLOAT * 6 * config.dim * work.nodes, flops / speed)


def _untrained(config: Any, work: Workload, speed: float, where: OnDisk | None) -> Budget:
    """A few products with the features, which may come out dense."""
    settings = vars(config)
    width, hops = settings.get("hidden", work.columns), settings.get("hops", settings.get("layers", 0))
    flops = _propagation_flops(work, hops * width)
    flops += 2.0 * work.feature_entries * width * _SPARSE_COST if "hidden" in settings else 0.0
    if where is not None:
        return _by_columns(work, width, width, 0, flops / speed, where)
    needed = _FIXED_BYTES + _graph_bytes(work, width) + 3 * _FLOAT * work.nodes * width
    return Budget(needed, needed, flops / speed)


def _by_columns(
    work: Workload, propagated: int, made: int, read: int, seconds: float, where: OnDisk
) -> Budget:
    """On disk columns are propagated in groups that fit; what is made is in memory where it is small."""
    column = _FLOAT * 3 * work.nodes  # of two hops and their sum
    columns = max(1, propagated)
    groups = -(-columns // max(where.memory // column, 1))
    kept = _FLOAT * made * work.nodes
    held = column * -(-columns // groups) + (kept if kept <= where.memory // 5 else 0) + 60 * work.nodes
    needed = _FIXED_BYTES + held
    return Budget(needed, needed, 2 * seconds + (read + kept) / _BYTES_PER_SECOND)


def _graph_bytes(work: Workload, hidden: int) -> int:
    """Operators (S, its tensor, blocks of it) and features as the network reads them."""
    operators = 40 * work.entries + 60 * work.nodes
    if not work.dense:
        return operators + 24 * work.feature_entries
    copies = 2 if work.columns <= hidden else 1  # the propagated features are kept
    return operators + copies * _FLOAT * work.feature_entries


def _propagation_flops(work: Workload, columns: int) -> float:
    """Of products of S with so many columns, in operations of a dense product."""
    return 2.0 * (work.entries + work.nodes) * columns * _SPARSE_COST


def measured_speed(seconds: float = 0.05) -> float:
    """Operations a second that torch's dense products reach here, measured for a moment.

    The fastest of them counts, with one thread or with all: on a busy machine threads wait for each other,
    and most products take several times as long.
    """
    rows, weight = torch.ones(2048, 256), torch.ones(256, 256)
    times: list[float] = []
    for threads in (nullcontext(), one_thread()):
        with threads:
            torch.mm(rows, weight)
            started = time.perf_counter()
            while time.perf_counter() - started < seconds / 2 or not times:
                before = time.perf_counter()
                torch.mm(rows, weight)
                times.append(time.perf_counter() - before)
    return 2 * 2048 * 256 * 256 / min(times)


# ------------------------------------------------------------------ whether it fits


@dataclass(frozen=True)
class Proposal:
    """What else would do, in words with settings as ``name=value``, and what it takes."""

    change: str
    peak_bytes: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.change} (about {gigabytes(self.peak_bytes)}, {in_words(self.seconds)})"


@dataclass(frozen=True)
class Plan:
    """The estimate for the chosen settings, and ``proposals`` where it does not fit.

    Bytes are those of the whole process, with what it holds already.
    """

    method: str
    peak_bytes: int
    seconds: float
    limit_bytes: int
    limit_given: bool
    scoring_seconds: float = 0.0
    proposals: tuple[Proposal, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the estimated peak stays within the limit."""
        return self.peak_bytes <= self.limit_bytes

    @property
    def advice(self) -> str:
        """What to do where it does not fit."""
        if not self.proposals:
            return "No smaller settings fit either: use a machine with more memory, or a smaller graph."
        return f"These fit: {'; '.join(map(str, self.proposals))}."

    def require_fit(self) -> None:
        """Refuse to start what cannot end."""
        if self.fits:
            return
        raise TooLarge(
            f"{self.method} needs about {gigabytes(self.peak_bytes)} of memory and "
            f"{gigabytes(self.limit_bytes)} {'were allowed' if self.limit_given else 'are available'}",
            where="memory plan",
            fix=f"{self.advice} If you know better, name a higher memory_limit=N.",
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "method": self.method,
            "estimated_peak_bytes": self.peak_bytes,
            "estimated_seconds": round(self.seconds, 1),
            "estimated_scoring_seconds": round(self.scoring_seconds, 1),
            "memory_limit_bytes": self.limit_bytes,
            "fits": self.fits,
            "proposals": [asdict(proposal) for proposal in self.proposals],
        }


def make_plan(
    estimator: Estimator,
    graph: Graph | StoredGraph,
    memory_limit: float | None = None,
    *,
    classes: int = 0,
    processes: int = 1,
    started: int = 0,
) -> Plan:
    """Estimate the run and, where it does not fit, what would.

    Args:
        estimator: whose settings the estimate is for.
        graph: in memory already, or on disk.
        memory_limit: gigabytes of this process, or of all ``started`` ones together.
        classes: of the labels that the embeddings are scored on; 0: they are not scored.
        processes: that share a step.
        started: those of them on this machine; 0: this process is one of them.
    """
    room, speed, work = Room.of(memory_limit), measured_speed(), Workload.of(graph)
    disk = OnDisk(array_bytes(room), processes, started)
    stored = None if isinstance(graph, Graph) else disk
    cost = partial(budget, work=work, operations_per_second=speed)
    chosen = cost(estimator, where=stored)
    scoring, proposals = 0.0, []
    if classes:  # the untrained baselines are embedded, and they and the method are probed
        others = [name for name in UNTRAINED if name != estimator.name]
        scoring = sum(cost(make_method(name), where=stored).seconds for name in others)
        widths = [256, 256] + [work.columns] * len(others)  # the method, and the edges alone
        scoring += sum(_probe_seconds(work.nodes, width, classes, speed) for width in widths)
    peak = room.held + chosen.peak_bytes
    plan = Plan(estimator.name, peak, chosen.seconds, room.limit, room.given, scoring)
    for change, other, where in [] if plan.fits else _candidates(estimator, work, stored, disk):
        found = cost(other, where=where)
        if room.held + found.peak_bytes <= room.limit:
            proposals.append(Proposal(change, room.held + found.peak_bytes, found.seconds))
    return replace(plan, proposals=tuple(proposals[:_MOST_PROPOSALS]))


def _probe_seconds(nodes: int, width: int, classes: int, speed: float) -> float:
    """Of scoring one matrix, roughly: how many steps it takes depends on what is in it."""
    rows = min(TRAIN * classes, nodes)
    directions = min(width, rows)  # training rows span no more
    steps = _ROUGH_STEPS if is_costly(rows, directions, classes) else _STEPS_EACH
    operations = 2.0 * classes * (_SETTINGS * steps * _PASSES * rows * directions + nodes * width)
    return _LEAST_SECONDS + len(SPLIT_SEEDS) * operations / speed


def _candidates(
    estimator: Estimator, work: Workload, stored: OnDisk | None, disk: OnDisk
) -> Iterator[tuple[str, Estimator, OnDisk | None]]:
    """What may be tried instead, in words, the mildest change first."""
    solved = make_method(BY_ROWS)
    training: Any = getattr(estimator.config, "training", None)
    trains = training is not None and training.epochs > 0

    def changed(changes: dict[str, Any], where: OnDisk | None) -> tuple[str, Estimator, OnDisk | None]:
        words = ", ".join(f"{name}={value}" for name, value in changes.items())
        return words, type(estimator)(override(estimator.config, changes)), where

    if trains and stored is not None:
        parts = _parts_on_disk(estimator, work)
        yield changed(parts, stored)
        yield changed(parts | {"training.partition": "random"}, stored)
    elif trains and training.parts == 1:
        for steps in _STEPS:
            yield changed(dict(joined_parts(work.nodes, steps)), None)
    if estimator.name != BY_ROWS:
        yield f'method="{BY_ROWS}"', solved, stored
    if trains and stored is not None:  # many small steps take much longer
        yield changed(_parts_on_disk(estimator, work, finer=8), stored)
    if stored is None and work.columns:
        yield PREPARE, solved, disk


def _parts_on_disk(estimator: Estimator, work: Workload, finer: int = 1) -> dict[str, Any]:
    """Settings that make steps of about the same number of nodes, whatever the size of the graph."""
    steps = finer * max(work.nodes // NODES_OF_A_STEP, 2)
    changes: dict[str, Any] = dict(joined_parts(work.nodes, steps, entries=work.entries))
    if changes["training.parts_per_step"] % estimator.config.training.micro_batches:
        changes["training.micro_batches"] = 1
    asked = flatten(estimator.config).get("predictor.descriptors", ())
    if "spectral" in asked:  # which reads the edges hundreds of times, and needs 800 bytes a node
        changes["predictor.descriptors"] = ",".join(name for name in asked if name != "spectral")
    return changes
