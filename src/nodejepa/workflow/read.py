"""A user's graph, in memory or on disk: how it was read, and the data report before training."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nodejepa.config import Exact, of_type, read_document, write_document
from nodejepa.diagnostics import RowArray
from nodejepa.errors import CheckpointError, ConfigError, DataError, GraphError
from nodejepa.files import described
from nodejepa.graph import Graph
from nodejepa.graph_checks import Features
from nodejepa.machine import Room, TooLarge, gigabytes, in_words, progress_bar, timed
from nodejepa.methods import make_method, refuse_supervised
from nodejepa.methods.estimator import Estimator
from nodejepa.nn.inputs import pick_device
from nodejepa.nn.sparse import to_dense
from nodejepa.tables import FeatureSchema, LoadedGraph, ReadingOptions, StoredGraph, is_store, read_graph
from nodejepa.tables.embeddings import check_ending, id_column, stream_embeddings
from nodejepa.tables.options import (
    REMEMBERED,
    ReadReport,
    are_partners,
    sides_of,
    structure_alone,
)
from nodejepa.tables.schema import structural_names
from nodejepa.tables.store import stored_labels
from nodejepa.tables.table import near_path
from nodejepa.workflow.plan import PREPARE, Plan, Workload, make_plan
from nodejepa.workflow.use import Choice, Material, choose

SCHEMA = "schema.json"
_FORMAT = "nodejepa run schema"
_VERSION = 1
_ROWS = 1 << 16  # of a group of rows in a parquet file


@dataclass(frozen=True)
class RunSchema(Exact):
    """The feature schema of a run and how its edges were read; column names as they were asked for."""

    features: FeatureSchema
    directed: bool = False
    weighted: bool = False
    source: str | None = None
    target: str | None = None
    weight: str | Literal[False] | None = None  # False: no weights, whatever columns there are
    bipartite: bool | None = False  # runs from before it could be set took all ids for those of one kind
    id_column: str | None = None

    @classmethod
    def of(
        cls,
        features: FeatureSchema,
        graph: Graph | StoredGraph,
        asked: Mapping[str, Any],
        report: ReadReport,
    ) -> Self:
        """That of a graph which was read with the options ``asked``.

        Directed edges keep ends that were guessed by the order of columns: in a file with another order they
        would point the other way. Ends with names such as source and target are found in any order.
        """
        ends = {end: asked.get(end) or report.edge_columns.get(end) for end in ("source", "target")}
        guessed = graph.directed and not are_partners(str(ends["source"]), str(ends["target"]))
        return cls(features, graph.directed, graph.is_weighted, **{**asked, **(ends if guessed else {})})

    def completed(self, reading: ReadingOptions, *, with_nodes: bool) -> ReadingOptions:
        """The options with the run's columns where they name none, and its direction of edges."""
        names = REMEMBERED if with_nodes else REMEMBERED[:-1]
        known = {name: getattr(self, name) for name in names if getattr(reading, name) is None}
        return replace(reading, directed=self.directed, **known)

    def save(self, run: Path) -> None:
        """Write ``schema.json`` into the run folder."""
        content = {name: getattr(self, name) for name in ("directed", "weighted", *REMEMBERED)}
        content["features"] = self.features.to_dict()
        write_document(run / SCHEMA, _FORMAT, _VERSION, content)

    def require_same(self, run: Path) -> None:
        """Refuse to go on with a run whose graph was read in another way."""
        if (run / SCHEMA).exists() and RunSchema.load(run) != self:
            raise CheckpointError(
                "the run in the folder is of another graph, or of one that was read in another way",
                where=str(run),
                fix="Resume with the same files and options, or choose another folder.",
            )

    @classmethod
    def load(cls, run: Path) -> Self:
        """Read it back; a changed or damaged one is refused."""
        path = run / SCHEMA
        if not run.is_dir():
            raise CheckpointError(
                "there is no such run folder", where=str(run), fix=f"{near_path(run)}Check the path."
            )
        if not path.exists():
            raise CheckpointError(
                "the run has no schema.json, so nobody knows how to make features of your columns",
                where=str(run),
                fix="Runs of `nodejepa embed-graph` have one; for a run of `nodejepa pretrain` name its data "
                "set: nodejepa embed RUN DATASET.",
            )
        content = read_document(path, dict[str, Any], _FORMAT, (_VERSION,), _damaged)
        try:
            features = FeatureSchema.from_dict(content.pop("features", None))
            return replace(of_type(cls, {"features": {}, **content}), features=features)
        except (DataError, ValueError) as error:
            raise _damaged(path, str(error)) from None

    def summary(self) -> dict[str, Any]:
        """What the features are made of, for the manifest."""
        return {
            "width": self.features.width,
            "columns": [
                {"name": c.name, "kind": c.kind, "width": c.width, "treatment": c.treatment}
                for c in self.features.columns
            ],
            "matrix_width": self.features.matrix_width,
            "structural": self.features.structural,
            "described_by": list(self.features.described_by) if self.features.structural else [],
        }


