"""Embeddings of a graph on disk, written row by row under the users' own ids."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nodejepa.diagnostics import Diagnostics, diagnose
from nodejepa.files import refusals
from nodejepa.io import FeatureSchema
from nodejepa.io.embeddings import check_ending, stream_embeddings
from nodejepa.io.id_spaces import sides_of
from nodejepa.io.read_report import ReadReport
from nodejepa.locks import output_owned
from nodejepa.memory import gigabytes
from nodejepa.methods.estimator import Estimator
from nodejepa.nn.stored import TallRows
from nodejepa.owngraph.outputs import drop_manifest, refuse_losing
from nodejepa.owngraph.run_schema import RunSchema
from nodejepa.store import StoredGraph
from nodejepa.store.labels import stored_labels

_SAMPLE, _STRETCHES = 16_384, 64  # rows that the diagnosis looks at, and from how many places
_ROWS = 1 << 16  # of a group of rows in a parquet file


def embed_store(
    estimator: Estimator, graph: StoredGraph, out: Path, *, force: bool = False
) -> tuple[tuple[int, int], Diagnostics]:
    """Write the embeddings of a stored graph; their shape and how sound a sample of them is.

    Args:
        estimator: fitted.
        graph: with as many feature columns as it was fitted on.
        out: ``.parquet`` or ``.npy``; large layers are put into files beside it while they are needed.
        force: replace what is there.
    """
    check_ending(out)  # before the work
    refuse_losing(out, force=force)
    out.parent.mkdir(parents=True, exist_ok=True)
    with output_owned(out), refusals(out):
        refuse_losing(out, force=force)
        z = estimator.transform_stored(graph, out.parent)
        drop_manifest(out)
        stream_embeddings(out, z.shape, blocks(graph, z))
    return z.shape, diagnose(sample(z))


def save_schema(graph: StoredGraph, run: Path) -> None:
    """How the store was read, beside a model that learned from it: the model may see other files later."""
    schema_of(graph).save(run)


def schema_of(graph: StoredGraph) -> RunSchema:
    """How the store was read."""
    features = FeatureSchema.from_dict(dict(graph.manifest.schema))
    asked: Any = graph.manifest.reading
    return RunSchema(features, graph.directed, graph.is_weighted, **asked)


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


def blocks(graph: StoredGraph, z: TallRows) -> Iterator[tuple[dict[str, Any], npt.NDArray[np.float32]]]:
    """Rows of a table of embeddings: ids, sides and labels, as those of a graph in memory, and z."""
    report, labels = ReadReport(**graph.manifest.report), stored_labels(graph)
    spans = [(low, min(low + _ROWS, graph.num_nodes)) for low in range(0, graph.num_nodes, _ROWS)]
    whole = report.kept_apart and all(
        isinstance(sides_of(graph.ids(*span).to_pylist(), report)["side_id"][0], int) for span in spans
    )
    for span in spans:
        ids = graph.ids(*span)
        columns: dict[str, Any] = {"id": ids}
        if report.kept_apart:
            sides = sides_of(ids.to_pylist(), report, whole=whole)
            columns |= {name: pa.array(values) for name, values in sides.items()}
        if labels is not None:
            columns["label"] = labels.words(*span)
        yield columns, z.rows(*span)


def sample(z: TallRows) -> npt.NDArray[np.float32]:
    """Some rows from many places, enough to say whether all are sound."""
    rows, size = z.shape[0], _SAMPLE // _STRETCHES
    if rows <= _SAMPLE:
        return z.rows(0, rows)
    starts = np.linspace(0, rows - size, _STRETCHES).astype(int)
    return np.concatenate([z.rows(start, start + size) for start in starts.tolist()])
