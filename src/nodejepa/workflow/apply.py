"""A trained encoder on a graph it has not seen: new nodes, changed edges, another graph, a graph on disk."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nodejepa.diagnostics import Diagnostics, RowArray, diagnose
from nodejepa.errors import Advice, ConfigError, GraphError
from nodejepa.files import output_owned, refusals
from nodejepa.memory import gigabytes
from nodejepa.methods import load_method
from nodejepa.progress import progress_bar
from nodejepa.tables import (
    FeatureSchema,
    LoadedGraph,
    ReadingOptions,
    StoredGraph,
    read_graph,
    write_embeddings,
)
from nodejepa.tables.embeddings import check_ending, stream_embeddings
from nodejepa.tables.inputs import refuse_replacing
from nodejepa.tables.names import sides_of
from nodejepa.tables.options import ReadReport
from nodejepa.tables.store import stored_labels
from nodejepa.workflow.places import drop_manifest, input_files, refuse_losing
from nodejepa.workflow.run_schema import RunSchema

_SAMPLE, _STRETCHES = 16_384, 64  # rows that the diagnosis looks at, and from how many places
_ROWS = 1 << 16  # of a group of rows in a parquet file


@dataclass(frozen=True, eq=False)
class AppliedRun:
    """Embeddings of the new graph, how it was read, and whether they are sound."""

    embeddings: npt.NDArray[np.float32]
    loaded: LoadedGraph
    diagnostics: Diagnostics
    notes: list[str]


def apply_run(
    run: str | os.PathLike[str],
    edges: Any,
    nodes: Any = None,
    reading: ReadingOptions | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    device: str = "auto",
    force: bool = False,
    memory_limit: float | None = None,
    **options: Any,
) -> AppliedRun:
    """Embed a graph with the encoder of a run, its features made exactly as those the run was trained on.

    Args:
        run: a folder that :func:`embed_graph` wrote.
        edges: as in :func:`nodejepa.read_graph`.
        nodes: likewise; must have the columns that the features were made of, in any order.
        reading: how, as in :func:`nodejepa.read_graph`; the edges' columns and the column of ids are those of
            the run if not told, and what the features were made of is not asked again.
        out: where to write the embeddings, ``.parquet`` or ``.npy``; none: nowhere.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        force: replace ``out`` if it exists; a manifest and a report that told of it are taken away.
        memory_limit: gigabytes that reading may take; what is available if not given.
        options: single options of ``reading`` by their names.
    """
    folder = Path(run)
    if out is not None:
        check_ending(Path(out))  # before the work
        refuse_replacing(Path(out), *input_files(edges, nodes))
        refuse_losing(Path(out), force=force)
    schema = RunSchema.load(folder)
    estimator = load_method(folder, device=device)
    if schema.features.width != estimator.in_dim_:
        raise ConfigError(
            f"the schema makes {schema.features.width} feature columns, the model reads {estimator.in_dim_}",
            where=str(folder),
            fix="Schema and model are of different runs: restore both from a copy, or train again.",
        )
    asked = schema.completed((reading or ReadingOptions()).changed(options), with_nodes=nodes is not None)
    try:
        loaded = read_graph(edges, nodes, asked, schema=schema.features, memory_limit=memory_limit)
    except GraphError as error:
        fix = Advice(error.fix, " " if error.fix else "", _expected(schema))
        raise GraphError(error.what, where=error.where, fix=fix) from None
    notes = list(loaded.notes)
    if loaded.graph.is_weighted != schema.weighted:
        notes.append(
            f"the encoder was trained on {'weighted' if schema.weighted else 'unweighted'} edges, these are "
            f"{'weighted' if loaded.graph.is_weighted else 'unweighted'}."
        )
    with progress_bar("Embedding"):
        embeddings = estimator.transform(loaded.graph)
    if out is not None:
        with output_owned(Path(out)), progress_bar("Writing embeddings"):
            refuse_losing(Path(out), force=force)  # again: the work took its time
            drop_manifest(Path(out))
            write_embeddings(Path(out), loaded.graph, embeddings, loaded.sides)
    return AppliedRun(embeddings, loaded, diagnose(embeddings), notes)


def _expected(schema: RunSchema) -> str:
    """What the run was trained on, for whoever has to mend a table."""
    columns = [f"{column.name!r} ({column.kind})" for column in schema.features.columns]
    if not columns:
        return ""
    more = ", ..." if len(columns) > 20 else ""
    return f"The run was trained on {', '.join(columns[:20])}{more}."


def embed_store(
    run: Path, graph: StoredGraph, out: Path, *, force: bool = False, memory_limit: float | None = None
) -> tuple[tuple[int, int], Diagnostics]:
    """Write the embeddings of a stored graph by the encoder of a run; their shape and how sound they are.

    Large layers are put into files beside ``out`` while they are needed.
    """
    check_ending(out)  # before the work
    refuse_losing(out, force=force)
    estimator, expected = load_method(run, device="cpu"), RunSchema.load(run).features
    estimator.memory_limit = memory_limit
    difference = expected.difference(schema_of(graph).features)
    if difference:
        raise GraphError(
            f"the features of the store are not those that the model was trained on: {difference}",
            where=str(graph.folder),
            fix="Give `nodejepa embed` the files that the store was made of: the model applies its own "
            "scaling to them. Or train on the store.",
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    with output_owned(out), refusals(out):
        refuse_losing(out, force=force)
        z = estimator.transform(graph, scratch=out.parent)
        drop_manifest(out)
        stream_embeddings(out, z.shape, blocks(graph, z))
    return z.shape, diagnose(sample(z))


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


def blocks(
    graph: StoredGraph, z: RowArray, more: Mapping[str, npt.NDArray[Any]] = MappingProxyType({})
) -> Iterator[tuple[dict[str, Any], npt.NDArray[np.float32]]]:
    """Rows of a table of embeddings: ids, sides and labels, as those of a graph in memory, more, and z."""
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
        columns |= {name: pa.array(values[slice(*span)]) for name, values in more.items()}
        yield columns, z[slice(*span)]


def sample(z: RowArray) -> npt.NDArray[np.float32]:
    """Some rows from many places, enough to say whether all are sound."""
    rows, size = z.shape[0], _SAMPLE // _STRETCHES
    if rows <= _SAMPLE:
        return z[:rows]
    starts = np.linspace(0, rows - size, _STRETCHES).astype(int)
    return np.concatenate([z[start : start + size] for start in starts.tolist()])
