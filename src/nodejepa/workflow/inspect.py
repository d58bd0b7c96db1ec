"""The method, and the data report before training: what was read, and what training on it will take."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nodejepa.errors import ConfigError, GraphError
from nodejepa.graph import Graph
from nodejepa.memory import TooLarge, gigabytes
from nodejepa.methods import make_method, refuse_supervised
from nodejepa.methods.arguments import pick_device
from nodejepa.methods.estimator import Estimator
from nodejepa.progress import in_words, progress_bar, timed
from nodejepa.structure.summary import GraphSummary, summarise_graph
from nodejepa.tables import ReadingOptions, StoredGraph, read_graph
from nodejepa.tables.options import ReadReport, structural_width
from nodejepa.tables.structural import structural_names
from nodejepa.workflow.outputs import described
from nodejepa.workflow.plan import PREPARE, Plan, make_plan
from nodejepa.workflow.read import UserGraph, store_facts


def make_trainable(
    method: str,
    *,
    preset: str = "default",
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    device: str = "auto",
    dim: int | None = None,
) -> Estimator:
    """The method with its settings, untrained baselines included; one that needs labels is refused."""
    refuse_supervised(method)
    if dim is not None and (isinstance(dim, bool) or not isinstance(dim, int) or dim < 1):
        raise ConfigError(f"dim is {dim!r}", where="dim", fix="Give a whole number of columns, 1 or more.")
    pick_device(device)
    estimator = make_method(method, preset=preset, settings=settings, seed=seed, device=device)
    estimator.max_columns = dim
    return estimator


@dataclass(frozen=True, eq=False)
class Inspection:
    """A graph that was read and looked at, and what learning from it will take."""

    data: UserGraph
    plan: Plan
    inputs: dict[str, dict[str, Any]]
    summary: GraphSummary | None = None  # of a graph in memory
    pending: tuple[str, ...] = ()  # structural features that are asked for and were not computed

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        graph = self.facts() if self.summary is None else self.summary.to_dict()
        return {
            "inputs": self.inputs,
            "read": self.data.report.to_dict(),
            "graph": graph,
            "pending_features": list(self.pending),
            "plan": self.plan.to_dict(),
            "warnings": self.warnings(),
        }

    def facts(self) -> dict[str, str]:
        """Names and values for people."""
        graph = self.data.graph
        if self.summary is None:
            facts = store_facts(graph) if isinstance(graph, StoredGraph) else {}
        else:
            facts = _memory_facts(self.summary, self.data.report, self.pending)
        plan = self.plan
        facts["estimated time"] = f"{in_words(plan.seconds)} for training {plan.method}, roughly"
        if plan.scoring_seconds:
            facts["estimated time"] += f"; {in_words(plan.scoring_seconds)} for scoring, after it is written"
        facts["estimated memory"] = (
            f"{gigabytes(plan.peak_bytes)} at the peak of {gigabytes(plan.limit_bytes)} "
            f"{'allowed' if plan.limit_given else 'available'}"
        )
        return facts

    def warnings(self) -> list[str]:
        """What a person should think about before going on."""
        graph, plan = self.summary, self.plan
        said = list(self.data.report.warnings)
        if graph is not None:
            if graph.nodes < 2:
                said.append("The graph has one node: there is nothing to learn from it.")
            elif graph.edges == 0:
                said.append("The graph has no edges: embeddings can only repeat what the features say.")
            elif graph.isolated_nodes > graph.nodes / 2:
                said.append("Most nodes have no edge: their embeddings only repeat what their features say.")
            if graph.feature_columns and graph.constant_columns == graph.feature_columns:
                said.append("All features are the same for every node: only edges tell nodes apart.")
        if plan.proposals and plan.fits:
            said.append(f"Training takes about {in_words(plan.seconds)}. Faster: {plan.proposed}.")
        return said

    def require_usable(self) -> None:
        """Refuse, before anything is written, what no method can learn from and what does not fit."""
        graph, report = self.data.graph, self.data.report
        if graph.num_nodes < 2:
            raise GraphError(
                "the graph has one node",
                where=report.edge_file,
                fix="At least two are needed: one to see, one to predict.",
            )
        if not graph.num_features and not self.pending:
            raise GraphError(
                "the nodes have no features",
                where=report.node_file or report.edge_file,
                fix="Give a node table with columns to use, or allow structural features.",
            )
        self.plan.require_fit()


def _memory_facts(graph: GraphSummary, read: ReadReport, pending: tuple[str, ...]) -> dict[str, str]:
    largest = ", ".join(f"{size:,}" for size in graph.component_sizes[:3])
    more = ", ..." if graph.components > 3 else ""
    repeated = f"{read.duplicate_rows:,} repeated, {read.self_loop_rows:,} from a node to itself"
    degrees = (
        f"mean {graph.mean_degree:.1f}, median {graph.median_degree:.0f}, 99 % up to "
        f"{graph.degree_99:.0f}, most {graph.max_degree:,}"
    )
    storage = "sparse" if graph.sparse_features else "dense"
    features = (
        f"{graph.feature_columns:,} columns, {100 * graph.feature_density:.3g} % filled ({storage}); "
        f"{graph.constant_columns:,} constant columns, {graph.zero_rows:,} rows of zeros"
    )
    if pending:
        later = (
            f"{structural_width(pending)} structural columns ({', '.join(pending)}), computed before training"
        )
        features = f"{features}; {later}" if graph.feature_columns else later
    return {
        "nodes": f"{graph.nodes:,}",
        "edges": f"{graph.edges:,}, {'directed' if graph.directed else 'undirected'}"
        + (", weighted" if graph.weighted else ""),
        "rows of edges": f"{read.edge_rows:,}: {repeated}",
        "components": f"{graph.components:,} (largest: {largest}{more} nodes)",
        "isolated nodes": f"{graph.isolated_nodes:,}",
        "neighbours": degrees,
        "hubs": f"1 % of the nodes hold {100 * graph.hub_edge_share:.0f} % of all edge ends",
        "features": features,
    }


def inspect_graph(
    edges: Any,
    nodes: Any = None,
    reading: ReadingOptions | None = None,
    *,
    estimator: Estimator,
    memory_limit: float | None = None,
    seconds: dict[str, float] | None = None,
    describe: bool = True,
    score: bool = True,
) -> Inspection:
    """Read a graph and say what training ``estimator`` on it will take; nothing is trained.

    Args:
        edges: as in :func:`nodejepa.read_graph`, and so are ``nodes`` and ``reading``; or a graph store,
            which is opened and stays on disk.
        estimator: whose settings the estimate is for.
        memory_limit: gigabytes the process may take; what is available if not given.
        seconds: filled with those of each phase.
        describe: compute structural features; without them the report is the same and, on a large graph,
            minutes earlier, but the graph is not ready to be trained on.
        score: whether the estimate counts scoring, where there are labels.
    """
    seconds, reading = {} if seconds is None else seconds, reading or ReadingOptions()
    pending: tuple[str, ...] = ()
    with timed(seconds, "reading"):
        if StoredGraph.is_at(edges):
            if nodes is not None or reading != ReadingOptions():
                raise ConfigError(
                    "a graph store has its nodes and was read with its own options",
                    where=str(edges),
                    fix="Name the store alone, or prepare it again with other options.",
                )
            data = UserGraph.of_store(StoredGraph(edges))
        else:
            data, pending = _read_files(edges, nodes, reading, memory_limit, describe)
    graph, classes = data.graph, len(data.class_names) if score else 0
    with timed(seconds, "checking"), progress_bar("Checking the graph"):
        summary = summarise_graph(graph) if isinstance(graph, Graph) else None
        plan = make_plan(estimator, graph, memory_limit, pending=pending, classes=classes)
    with timed(seconds, "hashing"):
        if isinstance(graph, StoredGraph):
            inputs = {"store": {"path": str(graph.folder), "content_hash": graph.content_hash}}
        else:
            inputs = {name: {"path": str(p), **described(p)} for name, p in _files(edges, nodes).items()}
    return Inspection(data, plan, inputs, summary, pending)


def _read_files(
    edges: Any, nodes: Any, reading: ReadingOptions, memory_limit: float | None, describe: bool
) -> tuple[UserGraph, tuple[str, ...]]:
    """The graph in memory, and the structural features that are left for later."""
    asked = reading if describe else replace(reading, structural=())
    try:
        loaded = read_graph(edges, nodes, asked, memory_limit=memory_limit)
    except TooLarge as error:
        if "edges" not in _files(edges):
            raise
        raise TooLarge(error.what, where=error.where, fix=f"Try this: {PREPARE}. {error.fix}") from None
    made_of = (reading.structural, loaded.schema, loaded.report, loaded.graph.num_nodes)
    return UserGraph.of_files(loaded, reading), () if describe else structural_names(*made_of)


def _files(edges: Any, nodes: Any = None) -> dict[str, Path]:
    several = nodes if isinstance(nodes, list | tuple) else [nodes]
    given = {"edges": edges} | {f"nodes {i}" if i > 1 else "nodes": one for i, one in enumerate(several, 1)}
    return {name: Path(v) for name, v in given.items() if isinstance(v, str | os.PathLike)}
