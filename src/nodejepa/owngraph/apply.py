"""A trained encoder on a graph it has not seen: new nodes, changed edges, another graph altogether."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nodejepa.diagnostics import Diagnostics, diagnose
from nodejepa.errors import Advice, ConfigError, GraphError
from nodejepa.io import LoadedGraph, ReadingOptions, read_graph, write_embeddings
from nodejepa.io.embeddings import check_ending
from nodejepa.io.files_in import refuse_replacing
from nodejepa.locks import output_owned
from nodejepa.methods import load_method
from nodejepa.owngraph.outputs import drop_manifest, refuse_losing
from nodejepa.owngraph.places import input_files
from nodejepa.owngraph.run_schema import RunSchema
from nodejepa.progress import progress_bar


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
