"""Will learning from a graph on disk fit? Asked before the first row is read."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from nodejepa.config import flatten, override
from nodejepa.errors import Setting
from nodejepa.memory import Room
from nodejepa.methods import find_method, make_estimator
from nodejepa.methods.budget import StoredCost, StoredPartsCost, Workload, measured_speed
from nodejepa.methods.estimator import Estimator
from nodejepa.nn.workspace import array_bytes
from nodejepa.structure.partition import partition_is_kept
from nodejepa.tables import StoredGraph
from nodejepa.training.task import TrainingConfig
from nodejepa.workflow.plan import BY_ROWS, Plan, Proposal, stored_roads

_LEAST_NODES = 16  # of a part that is worth proposing


def require_room(
    estimator: Estimator,
    graph: StoredGraph,
    memory_limit: float | None = None,
    *,
    processes: int = 1,
    started: int = 0,
) -> None:
    """Refuse to start what cannot end, with settings of ``training`` that fit.

    What is solved by rows has arrays as wide as there is room for: it needs the room for what is as long as
    the graph in any case.

    ``memory_limit`` gigabytes are for all processes here together. Of the ``processes`` that share a step so
    many are ``started`` on this machine; 0: this process is one of them.
    """
    found, room, speed = find_method(estimator.name), Room.of(memory_limit), measured_speed()
    filled = graph.manifest.feature_entries
    entries = graph.num_nodes * graph.num_features if filled is None else filled
    work = Workload(graph.num_nodes, graph.num_edges, graph.num_features, entries, filled is None)
    settings, config = flatten(estimator.config), estimator.config
    if estimator.name == BY_ROWS or settings.get("start", "random") != "random":
        if estimator.name != BY_ROWS:
            config = make_estimator(BY_ROWS, settings={"dim": settings["encoder.hidden"]}).config
        budget = StoredCost(array_bytes(room)).budget(config, work, operations_per_second=speed)
        peak = room.held + budget.peak_bytes
        Plan(estimator.name, peak, budget.seconds, room.limit, room.given).require_fit()
    if not found.by_gradient or not estimator.config.training.epochs or estimator.config.training.parts == 1:
        return

    def plan(config: Any) -> Plan:
        split = not partition_is_kept(graph, config.training.parts)
        cost = StoredPartsCost(found.cost, processes=processes, started=started, split=split)
        budget = cost.budget(config, work, operations_per_second=speed)
        return Plan(estimator.name, room.held + budget.training_bytes, budget.seconds, room.limit, room.given)

    def first(ways: Sequence[dict[str, Any]]) -> list[Proposal]:
        for way in ways:
            other = plan(override(estimator.config, way))
            if other.fits:
                return [Proposal((Setting("settings", way),), other.peak_bytes, other.seconds)]
        return []

    asked = plan(estimator.config)
    if asked.fits:
        return
    more, fewer = _smaller(estimator.config.training, graph.num_nodes)
    proposals = first(more) + first(fewer)
    if not proposals:  # then it is METIS that does not fit
        drawn = {"training.partition": "random"}
        proposals = first([drawn, *(way | drawn for way in more + fewer)])
    for solved in stored_roads(make_estimator(BY_ROWS), work, room, speed):
        proposals.append(replace(solved, options=(Setting("method", BY_ROWS),), road=""))
    replace(asked, proposals=tuple(proposals)).require_fit()


def _smaller(training: TrainingConfig, nodes: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """More and smaller parts, and fewer of them in a step, each from the mildest change on."""
    parts, of_step, cut = training.parts, training.parts_per_step, training.micro_batches
    fewer = [k for k in range(of_step - 1, 0, -1) if parts % k == 0 and k % cut == 0]
    more = [parts * 2**k for k in range(1, 40) if parts * 2**k * _LEAST_NODES <= nodes]
    return [{"training.parts": k} for k in more], [{"training.parts_per_step": k} for k in fewer]
