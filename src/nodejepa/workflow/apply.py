"""A trained encoder on a graph it has not seen: new nodes, changed edges, another graph, a graph on disk."""

import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodejepa.diagnostics import Diagnostics, RowArray
from nodejepa.errors import ConfigError, GraphError
from nodejepa.files import refusals
from nodejepa.graph import Graph
from nodejepa.graph_checks import Features
from nodejepa.methods import Estimator, load_method
from nodejepa.tables import ReadingOptions, StoredGraph, is_store, read_graph
from nodejepa.training.distributed import SINGLE, ProcessGroup
from nodejepa.workflow.embed import OutputPaths, embedded, warn_of
from nodejepa.workflow.read import RunSchema, UserGraph, input_files

_NAMED = 20  # columns of a schema that a message names


@dataclass(frozen=True, eq=False)
class AppliedRun:
    """Embeddings of the new graph, how it was read, and whether they are sound.

    Those of a graph on disk are read by rows: ``z[low:high]``.
    """

    embeddings: Features | RowArray
    loaded: UserGraph
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
    announce: Callable[[UserGraph], None] | None = None,
    group: ProcessGroup = SINGLE,
    **options: Any,
) -> AppliedRun:
    """Embed a graph with the encoder of a run, its features made exactly as those the run was trained on.

    Args:
        run: a folder that :func:`embed_graph` wrote.
        edges: as in :func:`nodejepa.read_graph`, a graph store with the features of the run, or a
            :class:`Graph`, whose features are taken as they are.
        nodes: a table of nodes with the columns that the run was trained on, in any order.
        reading: how the tables are read, as in :func:`nodejepa.read_graph`. By default the columns of edges
            and ids are those of the run. Features are always encoded as in the run.
        out: where to write the embeddings, ``.parquet`` or ``.npy``. With None they are only returned.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        force: replace ``out`` if it exists; a manifest and a report that describe it are removed.
        memory_limit: most memory to use, in GB; by default the free memory.
        announce: called with the graph that was read before it is embedded, in place of its warnings.
        group: processes that embed a graph store together; the others call :func:`help_to_apply`.
        options: single options of ``reading`` by their names.
    """
    folder, paths = Path(run), None if out is None else OutputPaths.beside(out)
    asked = (reading or ReadingOptions()).changed(options)
    if (isinstance(edges, Graph) or is_store(edges)) and (nodes is not None or asked != ReadingOptions()):
        raise ConfigError(
            "a graph or a graph store has its nodes and was read with its own options",
            where="edges",
            fix="Name it alone, or prepare the store again with other options.",
        )
    inputs = [] if isinstance(edges, Graph) else input_files(edges, nodes)
    with nullcontext() if paths is None else paths.held(inputs, resume=None, force=force):
        if isinstance(edges, Graph):
            data, estimator = UserGraph.of_graph(edges), load_method(folder, device=device)
        else:
            schema, estimator = _loaded(folder, device, memory_limit, group)
            if is_store(edges):
                data = _opened(StoredGraph(edges), schema)
            else:
                data = _read(edges, nodes, asked, schema, memory_limit)
        if announce is not None:
            announce(data)
        else:
            warn_of(data.report.warnings)
        with refusals(folder if paths is None else paths.embeddings):
            z, diagnostics = embedded(estimator, data, None if paths is None else paths.embeddings.parent)
        if paths is not None:
            paths.replace(resume=None, force=force)
            data.write_embeddings(paths.embeddings, z)
    return AppliedRun(z, data, diagnostics, [*data.report.notes, *data.report.warnings])


def help_to_apply(
    run: Path, store: Path, group: ProcessGroup, *, scratch: Path, device: str, memory_limit: float | None
) -> None:
    """Do a share of :func:`apply_run`, which the first process of the group calls and writes."""
    schema, estimator = _loaded(run, device, memory_limit, group)
    scratch.mkdir(parents=True, exist_ok=True)
    estimator.transform(_opened(StoredGraph(store), schema).graph, scratch=scratch)


def _loaded(
    run: Path, device: str, memory_limit: float | None, group: ProcessGroup
) -> tuple[RunSchema, Estimator]:
    schema, estimator = RunSchema.load(run), load_method(run, device=device)
    estimator.memory_limit, estimator.process_group = memory_limit, group
    if schema.features.width != estimator.in_dim_:
        raise ConfigError(
            f"the schema makes {schema.features.width} feature columns, the model reads {estimator.in_dim_}",
            where=str(run),
            fix="Schema and model are of different runs: restore both from a copy, or train again.",
        )
    return schema, estimator


def _read(
    edges: Any, nodes: Any, asked: ReadingOptions, schema: RunSchema, memory_limit: float | None
) -> UserGraph:
    asked = schema.completed(asked, with_nodes=nodes is not None)
    try:
        loaded = read_graph(edges, nodes, asked, schema=schema.features, memory_limit=memory_limit)
    except GraphError as error:
        columns = [f"{column.name!r} ({column.kind})" for column in schema.features.columns]
        more = ", ..." if len(columns) > _NAMED else ""
        expected = f"The run was trained on {', '.join(columns[:_NAMED])}{more}." if columns else ""
        fix = " ".join(filter(None, (error.fix, expected)))
        raise GraphError(error.what, where=error.where, fix=fix) from None
    return UserGraph.of_files(loaded, asked)


def _opened(graph: StoredGraph, schema: RunSchema) -> UserGraph:
    data = UserGraph.of_store(graph)
    assert data.schema is not None
    difference = schema.features.difference(data.schema.features)
    if difference:
        raise GraphError(
            f"the features of the store are not those that the model was trained on: {difference}",
            where=str(graph.folder),
            fix="Give `nodejepa embed` the files that the store was made of: the model applies its own "
            "scaling to them. Or train on the store.",
        )
    return data
