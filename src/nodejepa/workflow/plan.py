"""Will it fit? Estimated peak against the memory there is, and settings that fit where it does not."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from nodejepa.config import flatten, override
from nodejepa.errors import Advice, ConfigError, Setting
from nodejepa.graph import Graph
from nodejepa.memory import Room, gigabytes
from nodejepa.methods import find_method, make_estimator
from nodejepa.methods.budget import Budget, StoredCost, StoredPartsCost, Workload, measured_speed
from nodejepa.methods.estimator import Estimator
from nodejepa.methods.trained import joined_parts
from nodejepa.nn.workspace import array_bytes
from nodejepa.progress import in_words
from nodejepa.structure.descriptors import ADJACENCY_BYTES
from nodejepa.tables.inputs import byte_stream, file_format, reading
from nodejepa.tables.options import COMPARABLE, structural_width

LONG_SECONDS = 2 * 3600.0
_LIGHTER_METHOD = "patchjepa"
_STEPS = (8, 64)  # of an epoch in parts
_WIDTHS = (128, 64, 32)
_MOST_PROPOSALS = 3
BY_ROWS = "linear-jepa"
_ON_DISK = f"keep the graph on disk: `nodejepa prepare`, `pretrain` ({BY_ROWS}), `embed`, see docs/scale.md "
_IN_PARTS = "keep it on disk and train in parts: `nodejepa prepare`, then `pretrain` with "
_LOOKED_AT = 1 << 16  # bytes of a text file
_UNPACKED = 4  # bytes of text in one of a compressed file, about


@dataclass(frozen=True)
class Proposal:
    """Another method, other settings or both, and what they take."""

    options: tuple[Setting, ...]
    peak_bytes: int
    seconds: float
    road: str = ""  # other commands, where options alone do not do

    @property
    def words(self) -> Advice:
        """The proposal for people."""
        spaced = [self.road, *(part for option in self.options for part in (option, " "))]
        return Advice(*spaced, f"(about {gigabytes(self.peak_bytes)}, {in_words(self.seconds)})")


@dataclass(frozen=True)
class Plan:
    """The estimate for the chosen settings. ``proposals`` are given where it does not fit or takes long.

    Bytes are those of the whole process, with what it holds already.
    """

    method: str
    peak_bytes: int
    seconds: float
    limit_bytes: int
    limit_given: bool
    proposals: tuple[Proposal, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the estimated peak stays within the limit."""
        return self.peak_bytes <= self.limit_bytes

    @property
    def takes_long(self) -> bool:
        """Whether a person should hear of faster settings first."""
        return self.seconds > LONG_SECONDS

    @property
    def proposed(self) -> Advice:
        """All proposals, for people."""
        return Advice(*[part for p in self.proposals for part in ("; ", p.words)][1:])

    def require_fit(self) -> None:
        """Refuse to start what cannot end."""
        if self.fits:
            return
        way_out = (
            Advice("These fit: ", self.proposed, ".")
            if self.proposals
            else "No smaller settings fit either: use a machine with more memory, or a smaller graph."
        )
        raise ConfigError(
            f"{self.method} needs about {gigabytes(self.peak_bytes)} of memory and "
            f"{gigabytes(self.limit_bytes)} {'were allowed' if self.limit_given else 'are available'}",
            where="memory plan",
            fix=Advice(way_out, " If you know better, raise ", Setting("memory_limit"), "."),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "method": self.method,
            "estimated_peak_bytes": self.peak_bytes,
            "estimated_seconds": round(self.seconds, 1),
            "memory_limit_bytes": self.limit_bytes,
            "fits": self.fits,
            "proposals": [
                {
                    **{o.name: o.value for o in p.options},
                    **({"road": p.road.strip()} if p.road else {}),
                    "peak_bytes": p.peak_bytes,
                    "seconds": round(p.seconds, 1),
                }
                for p in self.proposals
            ],
        }


def make_plan(
    estimator: Estimator, graph: Graph, memory_limit: float | None = None, *, pending: tuple[str, ...] = ()
) -> Plan:
    """Estimate the run and, where needed, what else would do.

    The graph is in memory already, but for the ``pending`` structural features that it will have.
    """
    room = Room.of(memory_limit)
    held, limit = room.held, room.limit
    work, speed, more_columns = Workload.of(graph), measured_speed(), structural_width(pending)
    structure = ADJACENCY_BYTES * work.nodes if "adjacency" in pending else 0
    work = replace(
        work,
        columns=work.columns + more_columns,
        feature_entries=work.feature_entries + more_columns * work.nodes,
    )

    def budget(method: str, config: Any) -> Budget:
        return find_method(method).cost.budget(config, work, operations_per_second=speed)

    chosen = budget(estimator.name, estimator.config)
    peak = held + max(chosen.peak_bytes, structure)
    plan = Plan(estimator.name, peak, chosen.seconds, limit, memory_limit is not None)
    if plan.fits and not plan.takes_long:
        return plan
    proposals = []
    less = make_plan(estimator, graph, memory_limit, pending=COMPARABLE) if structure else plan
    if less.fits and not plan.fits:
        proposals.append(Proposal((Setting("structural", "all"),), less.peak_bytes, less.seconds))
    for options, method, config in _alternatives(estimator, work.nodes):
        found = budget(method, config)
        better = not plan.fits or found.seconds < plan.seconds / 2
        peak = held + max(found.peak_bytes, structure)
        if better and peak <= limit:
            proposals.append(Proposal(options, peak, found.seconds))
    if not plan.fits and not proposals:
        proposals += stored_roads(estimator, work, room, speed)
    return replace(plan, proposals=tuple(proposals[:_MOST_PROPOSALS]))


