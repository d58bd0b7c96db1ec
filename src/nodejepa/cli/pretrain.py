"""``nodejepa pretrain`` and ``nodejepa embed``: from a graph to a model, from a model to embeddings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from nodejepa.cli.catalogue import DataRoot, DatasetName, MethodName, Settings, dataset_names, folder_path
from nodejepa.cli.reading_options import (
    Bipartite,
    Delimiter,
    Header,
    IdColumn,
    MemoryLimit,
    NodeFile,
    NoWeight,
    SourceColumn,
    TargetColumn,
    UnknownIds,
    WeightColumn,
    delimiter_choice,
    weight_choice,
)
from nodejepa.cli.screen import in_options, stderr, stdout
from nodejepa.cli.workers import AllReduce, AsWorker, Ray, Wait, Workers, joined, start_workers
from nodejepa.config import DEFAULT_METHOD
from nodejepa.errors import ConfigError

if TYPE_CHECKING:
    from nodejepa.diagnostics import Diagnostics
    from nodejepa.store import StoredGraph

PRETRAIN_EXAMPLES = (
    "Examples:\n\n"
    "nodejepa pretrain digits --out runs/digits\n\n"
    "nodejepa pretrain photo --method patchjepa --preset paper --seed 42 --out runs/photo --resume\n\n"
    "nodejepa pretrain digits --method nodejepa --set masking.hops=1 --set epochs=50 --out runs/short\n\n"
    "nodejepa pretrain physics --method nodejepa --set parts=32 --set parts_per_step=8 --set units=2 "
    "--workers 2 --out runs/p"
)
EMBED_EXAMPLES = (
    "Examples:\n\n"
    "nodejepa embed runs/digits digits --out z.parquet\n\n"
    "nodejepa embed z.run --edges new_edges.parquet --nodes new_nodes.parquet --out z2.parquet"
)


Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]


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
    all_reduce: AllReduce = False,
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
    from nodejepa.owngraph.plan import make_plan
    from nodejepa.owngraph.stored import save_schema
    from nodejepa.store import StoredGraph
    from nodejepa.training.journal import Logging

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
        options |= {"tensorboard": tensorboard, "data-root": data_root, "all-reduce": all_reduce}
        start_workers(
            estimator, dataset, out, workers, resume=resume, options=options, data_root=data_root, ray=ray
        )
        return
    graph = StoredGraph(dataset) if stored else load_dataset(dataset, data_root).graph
    if isinstance(graph, Graph):
        make_plan(estimator, graph, memory_limit).require_fit()
    logging = Logging(
        checkpoint_epochs,
        checkpoint_minutes,
        tensorboard,
        f"{method} on {dataset}",
        checkpoint_steps=checkpoint_steps,
    )
    if as_worker:
        with joined(estimator, all_reduce=all_reduce, wait=wait) as leads:
            estimator.fit(graph, out=out, resume=True, logging=logging)
        if not leads:
            return
    else:
        estimator.fit(graph, out=out, resume=resume, logging=logging)
    if isinstance(graph, StoredGraph):
        save_schema(graph, out)
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
        stdout.print(Text(estimator.describe()), soft_wrap=True)
    stdout.print(Text(f"model    {out / 'model.safetensors'}"), soft_wrap=True)
    if history:
        stdout.print(Text(f"history  {out / 'history.csv'}"), soft_wrap=True)


def embed(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="A folder that `nodejepa pretrain` or `embed-graph` wrote."),
    ],
    dataset: Annotated[
        str | None,
        typer.Argument(
            metavar="DATASET",
            help="A name that `nodejepa datasets` lists, or a folder that `nodejepa prepare` wrote.",
            autocompletion=dataset_names,
        ),
    ] = None,
    *,
    out: Annotated[Path, typer.Option(help="File for the embeddings: .parquet (with node ids) or .npy.")],
    edges: Annotated[
        Path | None,
        typer.Option(help="Instead of DATASET: the edges of your own graph, new nodes included."),
    ] = None,
    nodes: NodeFile = None,
    source: SourceColumn = None,
    target: TargetColumn = None,
    weight: WeightColumn = None,
    no_weight: NoWeight = False,
    id_column: IdColumn = None,
    unknown_ids: UnknownIds = "add",
    bipartite: Bipartite = None,
    header: Header = None,
    delimiter: Delimiter = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace --out, and take away a manifest that told of it.")
    ] = False,
    device: Device = "auto",
    memory_limit: MemoryLimit = None,
    data_root: DataRoot = None,
) -> None:
    """Apply a trained encoder to a named graph, or to files of a graph it has never seen."""
    if (dataset is None) == (edges is None):
        raise typer.BadParameter(
            "Give either the name of a data set or --edges of your own graph"
            + (", not both." if dataset is not None else ".")
        )
    if edges is None:
        columns = {"nodes": nodes, "source": source, "target": target, "weight": weight, "id": id_column}
        layout = {
            "no-weight": no_weight or None,
            "header": header,
            "delimiter": delimiter,
            "bipartite": bipartite,
        }
        layout["unknown-ids"] = None if unknown_ids == "add" else unknown_ids
        for name, value in (columns | layout).items():
            if value is not None:
                raise typer.BadParameter(f"--{name} belongs to --edges, not to a data set.")
        from nodejepa.store import StoredGraph

        if StoredGraph.is_at(dataset):
            _embed_stored(run, StoredGraph(str(dataset)), out, force)
        else:
            _embed_dataset(run, str(dataset), out, device, data_root, force)
        return
    from nodejepa.io import ReadingOptions
    from nodejepa.owngraph import apply_run

    reading = ReadingOptions(
        source=source,
        target=target,
        weight=weight_choice(weight, no_weight),
        id_column=id_column,
        unknown_ids=unknown_ids,
        bipartite=bipartite,
        header=header,
        delimiter=delimiter_choice(delimiter),
    )
    applied = apply_run(
        run, edges, nodes, reading, out=out, device=device, force=force, memory_limit=memory_limit
    )
    for note in applied.notes:
        stderr.print(Text(f"- {in_options(note)}"), soft_wrap=True)
    _say_written(applied.embeddings.shape, out, applied.diagnostics)


def _embed_stored(run: Path, graph: StoredGraph, out: Path, force: bool) -> None:
    from nodejepa.methods import load_method
    from nodejepa.owngraph.stored import embed_store

    shape, found = embed_store(load_method(run, device="cpu"), graph, out, force=force)
    _say_written(shape, out, found)


def _embed_dataset(
    run: Path, dataset: str, out: Path, device: str, data_root: Path | None, force: bool
) -> None:
    from nodejepa.data import load_dataset
    from nodejepa.diagnostics import diagnose
    from nodejepa.io.embeddings import check_ending, write_embeddings
    from nodejepa.io.files_in import refuse_other_kind
    from nodejepa.locks import output_owned
    from nodejepa.methods import load_method
    from nodejepa.owngraph.outputs import drop_manifest, refuse_losing

    check_ending(out)  # before the work
    begins, columns = (b"\x93NUMPY", ()) if out.suffix == ".npy" else (b"PAR1", ("id", "z0"))
    refuse_other_kind(out, begins, columns, force=force)
    refuse_losing(out, force=force, manifest_only=True)
    estimator = load_method(run, device=device)
    graph = load_dataset(dataset, data_root).graph
    embeddings = estimator.transform(graph)
    with output_owned(out):
        refuse_losing(out, force=force, manifest_only=True)  # again: the work took its time
        drop_manifest(out)
        write_embeddings(out, graph, embeddings)
    _say_written(embeddings.shape, out, diagnose(embeddings))


def _say_written(shape: tuple[int, ...], out: Path, found: Diagnostics) -> None:
    stdout.print(Text(f"{shape[0]:,} nodes x {shape[1]} -> {out}"), soft_wrap=True)
    stderr.print(Text(f"Embeddings: {found.verdict}"))
