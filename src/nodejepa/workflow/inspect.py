"""The method, and the data report before training: what was read, and what training on it will take."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nodejepa.errors import Advice, ConfigError, GraphError, Setting
from nodejepa.memory import Room, TooLarge, gigabytes
from nodejepa.methods import find_method, make_method
from nodejepa.methods.arguments import pick_device
from nodejepa.methods.estimator import Estimator
from nodejepa.progress import in_words, progress_bar, timed
from nodejepa.structure.summary import GraphSummary, summarise_graph
from nodejepa.tables import LoadedGraph, ReadingOptions, read_graph
from nodejepa.tables.options import structural_width
from nodejepa.tables.structural import structural_names
from nodejepa.workflow.places import describe_file
from nodejepa.workflow.plan import Plan, make_plan, roads_of_files


def make_trainable(
    method: str,
    *,
    preset: str = "default",
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    device: str = "auto",
    dim: int | None = None,
) -> Estimator:
    """The method with its settings, floors included; one that learns from labels is refused."""
    entry = find_method(method)
    if entry.supervised:
        raise ConfigError(
            f"{method} learns from labels, and embed-graph keeps labels away from training",
            where="method",
            fix=Advice.saying(
                "Use nodejepa or another method that `nodejepa methods` lists; {} gives scores.",
                Setting("labels"),
            ),
        )
    if dim is not None and (isinstance(dim, bool) or not isinstance(dim, int) or dim < 1):
        raise ConfigError(f"dim is {dim!r}", where="dim", fix="Give a whole number of columns, 1 or more.")
    pick_device(device)
    estimator = make_method(method, preset=preset, settings=settings, seed=seed, device=device)
    estimator.max_columns = dim
    return estimator


@dataclass(frozen=True, eq=False)
class Inspection:
    """A graph that was read and looked at."""

    loaded: LoadedGraph
    summary: GraphSummary
    plan: Plan
    inputs: dict[str, dict[str, Any]]
    pending: tuple[str, ...] = ()  # structural features that are asked for and were not computed

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "inputs": self.inputs,
            "read": self.loaded.report.to_dict(),
            "graph": self.summary.to_dict(),
            "pending_features": list(self.pending),
            "plan": self.plan.to_dict(),
            "warnings": self.warnings(),
        }

    def facts(self) -> dict[str, str]:
        """Names and values for people."""
        graph, read = self.summary, self.loaded.report
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
        if self.pending:
            later = (
                f"{structural_width(self.pending)} structural columns ({', '.join(self.pending)}), "
                "computed before training"
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
            "estimated time": f"{in_words(self.plan.seconds)} for training {self.plan.method}, roughly",
            "estimated memory": f"{gigabytes(self.plan.peak_bytes)} at the peak of "
            f"{gigabytes(self.plan.limit_bytes)} {'allowed' if self.plan.limit_given else 'available'}",
        }

    def warnings(self) -> list[str]:
        """What a person should think about before going on."""
        graph, plan = self.summary, self.plan
        said = list(self.loaded.report.warnings)
        if graph.nodes < 2:
            said.append("The graph has one node: there is nothing to learn from it.")
        elif graph.edges == 0:
            said.append("The graph has no edges: embeddings can only repeat what the features say.")
        elif graph.isolated_nodes > graph.nodes / 2:
            said.append("Most nodes have no edge: their embeddings only repeat what their features say.")
        if graph.feature_columns and graph.constant_columns == graph.feature_columns:
            said.append("All features are the same for every node: only edges tell nodes apart.")
        if plan.proposals and plan.fits:
            said.append(
                Advice(f"Training takes about {in_words(plan.seconds)}. Faster: ", plan.proposed, ".")
            )
        return said

    def require_usable(self) -> None:
        """Refuse, before anything is written, what no method can learn from."""
        if self.summary.nodes < 2:
            raise GraphError(
                "the graph has one node",
                where=self.loaded.report.edge_file,
                fix="At least two are needed: one to see, one to predict.",
            )
        if not self.summary.feature_columns and not self.pending:
            raise GraphError(
                "the nodes have no features",
                where=self.loaded.report.node_file or self.loaded.report.edge_file,
                fix="Give a node table with columns to use, or allow structural features.",
            )


def inspect_graph(
    edges: Any,
    nodes: Any = None,
    reading: ReadingOptions | None = None,
    *,
    estimator: Estimator,
    memory_limit: float | None = None,
    seconds: dict[str, float] | None = None,
    describe: bool = True,
) -> Inspection:
    """Read a graph and say what training ``estimator`` on it will take; nothing is trained.

    Args:
        edges: as in :func:`nodejepa.read_graph`, and so are ``nodes`` and ``reading``.
        estimator: whose settings the estimate is for.
        memory_limit: gigabytes the process may take; what is available if not given.
        seconds: filled with those of each phase.
        describe: compute structural features; without them the report is the same and, on a large graph,
            minutes earlier, but the graph is not ready to be trained on.
    """
    seconds = {} if seconds is None else seconds
    several = nodes if isinstance(nodes, list | tuple) else [nodes]
    files = {"edges": edges} | {f"nodes {i}" if i > 1 else "nodes": one for i, one in enumerate(several, 1)}
    paths = {name: Path(v) for name, v in files.items() if isinstance(v, str | os.PathLike)}
    with timed(seconds, "reading"):
        reading = reading or ReadingOptions()
        asked = reading if describe else replace(reading, structural=())
        try:
            loaded = read_graph(edges, nodes, asked, memory_limit=memory_limit)
        except TooLarge as error:
            if nodes is not None and ("nodes" not in paths or len(several) > 1):
                raise
            roads = roads_of_files(estimator, paths.get("edges"), paths.get("nodes"), Room.of(memory_limit))
            if not roads:
                raise
            words = [part for road in roads for part in ("; ", road.words)][1:]
            fix = Advice("This fits: ", *words, ". ", error.fix)
            told = TooLarge(error.what, where=error.where, fix=fix)
            told.has_road = True
            raise told from None
        made_of = (reading.structural, loaded.schema, loaded.report, loaded.graph.num_nodes)
        pending = () if describe else structural_names(*made_of)
    with timed(seconds, "checking"), progress_bar("Checking the graph"):
        summary = summarise_graph(loaded.graph)
        plan = make_plan(estimator, loaded.graph, memory_limit, pending=pending)
    with timed(seconds, "hashing"):
        inputs = {name: describe_file(path) for name, path in paths.items()}
    return Inspection(loaded, summary, plan, inputs, pending)