def stored_roads(
    estimator: Estimator, work: Workload, room: Room, speed: float | None = None
) -> list[Proposal]:
    """Ways on which the graph stays on disk: solved by rows, and the method itself trained in parts."""
    if not work.columns:
        return []
    memory = array_bytes(room)
    solved = ((), _ON_DISK, StoredCost(memory), make_estimator(BY_ROWS).config)
    roads = []
    for options, words, cost, config in (solved, *_in_parts(estimator, work, memory)):
        budget = cost.budget(config, work, operations_per_second=speed or measured_speed())
        peak = room.held + budget.peak_bytes
        if peak <= room.limit:
            roads.append(Proposal(options, peak, budget.seconds, words))
    return roads


def _in_parts(estimator: Estimator, work: Workload, memory: int) -> list[tuple[Any, str, Any, Any]]:
    found = find_method(estimator.name)
    if not found.by_gradient or found.supervised or not estimator.config.training.epochs:
        return []
    changes: dict[str, Any] = dict(joined_parts(work.nodes, entries=work.entries))
    if changes["training.parts_per_step"] % estimator.config.training.micro_batches:
        changes["training.micro_batches"] = 1
    asked = flatten(estimator.config).get("predictor.descriptors", ())
    if "spectral" in asked:  # which reads the edges hundreds of times, and needs 800 bytes a node
        changes["predictor.descriptors"] = ",".join(name for name in asked if name != "spectral")
    paper = [Setting("preset", "paper")] if flatten(estimator.config).get("start") == "random" else []
    options = (Setting("method", estimator.name), *paper, Setting("settings", changes))
    return [(options, _IN_PARTS, StoredPartsCost(found.cost, memory), override(estimator.config, changes))]


def _alternatives(estimator: Estimator, nodes: int) -> list[tuple[tuple[Setting, ...], str, Any]]:
    """Options, method and settings of everything smaller, the mildest change first."""
    found: list[tuple[tuple[Setting, ...], str, Any]] = []
    epochs = estimator.config.training.epochs if find_method(estimator.name).by_gradient else 0
    if not epochs:
        return found  # nothing is trained, and nothing is lighter
    lighter = make_estimator(_LIGHTER_METHOD, settings={"training.epochs": epochs})
    configs = {_LIGHTER_METHOD: lighter.config} | {estimator.name: estimator.config}
    for width in (None, *_WIDTHS):
        for name, config in configs.items():
            changes = {} if width is None else _narrower(config, width)
            options = [Setting("method", name)] if name != estimator.name else []
            options += [Setting("settings", changes)] if changes else []
            if options and (changes or width is None):
                found.append((tuple(options), name, override(config, changes)))
        if width is None and estimator.config.training.parts == 1:
            for steps in _STEPS:
                cut = joined_parts(nodes, steps)
                found.append(((Setting("settings", cut),), estimator.name, override(estimator.config, cut)))
    return found


def _narrower(config: Any, width: int) -> dict[str, int]:
    flat = flatten(config)
    wide = ("encoder.hidden", "encoder.out_dim", "predictor.hidden")
    return {name: width for name in wide if isinstance(flat.get(name), int) and flat[name] > width}


def roads_of_files(
    estimator: Estimator, edges: Path | None, nodes: Path | None, room: Room
) -> list[Proposal]:
    """The roads on disk for tables of edges and maybe nodes; none for other files and where none fits."""
    found = None if edges is None else _rows_and_columns(edges)
    if found is None:
        return []
    rows = found[0]
    described = (rows, structural_width(COMPARABLE) + 1)  # of edges alone: hardly more nodes than rows
    if nodes is not None:
        found = _rows_and_columns(nodes)
        if found is None:
            return []
        described = found
    count, columns = described
    work = Workload(count, 2 * rows, columns - 1, count * (columns - 1), True)
    return stored_roads(estimator, work, room)


def _rows_and_columns(path: Path) -> tuple[int, int] | None:
    kind, compression = file_format(path)
    with reading(str(path)):
        if kind == "parquet":
            with pq.ParquetFile(path) as file:
                return file.metadata.num_rows, file.metadata.num_columns
        if kind != "text":
            return None
        with byte_stream(path, compression) as stream:
            lines = stream.read(_LOOKED_AT).splitlines()
    length = sum(map(len, lines)) / len(lines) + 1
    size = path.stat().st_size * (_UNPACKED if compression else 1)
    commas = max(lines[0].count(mark) for mark in (b",", b"\t", b";", b" "))
    return round(size / length), commas + 1
