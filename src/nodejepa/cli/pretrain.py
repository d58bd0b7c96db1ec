"""``nodejepa prepare`` and ``nodejepa pretrain``: from files to a graph on disk, from a graph to a model.

With ``--workers`` the command runs in several processes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from nodejepa.cli.options import (
    AsWorker,
    CheckpointEpochs,
    DataRoot,
    DatasetName,
    Device,
    MemoryLimit,
    MethodName,
    NodeFile,
    Preset,
    Seed,
    Settings,
    Workers,
    folder_path,
    joined,
    machine_option,
    reads_files,
    start_workers,
    training_option,
)
from nodejepa.cli.screen import in_options, say, stderr, stdout
from nodejepa.config import DEFAULT_METHOD

if TYPE_CHECKING:
    from nodejepa.tables import StoredGraph

PREPARE_EXAMPLES = (
    "Examples:\n\n"
    "nodejepa prepare --edges edges.parquet --nodes nodes.parquet --labels topic --out graph.store\n\n"
    "nodejepa prepare --edges edges.parquet --structural pagerank,degree,clustering --out graph.store\n\n"
    "nodejepa pretrain graph.store --method linear-jepa --out run\n\n"
    "nodejepa pretrain graph.store --method nodejepa --preset paper --set parts=100 --set parts_per_step=5 "
    "--set descriptors=pagerank,degree,clustering --out trained\n\n"
    "nodejepa embed run graph.store --out z.parquet\n\n"
    "nodejepa probe graph.store --run run\n\n"
    "nodejepa prepare --verify graph.store"
)
PRETRAIN_EXAMPLES = (
    "Examples:\n\n"
    "nodejepa pretrain digits --out runs/digits\n\n"
    "nodejepa pretrain photo --method patchjepa --preset paper --seed 42 --out runs/photo --resume\n\n"
    "nodejepa pretrain digits --method nodejepa --preset paper --set epochs=50 --out runs/short\n\n"
    "nodejepa pretrain physics --method nodejepa --preset paper --set parts=32 --set parts_per_step=8 "
    "--set micro_batches=2 --workers 2 --out runs/p"
)


@reads_files()
def prepare(
    edges: Annotated[
        Path | None, typer.Option(help="Edges, a row each: as in embed-graph.", metavar="FILE")
    ] = None,
    nodes: NodeFile = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the store: there when it is whole.")] = None,
    verify: Annotated[
        Path | None, typer.Option(help="Instead: read a store and compare its checksums.", metavar="STORE")
    ] = None,
    reading: Any = None,  # the options of reading, see reads_files
    force: Annotated[bool, typer.Option("--force", help="Replace a store that is there.")] = False,
    memory_limit: MemoryLimit = None,
) -> None:
    """Keep a graph that is larger than memory on disk."""
    if verify is not None:
        from nodejepa.tables import StoredGraph

        found = StoredGraph(verify)
        found.verify()
        _say(found, "every checksum matches")
        return
    if edges is None or out is None:
        raise typer.BadParameter("Give --edges and --out, or --verify a store.")
    from nodejepa.tables.prepare import prepare_store

    def announce(notes: Sequence[str]) -> None:
        for note in notes:
            say(f"- {in_options(note)}", to=stderr)

    made = prepare_store(
        edges, nodes, reading, out=out, force=force, announce=announce, memory_limit=memory_limit
    )
    _say(made, made.content_hash[:16])


def _say(graph: StoredGraph, more: str) -> None:
    sizes = f"{graph.num_nodes:,} nodes, {graph.num_edges:,} stored edges, {graph.num_features:,} features"
    classes = graph.manifest.classes
    labels = "" if classes is None else f", labels of {len(classes):,} classes"
    say(f"{graph.folder}: {sizes}{labels}; {more}")


def pretrain(
    context: typer.Context,
    dataset: DatasetName,
    out: Annotated[
        Path,
        typer.Option(
            help="Run folder: model, history and checkpoints go here.", parser=folder_path, metavar="PATH"
        ),
    ],
    method: MethodName = DEFAULT_METHOD,
    preset: Preset = "default",
    seed: Seed = 0,
    settings: Settings = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
    device: Device = "auto",
    checkpoint_epochs: CheckpointEpochs = 50,
    checkpoint_steps: Annotated[
        int | None, training_option(help="Steps between checkpoints, also inside of an epoch.", min=1)
    ] = None,
    memory_limit: MemoryLimit = None,
    data_root: DataRoot = None,
    workers: Workers = 1,
    ray: Annotated[
        bool, machine_option("--ray", help="Let Ray Train start the workers (extra: ray).")
    ] = False,
    as_worker: AsWorker = False,
) -> None:
    """Learn an encoder from a named graph, or from a graph store, without labels; --resume goes on."""
    from nodejepa.config import parse_assignments
    from nodejepa.data import load_dataset
    from nodejepa.diagnostics import diagnose
    from nodejepa.graph import Graph
    from nodejepa.methods import make_estimator, refuse_supervised
    from nodejepa.tables import StoredGraph
    from nodejepa.training.distributed import SINGLE
    from nodejepa.training.logger import Logging
    from nodejepa.training.run import Run
    from nodejepa.workflow.plan import make_plan
    from nodejepa.workflow.read import UserGraph

    refuse_supervised(method)
    stored = StoredGraph.is_at(dataset)
    estimator = make_estimator(
        method,
        preset=preset,
        dataset=None if stored else dataset,
        seed=seed,
        settings=parse_assignments(settings or []),
        device=device,
    )
    graph = StoredGraph(dataset) if stored else load_dataset(dataset, data_root).graph
    if workers > 1 or ray:
        estimator.check_processes(workers)
        Run(out).refuse_begun(resume=resume)
        if stored:
            here = 0 if ray else workers
            make_plan(estimator, graph, memory_limit, processes=workers, started=here).require_fit()
        estimator.prepare(graph)  # once: the workers find it on disk
        start_workers(context, out, workers, "ray", "resume", ray=ray)
        return
    processes = int(os.environ.get("WORLD_SIZE", "1")) if as_worker else 1
    make_plan(estimator, graph, memory_limit, processes=processes).require_fit()
    estimator.memory_limit = memory_limit
    logging = Logging(
        checkpoint_epochs=checkpoint_epochs,
        checkpoint_steps=checkpoint_steps,
        description=f"{method} on {dataset}",
    )
    if as_worker:
        with joined() as group:
            estimator.process_group = group
            estimator.fit(graph, out=out, resume=True, logging=logging)
        if not group.leads:
            return
        estimator.process_group = SINGLE  # the others are gone
    else:
        estimator.fit(graph, out=out, resume=resume, logging=logging)
    if isinstance(graph, StoredGraph):
        UserGraph.of_store(graph).schema.save(out)  # the model may see other files later
    history = estimator.history_
    table = Table(title=Text(f"{method} ({preset}) on {dataset}, seed {seed}"))
    for column in ("epochs", "seconds", "peak memory", "last loss"):
        table.add_column(column, justify="right")
    if history:
        table.add_row(
            str(len(history)),
            f"{sum(record['seconds'] for record in history):.1f}",
            f"{max(record['peak_memory_mb'] for record in history):,.0f} MB",
            f"{history[-1]['loss']:.4f}" if "loss" in history[-1] else "-",
        )
    stdout.print(table)
    if isinstance(graph, Graph):
        stdout.print(Text(f"Embeddings: {diagnose(estimator.transform(graph)).verdict}"))
    elif estimator.describe():
        say(estimator.describe())
    say(f"model    {out / 'model.safetensors'}")
    if history:
        say(f"history  {out / 'history.jsonl'}")
