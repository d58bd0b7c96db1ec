"""Will it fit? Estimated peak against the memory there is, and what fits where it does not."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from nodejepa.config import flatten, override
from nodejepa.data.splits import SPLIT_SEEDS, TRAIN
from nodejepa.evaluation.logistic import is_costly
from nodejepa.graph import Graph
from nodejepa.machine import Room, TooLarge, gigabytes
from nodejepa.methods import UNTRAINED, make_estimator, make_method
from nodejepa.methods.budget import Budget, OnDisk, Workload, budget, measured_speed
from nodejepa.methods.estimator import Estimator
from nodejepa.methods.trained import NODES_OF_A_STEP, joined_parts
from nodejepa.nn.workspace import array_bytes
from nodejepa.progress import in_words
from nodejepa.structure.descriptors import ADJACENCY_BYTES
from nodejepa.tables import StoredGraph
from nodejepa.tables.options import structural_width

BY_ROWS = "linear-jepa"
PREPARE = "keep the graph on disk: `nodejepa prepare`, then `nodejepa embed-graph` of the store"
_STEPS = (8, 64)  # of an epoch in parts
_MOST_PROPOSALS = 3
# of the probe, per split: settings tried, steps of each (many classes are solved roughly first), passes over
# the training rows in a step; measured with 2 to 58 classes and 16 to 745 columns
_SETTINGS, _STEPS_EACH, _ROUGH_STEPS, _PASSES = 12, 1000, 100, 4
_LEAST_SECONDS = 1.0  # of five splits, for what is no product of matrices


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
    pending: tuple[str, ...] = (),
    classes: int = 0,
    processes: int = 1,
    started: int = 0,
) -> Plan:
    """Estimate the run and, where it does not fit, what would.

    Args:
        estimator: whose settings the estimate is for.
        graph: in memory already, or on disk.
        memory_limit: gigabytes of this process, or of all ``started`` ones together.
        pending: structural features that the graph in memory will have.
        classes: of the labels that the embeddings are scored on; 0: they are not scored.
        processes: that share a step.
        started: those of them on this machine; 0: this process is one of them.
    """
    room, speed, work = Room.of(memory_limit), measured_speed(), Workload.of(graph)
    more = structural_width(pending)
    work = replace(
        work,
        columns=work.columns + more,
        feature_entries=work.feature_entries + more * work.nodes,
    )
    structure = ADJACENCY_BYTES * work.nodes if "adjacency" in pending else 0
    disk = OnDisk(array_bytes(room), processes, started)
    stored = None if isinstance(graph, Graph) else disk

    def cost(asked: Estimator, where: OnDisk | None) -> Budget:
        """Of learning and embedding; ``where`` is given for a graph that stays on disk."""
        return budget(type(asked), asked.config, work, operations_per_second=speed, where=where)

    def peak(found: Budget) -> int:
        return room.held + max(found.peak_bytes, structure)

    chosen = cost(estimator, stored)
    scoring, proposals = 0.0, []
    if classes:  # the untrained baselines are embedded, and they and the method are probed
        others = [name for name in UNTRAINED if name != estimator.name]
        scoring = sum(cost(make_method(name), stored).seconds for name in others)
        widths = [256, 256] + [work.columns] * len(others)  # the method, and the edges alone
        scoring += sum(_probe_seconds(work.nodes, width, classes, speed) for width in widths)
    plan = Plan(estimator.name, peak(chosen), chosen.seconds, room.limit, room.given, scoring)
    for change, other, where in [] if plan.fits else _candidates(estimator, work, stored, disk):
        found = cost(other, where)
        if peak(found) <= room.limit:
            proposals.append(Proposal(change, peak(found), found.seconds))
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
    solved = make_estimator(BY_ROWS)
    training: Any = getattr(estimator.config, "training", None)
    trains = training is not None and training.epochs > 0
    parts = _parts_on_disk(estimator, work) if trains else {}

    def changed(changes: dict[str, Any], where: OnDisk | None) -> tuple[str, Estimator, OnDisk | None]:
        words = ", ".join(f"{name}={value}" for name, value in changes.items())
        return words, type(estimator)(override(estimator.config, changes)), where

    if trains and stored is not None:
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
        if trains:
            words, other, _ = changed(parts, disk)
            yield f'{PREPARE} with method="{estimator.name}", {words}', other, disk


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
