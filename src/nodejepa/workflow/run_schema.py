"""How the graph of a run was read, training beside it, and the manifest: what was chosen and measured."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import torch

from nodejepa.config import to_dict
from nodejepa.errors import CheckpointError, DataError
from nodejepa.graph import Graph
from nodejepa.methods.estimator import Estimator
from nodejepa.progress import timed
from nodejepa.provenance import versions
from nodejepa.tables import FeatureSchema, LoadedGraph, ReadingOptions
from nodejepa.tables.embeddings import MANIFEST_FORMAT
from nodejepa.tables.inputs import near_path
from nodejepa.tables.options import REMEMBERED
from nodejepa.tables.store import StoredGraph
from nodejepa.training.logger import Logging
from nodejepa.validation import Exact, of_type, read_document, write_document
from nodejepa.workflow.places import Places, sha256_of
from nodejepa.workflow.scores import Found

_FORMAT = "nodejepa run schema"
_VERSION = 1
FILE = "schema.json"


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

    @classmethod
    def of(cls, loaded: LoadedGraph, reading: ReadingOptions) -> Self:
        """How this graph was read."""
        graph, asked = loaded.graph, (getattr(reading, name) for name in REMEMBERED)
        return cls(loaded.schema, graph.directed, graph.is_weighted, *asked)

    def completed(self, reading: ReadingOptions, *, with_nodes: bool) -> ReadingOptions:
        """The options with the run's columns where they name none, and its direction of edges."""
        names = REMEMBERED if with_nodes else REMEMBERED[:-1]
        told = {name: getattr(self, name) for name in names if getattr(reading, name) is None}
        return replace(reading, directed=self.directed, **told)

    def save(self, run: Path) -> None:
        """Write ``schema.json`` into the run folder."""
        content = {name: getattr(self, name) for name in ("directed", "weighted", *REMEMBERED)}
        content["features"] = self.features.to_dict()
        write_document(run / FILE, _FORMAT, _VERSION, content)

    def require_same(self, run: Path) -> None:
        """Refuse to go on with a run whose graph was read in another way."""
        if (run / FILE).exists() and RunSchema.load(run) != self:
            raise CheckpointError(
                "the run in the folder is of another graph, or of one that was read in another way",
                where=str(run),
                fix="Resume with the same files and options, or choose another folder.",
            )

    @classmethod
    def load(cls, run: Path) -> Self:
        """Read it back; a changed or damaged one is refused."""
        path = run / FILE
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


def train_into(
    estimator: Estimator,
    graph: Graph | StoredGraph,
    schema: RunSchema,
    places: Places,
    seconds: dict[str, float],
    *,
    resume: bool,
    logging: Logging | None,
) -> None:
    """Train in the run folder, which says how the graph was read; the seconds are those of all processes."""
    with timed(seconds, "structure"):
        estimator.prepare(graph)
    if places.trained:
        schema.require_same(places.run)  # beside graph and settings, it is what makes two runs the same
    else:
        schema.save(places.run)  # before training: no model is ever without it
    logging = logging or Logging(description=f"Training {estimator.name}")
    with places.abandoned_if_refused():
        estimator.fit(graph, out=places.run, resume=resume, logging=logging)
    # of the whole training, also that of a process that was killed
    seconds["training"] = round(sum(record["seconds"] for record in estimator.history_), 3)


def _damaged(path: Path, reason: str) -> CheckpointError:
    return CheckpointError(
        f"the schema of the run is damaged: {reason}",
        where=str(path),
        fix="Restore it from a copy, or train again.",
    )


def make_manifest(
    found: Found,
    places: Places,
    schema: RunSchema,
    shape: tuple[int, ...],
    *,
    read: Mapping[str, Any],
    preset: str,
    seconds: Mapping[str, float],
    more: Mapping[str, Any],
) -> dict[str, Any]:
    """Plain values, ready for JSON; all files it names must be written."""
    estimator, scores = found.estimator, found.scores
    return {
        "format": MANIFEST_FORMAT,
        "version": _VERSION,
        "embeddings": described(places.embeddings) | {"nodes": shape[0], "dimensions": shape[1]},
        "report": described(places.page) if places.page.exists() else None,
        "run": {"folder": str(places.run), "model": described(places.run / "model.safetensors")},
        **read,
        "features": schema.summary(),
        "method": estimator.name,
        "preset": preset,
        "config": to_dict(estimator.config),
        "dim": estimator.max_columns,
        "seed": estimator.seed,
        "epochs": sum("loss" in record for record in estimator.history_),
        "found": estimator.describe() or None,
        "threads": torch.get_num_threads(),
        "versions": versions(),
        "seconds": dict(seconds),
        "diagnostics": found.diagnostics.to_dict(),
        "scores": None if scores is None else scores.to_dict(),
        **more,
    }


def described(path: Path) -> dict[str, Any]:
    """Name, size and digest of a file that was written."""
    return {"file": path.name, "bytes": path.stat().st_size, "sha256": sha256_of(path)}
