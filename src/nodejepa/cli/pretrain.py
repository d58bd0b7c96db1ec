"""``nodejepa prepare`` and ``nodejepa pretrain``: from files to a graph on disk, from a graph to a model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from nodejepa.cli.catalogue import DataRoot, DatasetName, Device, MethodName, Settings, folder_path
from nodejepa.cli.reading_options import MemoryLimit, NodeFile, reads_files
from nodejepa.cli.screen import in_options, say, stderr, stdout
from nodejepa.cli.workers import AsWorker, Ray, Wait, Workers, joined, start_workers
from nodejepa.config import DEFAULT_METHOD
from nodejepa.errors import ConfigError

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
) -> None:
    """Keep a graph that is larger than memory on disk; killed, it goes on where it was."""
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

    made = prepare_store(edges, nodes, reading, out=out, force=force, announce=announce)
    _say(made, made.content_hash[:16])


def _say(graph: StoredGraph, more: str) -> None:
    sizes = f"{graph.num_nodes:,} nodes, {graph.num_edges:,} stored edges, {graph.num_features:,} features"
    classes = graph.manifest.classes
    labels = "" if classes is None else f", labels of {len(classes):,} classes"
    say(f"{graph.folder}: {sizes}{labels}; {more}")


def pretrain(
    dataset: DatasetName,
    out: Annotated[
        Path,
        typer.Option(
            help="Run folder: model, history and checkpoints go here.", parser=folder_path, metavar="PATH"
        ),
    ],
    method: MethodName = DEFAULT_METHOD,
    preset: Annotated[str, typer.Option(help="Settings to start from.")] = "default",
    seed: Annotated[int, typer.Option(help="Of everything random.", min=0)] = 0,
    settings: Settings = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
    device: Device = "auto",
    checkpoint_epochs: Annotated[int, typer.Option(help="Epochs between checkpoints.", min=1)] = 50,
    checkpoint_minutes: Annotated[float, typer.Option(help="Most minutes between checkpoints.", min=0)] = 2.0,
    checkpoint_steps: Annotated[
        int | None, typer.Option(help="Steps between checkpoints, also inside of an epoch.", min=1)
    ] = None,
    memory_limit: MemoryLimit = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard logs.")] = False,
    data_root: DataRoot = None,
    workers: Workers = 1,
    wait: Wait = 300.0,
    ray: Ray = False,
    as_worker: AsWorker = False,
) -> None:
    """Learn an encoder from a named graph, or from a graph store, without labels; --resume goes on."""
    from nodejepa.config import parse_assignments
    from nodejepa.data import load_dataset
    from nodejepa.diagnostics import diagnose
    from nodejepa.graph import Graph
    from nodejepa.methods import find_method, make_estimator
    from nodejepa.tables import StoredGraph
    from nodejepa.training.logger import Logging
    from nodejepa.workflow.apply import schema_of
    from nodejepa.workflow.plan import make_plan
    from nodejepa.workflow.stored_plan import require_room

    if find_method(method).supervised:
        raise ConfigError(
            f"{method} learns from labels, and pretraining has none",
            fix=f"Train and score it for every split: nodejepa probe {dataset} --method {method}.",
        )
    stored = StoredGraph.is_at(dataset)
    estimator = make_estimator(
        method,
        preset=preset,
        dataset=None if stored else dataset,
        seed=seed,
        settings=parse_assignments(settings or []),
        device=device,
    )
    if workers > 1 or ray:
        options = {"method": method, "preset": preset, "seed": seed, "set": settings, "device": device}
        options |= {"checkpoint-epochs": checkpoint_epochs, "checkpoint-minutes": checkpoint_minutes}
        options |= {"checkpoint-steps": checkpoint_steps, "memory-limit": memory_limit, "wait": wait}
        options |= {"tensorboard": tensorboard, "data-root": data_root}
        start_workers(
            estimator, dataset, out, workers, resume=resume, options=options, data_root=data_root, ray=ray
        )
        return
    graph = StoredGraph(dataset) if stored else load_dataset(dataset, data_root).graph
    if isinstance(graph, Graph):
        make_plan(estimator, graph, memory_limit).require_fit()
    else:
        processes = int(os.environ.get("WORLD_SIZE", "1")) if as_worker else 1
        require_room(estimator, graph, memory_limit, processes=processes)
        estimator.memory_limit = memory_limit
    logging = Logging(
        checkpoint_epochs,
        checkpoint_minutes,
        tensorboard,
        f"{method} on {dataset}",
        checkpoint_steps=checkpoint_steps,
    )
    if as_worker:
        with joined(estimator, wait=wait) as leads:
            estimator.fit(graph, out=out, resume=True, logging=logging)
        if not leads:
            return
    else:
        estimator.fit(graph, out=out, resume=resume, logging=logging)
    if isinstance(graph, StoredGraph):
        schema_of(graph).save(out)  # the model may see other files later
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
        say(f"history  {out / 'history.csv'}")
