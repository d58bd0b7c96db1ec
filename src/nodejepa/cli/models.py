"""``nodejepa prepare``, ``pretrain``, ``embed`` and ``probe``: a graph on disk, a model, embeddings, a score.

With ``--workers`` a command runs in several processes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table
from rich.text import Text

from nodejepa.cli.options import (
    AsJSON,
    AsWorker,
    CheckpointEpochs,
    DataRoot,
    DatasetName,
    DatasetNameIfAny,
    Device,
    Force,
    MemoryLimit,
    MethodName,
    NodeFile,
    Preset,
    Resume,
    Seed,
    Settings,
    Workers,
    folder_path,
    joined,
    machine_option,
    reads_files,
    start_workers,
)
from nodejepa.cli.screen import advise, print_json, say, show_notes, stderr, stdout
from nodejepa.config import DEFAULT_METHOD, parse_seeds
from nodejepa.errors import ConfigError

if TYPE_CHECKING:
    from nodejepa.evaluation.scoring import MethodScore
    from nodejepa.workflow.read import UserGraph

# How features are read is written in the run: only ids and edges are new
_READ_AGAIN = (*("source", "target", "weight", "no_weight", "bipartite", "id_column", "header", "delimiter"),)


@reads_files()
def prepare(
    edges: Annotated[
        Path | None, typer.Option(help="Table of edges (parquet, CSV, TSV; also .gz).", metavar="FILE")
    ] = None,
    nodes: NodeFile = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the store.")] = None,
    verify: Annotated[
        Path | None, typer.Option(help="Only compare the checksums of a store.", metavar="STORE")
    ] = None,
    reading: Any = None,  # the options of reading, see reads_files
    force: Force = False,
    memory_limit: MemoryLimit = None,
) -> None:
    """Write a graph to disk as a graph store. The graph may be larger than memory.

    Examples:
        nodejepa prepare --edges edges.parquet --nodes nodes.parquet --labels topic --out graph.store
        nodejepa prepare --edges edges.parquet --structural pagerank,degree,clustering --out graph.store
        nodejepa pretrain graph.store --method linear-jepa --out run
        nodejepa pretrain graph.store --method nodejepa --preset paper --set parts=100 --set
           parts_per_step=5 --set descriptors=pagerank,degree,clustering --out trained
        nodejepa embed run graph.store --out z.parquet
        nodejepa probe graph.store --run run
        nodejepa prepare --verify graph.store
    """
    from nodejepa.tables import StoredGraph
    from nodejepa.tables.prepare import prepare_store

    if verify is not None:
        graph = StoredGraph(verify)
        graph.verify()
        more = "every checksum matches"
    elif edges is None or out is None:
        raise typer.BadParameter("Give --edges and --out, or --verify STORE.")
    else:
        graph = prepare_store(
            edges,
            nodes,
            reading,
            out=out,
            force=force,
            announce=lambda notes: advise("\n".join(f"- {note}" for note in notes), to=stderr),
            memory_limit=memory_limit,
        )
        more = graph.content_hash[:16]
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
            help="Folder for the model, its history and checkpoints.", parser=folder_path, metavar="PATH"
        ),
    ],
    method: MethodName = DEFAULT_METHOD,
    preset: Preset = "default",
    seed: Seed = 0,
    settings: Settings = None,
    resume: Resume = False,
    device: Device = "auto",
    checkpoint_epochs: CheckpointEpochs = 50,
    memory_limit: MemoryLimit = None,
    data_root: DataRoot = None,
    workers: Workers = 1,
    ray: Annotated[
        bool, machine_option("--ray", help="Start the workers with Ray Train (needs the extra ray).")
    ] = False,
    as_worker: AsWorker = False,
) -> None:
    """Train a method without labels on a named graph or a graph store.

    Examples:
        nodejepa pretrain digits --out runs/digits
        nodejepa pretrain photo --method patchjepa --preset paper --seed 42 --out runs/photo --resume
        nodejepa pretrain digits --method nodejepa --preset paper --set epochs=50 --out runs/short
        nodejepa pretrain physics --method nodejepa --preset paper --set parts=32 --set parts_per_step=8
           --set micro_batches=2 --workers 2 --out runs/p
    """
    from nodejepa.config import parse_assignments
    from nodejepa.data import load_dataset
    from nodejepa.methods import make_method, refuse_supervised
    from nodejepa.tables import StoredGraph, is_store
    from nodejepa.training.distributed import SINGLE
    from nodejepa.training.logger import Logging
    from nodejepa.training.run import Run
    from nodejepa.workflow.embed import embedded, train
    from nodejepa.workflow.plan import make_plan
    from nodejepa.workflow.read import UserGraph

    refuse_supervised(method)
    stored = is_store(dataset)
    estimator = make_method(
        method,
        preset=preset,
        dataset=None if stored else dataset,
        seed=seed,
        settings=parse_assignments(settings or []),
        device=device,
    )
    if stored:
        data = UserGraph.of_store(StoredGraph(dataset))
    else:
        data = UserGraph.of_graph(load_dataset(dataset, data_root).graph)
    if workers > 1 or ray:
        estimator.check_processes(workers)
        Run(out).refuse_begun(resume=resume)
        if stored:
            here = 0 if ray else workers
            make_plan(estimator, data.graph, memory_limit, processes=workers, started=here).require_fit()
        estimator.prepare(data.graph)  # once: the workers find it on disk
        start_workers(context, out, workers, "ray", "resume", ray=ray)
        return
    processes = int(os.environ.get("WORLD_SIZE", "1")) if as_worker else 1
    make_plan(estimator, data.graph, memory_limit, processes=processes).require_fit()
    estimator.memory_limit = memory_limit
    logging = Logging(checkpoint_epochs=checkpoint_epochs, description=f"{method} on {dataset}")
    with joined(as_worker) as group:
        estimator.process_group = group
        train(estimator, data, out, resume=resume or as_worker, logging=logging)
    if not group.leads:
        return
    estimator.process_group = SINGLE  # the others are gone
    history = estimator.history_
    if history:
        spent = sum(record["seconds"] for record in history)
        peak = max(record["peak_memory_mb"] for record in history)
        loss = f", last loss {history[-1]['loss']:.4f}" if "loss" in history[-1] else ""
        say(f"{method} ({preset}) on {dataset}, seed {seed}")
        say(f"{len(history)} epochs, {spent:.1f} s, {peak:,.0f} MB of memory at the peak{loss}")
    if estimator.describe():
        say(estimator.describe())
    if not stored:
        say(f"Embeddings: {embedded(estimator, data)[1].verdict}")
    say(f"model    {out / 'model.safetensors'}")
    if history:
        say(f"history  {out / 'history.jsonl'}")


@reads_files(only=_READ_AGAIN)
def embed(
    context: typer.Context,
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="Model folder that `nodejepa pretrain` or `embed-graph` wrote."),
    ],
    dataset: DatasetNameIfAny = None,
    *,
    out: Annotated[Path, typer.Option(help="File for the embeddings: .parquet (with node ids) or .npy.")],
    edges: Annotated[
        Path | None,
        typer.Option(help="Table of edges of your own graph, instead of DATASET."),
    ] = None,
    nodes: NodeFile = None,
    reading: Any = None,  # the options of reading, see reads_files
    force: Force = False,
    device: Device = "auto",
    memory_limit: MemoryLimit = None,
    data_root: DataRoot = None,
    workers: Workers = 1,
    as_worker: AsWorker = False,
) -> None:
    """Apply a model to a named graph, to a graph store or to your own files.

    Examples:
        nodejepa embed runs/digits digits --out z.parquet
        nodejepa embed z.run --edges new_edges.parquet --nodes new_nodes.parquet --out z2.parquet
    """
    if (dataset is None) == (edges is None):
        raise typer.BadParameter(
            "Give either the name of a data set or --edges of your own graph"
            + (", not both." if dataset is not None else ".")
        )
    if edges is None and (nodes or reading != type(reading)()):
        raise typer.BadParameter("--nodes and the options for reading files belong to --edges.")
    from nodejepa.data import load_dataset
    from nodejepa.methods import load_method
    from nodejepa.tables import is_store
    from nodejepa.workflow.apply import apply_run, help_to_apply
    from nodejepa.workflow.embed import OutputPaths

    given: Any = edges or dataset
    if is_store(given):
        if workers > 1:
            OutputPaths.beside(out).require_free(resume=None, force=force)
            load_method(run, device="cpu").check_processes(workers)
            start_workers(context, out, workers)
            return
    elif workers > 1 or as_worker:
        raise typer.BadParameter("It needs a graph store: see nodejepa prepare.", param_hint="--workers")
    elif dataset is not None:
        given = load_dataset(dataset, data_root).graph
    machine: Any = {"device": device, "memory_limit": memory_limit}
    with joined(as_worker) as group:
        if not group.leads:
            help_to_apply(run, given, group, scratch=out.parent, **machine)
            return

        def announce(data: UserGraph) -> None:
            if edges:
                show_notes(data.report.notes, data.report.warnings)

        machine |= {"group": group, "announce": announce}
        applied = apply_run(run, given, nodes, reading, out=out, force=force, **machine)
    rows, columns = applied.embeddings.shape
    say(f"{rows:,} nodes x {columns} -> {out}")
    say(f"Embeddings: {applied.diagnostics.verdict}", to=stderr)


def probe(
    dataset: DatasetName,
    method: MethodName = "sgc",
    run: Annotated[
        Path | None, typer.Option(help="Model folder: score this model instead of a new one.")
    ] = None,
    seeds: Annotated[
        str, typer.Option(help='Seeds, such as "42-46" or "1,2,5". Each has its own split and training.')
    ] = "42-46",
    split: Annotated[
        str | None,
        typer.Option(
            help='"20-30": training and validation labels per class. "random-10-10-80": percent for '
            'training, validation and test. "official": the split of the authors.'
        ),
    ] = None,
    mode: Annotated[
        Literal["fair", "paper"],
        typer.Option(
            "--probe",
            help="fair: scaling and C are chosen on validation labels. paper: no scaling, C = 1.",
        ),
    ] = "fair",
    preset: Preset = "default",
    settings: Settings = None,
    data_root: DataRoot = None,
    as_json: AsJSON = False,
) -> None:
    """Score embeddings of a named graph or a graph store with a logistic regression.

    Examples:
        nodejepa probe digits --method sgc
        nodejepa probe photo --method random-gcn --seeds 42-46 --data-root ~/datasets
        nodejepa probe cora --split official --seeds 1 --json
        nodejepa probe digits --run runs/digits
        nodejepa probe graph.store --run runs/stored
    """
    chosen = parse_seeds(seeds)
    from nodejepa.config import parse_assignments
    from nodejepa.data import Dataset, load_dataset
    from nodejepa.evaluation.scoring import score_method, score_run
    from nodejepa.tables import is_store

    changes = parse_assignments(settings or [])
    if run is not None and (changes or preset != "default" or method != "sgc"):
        raise ConfigError(
            "a trained run keeps the method and the settings it was trained with",
            where=f"--run {run}",
            fix="Leave out --method, --preset and --set, or leave out --run.",
        )
    data = Dataset.of_store(dataset) if is_store(dataset) else load_dataset(dataset, data_root)
    if run is not None:
        score = score_run(data, run, chosen, split=split, probe=mode)
    else:
        score = score_method(data, method, chosen, preset=preset, settings=changes, split=split, probe=mode)
    if as_json:
        print_json(score.to_dict())
    else:
        _show(score)


def _show(score: MethodScore) -> None:
    result = score.result
    title = f"{score.method} ({score.preset}) on {score.dataset}, split {score.split}, {result.mode} probe"
    table = Table(title=Text(title), show_footer=True)
    val = _mean(result.val_accuracy_mean, result.val_accuracy_std)
    test = _mean(result.test_accuracy_mean, result.test_accuracy_std)
    table.add_column("seed", footer="mean ± std")
    table.add_column("validation %", val, justify="right")
    table.add_column("test %", test, justify="right")
    table.add_column("scaling")
    table.add_column("C", justify="right")
    for row in result.scores:
        accuracies = _mean(row.val_accuracy, None), _mean(row.test_accuracy, None)
        table.add_row(str(row.seed), *accuracies, row.scaling, f"{row.C:g}")
    stdout.print(table)
    if score.sampled:
        say(f"A large graph: {score.sampled}.")
    if score.heads:
        val, test = _mean(*score.head_mean_std("val")), _mean(*score.head_mean_std("test"))
        say(f"Its own head: validation {val} %, test {test} %")
    say(f"Embeddings: {score.diagnostics.verdict}")
    say(f"Embedding took {score.embed_seconds:.1f} s, probing {score.probe_seconds:.1f} s.")


def _mean(mean: float | None, std: float | None) -> str:
    if mean is None:
        return "-"
    return f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"