def _damaged(path: Path, reason: str) -> CheckpointError:
    return CheckpointError(
        f"the schema of the run is damaged: {reason}",
        where=str(path),
        fix="Restore it from a copy, or train again.",
    )


@dataclass(frozen=True, eq=False)
class UserGraph:
    """A graph in memory or on disk, how it was read, and its labels (-1: unknown), which only judge."""

    graph: Graph | StoredGraph
    schema: RunSchema | None  # none of a graph that was made in Python, or has a name
    report: ReadReport
    labels: npt.NDArray[np.integer[Any]] | None = None
    class_names: tuple[str, ...] = ()
    choice: Choice | None = None  # what features are made of; none of a graph on disk, which has its own
    material: Material | None = None  # and what else they could be made of

    @classmethod
    def of_files(cls, loaded: LoadedGraph, reading: ReadingOptions) -> Self:
        """What was read from files into memory."""
        graph, asked = loaded.graph, {name: getattr(reading, name) for name in REMEMBERED}
        schema = RunSchema.of(loaded.schema, graph, asked, loaded.report)
        return cls(graph, schema, loaded.report, loaded.labels, loaded.class_names or ())

    @classmethod
    def of_graph(
        cls,
        graph: Graph,
        labels: npt.NDArray[np.integer[Any]] | None = None,
        class_names: Sequence[str] | None = None,
    ) -> Self:
        """A graph in memory, with its features as they are."""
        if labels is not None and class_names is None:
            class_names = [str(i) for i in range(int(labels.max(initial=-1)) + 1)]
        return cls(graph, None, ReadReport(), labels, tuple(class_names or ()))

    @classmethod
    def of_store(cls, graph: StoredGraph) -> Self:
        """What `nodejepa prepare` has left on disk."""
        facts, labels = graph.manifest, stored_labels(graph)
        features, report = FeatureSchema.from_dict(dict(facts.schema)), ReadReport(**facts.report)
        schema = RunSchema.of(features, graph, facts.reading, report)
        known = (None, ()) if labels is None else (labels.codes, labels.names)
        return cls(graph, schema, report, *known)

    @property
    def name(self) -> str:
        """The store's folder, or the file of edges."""
        return self.graph.folder.name if isinstance(self.graph, StoredGraph) else self.report.edge_file

    @cached_property
    def _ids(self) -> pa.Array:
        assert isinstance(self.graph, Graph)
        return id_column(self.graph, self.report.edge_file)

    def ids(self, low: int, high: int) -> pa.Array:
        """The user's own ids of nodes ``low`` to ``high - 1``; positions where there are none."""
        return self.graph.ids(low, high) if isinstance(self.graph, StoredGraph) else self._ids[low:high]

    def ids_of(self, nodes: npt.NDArray[np.int64]) -> list[str]:
        """Ids of some nodes, ascending, as text."""
        found: list[str] = []
        for low, high in _spans(self.graph.num_nodes):
            first, last = np.searchsorted(nodes, (low, high))
            if first < last:
                found += map(str, self.ids(low, high).take(pa.array(nodes[first:last] - low)).to_pylist())
        return found

    def write_embeddings(self, out: Path, z: Features | RowArray) -> None:
        """One row per node: id, sides of a bipartite graph, label, and the embedding."""
        stream_embeddings(out, z.shape, self._blocks(z, check_ending(out) == ".parquet"))

    def _blocks(
        self, z: Features | RowArray, with_ids: bool
    ) -> Iterator[tuple[dict[str, Any], npt.NDArray[np.float32]]]:
        spans, apart = [*_spans(self.graph.num_nodes)], with_ids and self.report.kept_apart
        whole = apart and all(
            isinstance(sides_of(self.ids(*span).to_pylist(), self.report)["side_id"][0], int)
            for span in spans
        )
        names = pa.array(self.class_names, pa.string())
        for span in spans:
            ids = self.ids(*span) if with_ids else None
            columns: dict[str, Any] = {"id": ids}
            if apart and ids is not None:
                sides = sides_of(ids.to_pylist(), self.report, whole=whole)
                columns |= {name: pa.array(values) for name, values in sides.items()}
            if self.labels is not None:
                codes = self.labels[slice(*span)]
                columns["label"] = names.take(pa.array(codes, mask=codes < 0))
            rows = z[slice(*span)]
            yield columns, rows if isinstance(rows, np.ndarray) else to_dense(rows)

    def neighbour_counts(self, nodes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """How many neighbours some nodes have."""
        if isinstance(self.graph, Graph):
            return np.asarray(np.diff(self.graph.adjacency.indptr)[nodes], dtype=np.int64)
        counts: npt.NDArray[np.int64] = self.graph.row_lengths[nodes]
        return counts


def _spans(nodes: int) -> Iterator[tuple[int, int]]:
    return ((low, min(low + _ROWS, nodes)) for low in range(0, nodes, _ROWS))


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

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        graph = self.data.graph
        return {
            "inputs": self.inputs,
            "read": self.data.report.to_dict(),
            "graph": {
                "nodes": graph.num_nodes,
                "edges": self._edges,
                "directed": graph.directed,
                "weighted": graph.is_weighted,
                "feature_columns": graph.num_features,
            },
            "plan": self.plan.to_dict(),
            "warnings": self.warnings(),
        }

    @property
    def _edges(self) -> int:
        graph = self.data.graph
        return graph.num_edges // (1 if graph.directed else 2)

    def facts(self) -> dict[str, str]:
        """Names and values for people."""
        graph, plan, read = self.data.graph, self.plan, self.data.report
        kind = f"{'directed' if graph.directed else 'undirected'}{', weighted' if graph.is_weighted else ''}"
        facts = {"nodes": f"{graph.num_nodes:,}", "edges": f"{self._edges:,}, {kind}"}
        if read.edge_rows:
            repeated, loops = (
                f"{read.duplicate_rows:,} repeated",
                f"{read.self_loop_rows:,} from a node to itself",
            )
            facts["rows of edges"] = f"{read.edge_rows:,}: {repeated}, {loops}"
        mean = graph.num_edges / graph.num_nodes
        facts["neighbours"] = f"{mean:.1f} on average; {read.isolated_nodes:,} nodes have none"
        work = Workload.of(graph)
        filled = 100 * work.feature_entries / max(work.nodes * work.columns, 1)
        form = "dense" if work.dense else "sparse"
        facts["features"] = f"{work.columns:,} columns, {filled:.3g} % filled ({form})"
        if isinstance(graph, StoredGraph):
            facts["labels"] = f"{len(self.data.class_names):,} classes" if self.data.class_names else "none"
            facts["disk"] = gigabytes(sum(file["bytes"] for file in graph.manifest.files.values()))
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
        graph, said = self.data.graph, list(self.data.report.warnings)
        if graph.num_nodes < 2:
            said.append("The graph has one node: there is nothing to learn from it.")
        elif not graph.num_edges:
            said.append("The graph has no edges: embeddings can only repeat what the features say.")
        elif self.data.report.isolated_nodes > graph.num_nodes / 2:
            said.append("Most nodes have no edge: their embeddings only repeat what their features say.")
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
        if not graph.num_features:
            raise GraphError(
                "the nodes have no features",
                where=report.node_file or report.edge_file,
                fix="Give a node table with columns to use, or allow structural features.",
            )
        self.plan.require_fit()


def inspect_graph(
    edges: Any,
    nodes: Any = None,
    reading: ReadingOptions | None = None,
    *,
    estimator: Estimator,
    memory_limit: float | None = None,
    seconds: dict[str, float] | None = None,
    score: bool = True,
    use: str | None = None,
) -> Inspection:
    """Read a graph and say what training ``estimator`` on it will take; nothing is trained.

    Args:
        edges: as in :func:`nodejepa.read_graph`, and so are ``nodes`` and ``reading``; or a graph store,
            which is opened and stays on disk.
        estimator: whose settings the estimate is for.
        memory_limit: most memory to use, in GB; by default the free memory.
        seconds: filled with those of each phase.
        score: whether the estimate counts scoring, where there are labels, and labels may choose.
        use: what features are made of, ``"columns"``, ``"structure"``, ``"both"`` or ``"auto"``, see
            :func:`nodejepa.choose_features`; if not given, of the columns where there are some.
    """
    seconds, reading = {} if seconds is None else seconds, reading or ReadingOptions()
    asked = reading.structural
    if asked is not None and use in (("columns",) if asked else ("structure", "both")):
        raise ConfigError(
            f'structural="{",".join(asked) or "none"}" and use="{use}" contradict each other',
            where="use",
            fix="Leave out one of them.",
        )
    with timed(seconds, "reading"):
        if is_store(edges):
            if nodes is not None or reading != ReadingOptions() or use is not None:
                raise ConfigError(
                    "a graph store has its nodes and was read with its own options",
                    where=str(edges),
                    fix="Name the store alone, or prepare it again with other options.",
                )
            data = UserGraph.of_store(StoredGraph(edges))
        else:
            data = _read_files(edges, nodes, reading, memory_limit)
            data = _with_features(data, reading, use, memory_limit, score=score)
    graph, classes = data.graph, len(data.class_names) if score else 0
    with timed(seconds, "checking"), progress_bar("Checking the graph"):
        plan = make_plan(estimator, graph, memory_limit, classes=classes)
    with timed(seconds, "hashing"):
        if isinstance(graph, StoredGraph):
            inputs = {"store": {"path": str(graph.folder), "content_hash": graph.content_hash}}
        else:
            several = nodes if isinstance(nodes, list | tuple) else [nodes]
            names = ("edges", "nodes", *(f"nodes {i}" for i in range(2, len(several) + 1)))
            inputs = {
                name: {"path": str(file[0]), **described(file[0])}
                for name, given in zip(names, [edges, *several], strict=False)
                if (file := input_files(given))
            }
    return Inspection(data, plan, inputs)


def input_files(*given: Any) -> list[Path]:
    """Those of the given sources that are files; the others are tables in memory."""
    each = [one for source in given for one in (source if isinstance(source, list | tuple) else [source])]
    return [Path(source) for source in each if isinstance(source, str | os.PathLike)]


def _read_files(edges: Any, nodes: Any, reading: ReadingOptions, memory_limit: float | None) -> UserGraph:
    """The graph in memory, with the columns of its node table alone."""
    try:
        loaded = read_graph(edges, nodes, replace(reading, structural=()), memory_limit=memory_limit)
    except TooLarge as error:
        if not input_files(edges):
            raise
        raise TooLarge(error.what, where=error.where, fix=f"Try this: {PREPARE}. {error.fix}") from None
    return UserGraph.of_files(loaded, reading)


def _with_features(
    data: UserGraph, reading: ReadingOptions, use: str | None, memory_limit: float | None, *, score: bool
) -> UserGraph:
    """The graph with the features to learn from."""
    graph, report = data.graph, data.report
    assert isinstance(graph, Graph)
    assert data.schema is not None
    own = data.schema.features
    names = structural_names(reading.structural, own, report, graph.num_nodes)
    material = Material(graph, own, names or structure_alone(graph.num_nodes), Room.of(memory_limit))
    if use is None or (use == "auto" and (reading.structural is not None or not own.width)):
        taken = "columns" if not names else "both" if own.width else "structure"
        choice = Choice(use, taken, "request" if own.width else "nothing else")
    else:
        choice = choose(material, use, data.labels if score else None)
        if choice.words:
            report.note(choice.words)
    chosen, features = material.made_of(choice.taken, report)
    schema = replace(data.schema, features=features)
    return replace(data, graph=chosen, schema=schema, choice=choice, material=material)
