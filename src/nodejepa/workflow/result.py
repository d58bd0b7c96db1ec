"""What was made of a user's graph: in memory for Python, as a manifest for programs."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from nodejepa.config import to_dict
from nodejepa.diagnostics import Diagnostics, RowArray
from nodejepa.evaluation.clusters import Clusters, agreement
from nodejepa.graph_checks import Features
from nodejepa.methods.estimator import Estimator
from nodejepa.provenance import versions
from nodejepa.tables.embeddings import MANIFEST_FORMAT
from nodejepa.workflow.inspect import Inspection
from nodejepa.workflow.outputs import OutputPaths, described
from nodejepa.workflow.scores import Scores

_VERSION = 1


@dataclass(frozen=True, eq=False)
class EmbeddedGraph:
    """What :func:`nodejepa.workflow.embed_graph` made and where it is.

    ``embeddings`` is an array, or read by rows (``z[low:high]``) where the graph is on disk; ``manifest`` is
    the content of the JSON file.
    """

    embeddings: Features | RowArray
    inspection: Inspection
    estimator: Estimator
    preset: str
    paths: OutputPaths
    diagnostics: Diagnostics
    clusters: Clusters | None = None
    scores: Scores | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    manifest: dict[str, Any] = field(default_factory=dict)

    @property
    def labels(self) -> npt.NDArray[np.integer[Any]] | None:
        """The class of every node, -1 where unknown."""
        return self.inspection.data.labels

    @property
    def places(self) -> OutputPaths:
        """The older name of ``paths``."""
        return self.paths

    def make_manifest(self) -> dict[str, Any]:
        """Plain values, ready for JSON; all files it names must be written."""
        estimator, paths, groups = self.estimator, self.paths, self.clusters
        agreed = {} if groups is None or self.labels is None else agreement(groups, self.labels)
        names = ("embeddings", "run")
        written: dict[str, Any] = {name: self.manifest[name] for name in names if name in self.manifest}
        if not written:  # else they were hashed before, and have not changed
            nodes, dimensions = self.embeddings.shape
            written = {
                "embeddings": described(paths.embeddings) | {"nodes": nodes, "dimensions": dimensions},
                "run": {"folder": str(paths.run), "model": described(paths.run / "model.safetensors")},
            }
        return {
            "format": MANIFEST_FORMAT,
            "version": _VERSION,
            **written,
            "report": described(paths.page) if paths.page.exists() else None,
            **self.inspection.to_dict(),
            "features": self.inspection.data.schema.summary(),
            "method": estimator.name,
            "preset": self.preset,
            "config": to_dict(estimator.config),
            "dim": estimator.max_columns,
            "seed": estimator.seed,
            "epochs": sum("loss" in record for record in estimator.history_),
            "found": estimator.describe() or None,
            "threads": torch.get_num_threads(),
            "versions": versions(),
            "seconds": dict(self.seconds),
            "diagnostics": self.diagnostics.to_dict(),
            "scores": None if self.scores is None else self.scores.to_dict(),
            "clusters": None if groups is None else groups.to_dict() | agreed,
            "warnings": [*self.inspection.warnings(), *self.warnings],
        }
