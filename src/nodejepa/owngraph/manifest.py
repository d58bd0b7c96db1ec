"""The manifest: what was read, dropped, guessed, chosen and measured on the way to the embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from nodejepa.config import to_dict
from nodejepa.diagnostics import Diagnostics
from nodejepa.evaluation.clusters import Clusters, agreement
from nodejepa.io.embeddings import MANIFEST_FORMAT
from nodejepa.methods.estimator import Estimator
from nodejepa.owngraph.inspect import Inspection
from nodejepa.owngraph.places import Places, sha256_of
from nodejepa.owngraph.run_schema import RunSchema
from nodejepa.owngraph.scores import Scores
from nodejepa.provenance import versions

VERSION = 1


def make_manifest(
    places: Places,
    inspection: Inspection,
    schema: RunSchema,
    estimator: Estimator,
    diagnostics: Diagnostics,
    scores: Scores | None,
    clusters: Clusters | None,
    *,
    preset: str,
    seconds: Mapping[str, float],
    warnings: Sequence[str],
) -> dict[str, Any]:
    """Plain values, ready for JSON; all files it names must be written."""
    return {
        "format": MANIFEST_FORMAT,
        "version": VERSION,
        "embeddings": described(places.embeddings)
        | {"nodes": diagnostics.nodes, "dimensions": diagnostics.dimensions},
        "report": described(places.page) if places.page.exists() else None,
        "run": {"folder": str(places.run), "model": described(places.run / "model.safetensors")},
        **inspection.to_dict(),
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
        "diagnostics": diagnostics.to_dict(),
        "scores": None if scores is None else scores.to_dict(),
        "clusters": None if clusters is None else clusters.to_dict() | _agreed(clusters, inspection),
        "warnings": [*inspection.warnings(), *warnings],
    }


def _agreed(clusters: Clusters, inspection: Inspection) -> dict[str, float]:
    """How far groups are classes, where there are labels."""
    labels = inspection.loaded.labels
    return {} if labels is None else agreement(clusters, labels)


def described(path: Path) -> dict[str, Any]:
    """Name, size and digest of a file that was written."""
    return {"file": path.name, "bytes": path.stat().st_size, "sha256": sha256_of(path)}
