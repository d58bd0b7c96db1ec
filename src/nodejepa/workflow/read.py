"""A user's graph, read into memory or left on disk, and how it was read: the same questions to both."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nodejepa.diagnostics import RowArray
from nodejepa.errors import CheckpointError, DataError
from nodejepa.graph import Graph
from nodejepa.graph_checks import Features
from nodejepa.memory import gigabytes
from nodejepa.nn.sparse import to_dense
from nodejepa.tables import FeatureSchema, LoadedGraph, ReadingOptions, StoredGraph
from nodejepa.tables.embeddings import check_ending, id_column, stream_embeddings
from nodejepa.tables.inputs import near_path
from nodejepa.tables.names import sides_of
from nodejepa.tables.options import REMEMBERED, ReadReport
from nodejepa.tables.store import stored_labels
from nodejepa.validation import Exact, of_type, read_document, write_document

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
    bipartite: bool | None = False  # runs from before it could be told took all ids for those of one kind
    id_column: str | None = None

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
    schema: RunSchema
    report: ReadReport
    labels: npt.NDArray[np.integer[Any]] | None = None
    class_names: tuple[str, ...] = ()

    @classmethod
    def of_files(cls, loaded: LoadedGraph, reading: ReadingOptions) -> Self:
        """What was read from files into memory."""
        graph, asked = loaded.graph, (getattr(reading, name) for name in REMEMBERED)
        schema = RunSchema(loaded.schema, graph.directed, graph.is_weighted, *asked)
        return cls(graph, schema, loaded.report, loaded.labels, loaded.class_names or ())

    @classmethod
    def of_store(cls, graph: StoredGraph) -> Self:
        """What `nodejepa prepare` has left on disk."""
        facts, labels = graph.manifest, stored_labels(graph)
        asked: Any = facts.reading
        features = FeatureSchema.from_dict(dict(facts.schema))
        schema = RunSchema(features, graph.directed, graph.is_weighted, **asked)
        known = (None, ()) if labels is None else (labels.codes, labels.names)
        return cls(graph, schema, ReadReport(**facts.report), *known)

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

    @property
    def sides(self) -> dict[str, list[Any]]:
        """Where two kinds of nodes were kept apart: ``side`` and ``side_id`` of each; else nothing."""
        ids = self.ids(0, self.graph.num_nodes).to_pylist() if self.report.kept_apart else []
        return sides_of(ids, self.report) if ids else {}

    def ids_of(self, nodes: npt.NDArray[np.int64]) -> list[str]:
        """Ids of some nodes, ascending, as text."""
        found: list[str] = []
        for low, high in _spans(self.graph.num_nodes):
            first, last = np.searchsorted(nodes, (low, high))
            if first < last:
                found += map(str, self.ids(low, high).take(pa.array(nodes[first:last] - low)).to_pylist())
        return found

    def write_embeddings(
        self,
        out: Path,
        z: Features | RowArray,
        more: Mapping[str, npt.NDArray[Any]] = MappingProxyType({}),
    ) -> None:
        """One row per node: id, sides of a bipartite graph, label, further columns, and the embedding."""
        stream_embeddings(out, z.shape, self._blocks(z, more, check_ending(out) == ".parquet"))

    def _blocks(
        self, z: Features | RowArray, more: Mapping[str, npt.NDArray[Any]], with_ids: bool
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
            columns |= {name: pa.array(values[slice(*span)]) for name, values in more.items()}
            rows = z[slice(*span)]
            yield columns, rows if isinstance(rows, np.ndarray) else to_dense(rows)

    def neighbour_counts(self, nodes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """How many neighbours some nodes have."""
        if isinstance(self.graph, Graph):
            return np.asarray(np.diff(self.graph.adjacency.indptr)[nodes], dtype=np.int64)
        counts: npt.NDArray[np.int64] = self.graph.row_lengths[nodes]
        return counts


def store_facts(graph: StoredGraph) -> dict[str, str]:
    """What is in a store: names and values for people."""
    facts = graph.manifest
    entries = facts.feature_entries
    form = "dense" if entries is None else f"sparse, {entries:,} entries"
    kind = "directed" if facts.directed else "undirected"
    return {
        "nodes": f"{facts.nodes:,}",
        "stored edges": f"{facts.entries:,}, {kind}{', weighted' if facts.weighted else ''}",
        "features": f"{facts.columns:,} columns ({form})",
        "labels": "none" if facts.classes is None else f"{len(facts.classes):,} classes",
        "disk": gigabytes(sum(file["bytes"] for file in facts.files.values())),
    }


def _spans(nodes: int) -> Iterator[tuple[int, int]]:
    return ((low, min(low + _ROWS, nodes)) for low in range(0, nodes, _ROWS))
