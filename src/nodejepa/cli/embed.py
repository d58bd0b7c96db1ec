"""``nodejepa embed``: from a model to embeddings. ``nodejepa probe``: what embeddings are worth."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table
from rich.text import Text

from nodejepa.cli.options import (
    AsJSON,
    AsWorker,
    DataRoot,
    DatasetName,
    DatasetNameIfAny,
    Device,
    MemoryLimit,
    MethodName,
    NodeFile,
    Preset,
    Settings,
    Workers,
    joined,
    options_given,
    reads_files,
    start_workers,
)
from nodejepa.cli.screen import in_options, say, stderr, stdout
from nodejepa.config import parse_seeds
from nodejepa.errors import ConfigError

if TYPE_CHECKING:
    from nodejepa.diagnostics import Diagnostics
    from nodejepa.evaluation.scoring import MethodScore

EMBED_EXAMPLES = (
    "Examples:\n\n"
    "nodejepa embed runs/digits digits --out z.parquet\n\n"
    "nodejepa embed z.run --edges new_edges.parquet --nodes new_nodes.parquet --out z2.parquet"
)


PROBE_EXAMPLES = (
    "Examples:\n\n"
    "nodejepa probe digits --method sgc\n\n"
    "nodejepa probe photo --method random-gcn --seeds 42-46 --data-root ~/datasets\n\n"
    "nodejepa probe cora --split official --seeds 1 --json\n\n"
    "nodejepa probe digits --run runs/digits\n\n"
    "nodejepa probe graph.store --run runs/stored"
)

# How features are read is written in the run: only ids and edges are new
_EDGES = ("source", "target", "weight", "no_weight", "bipartite")
_FILES = ("id_column", "header", "delimiter")


@reads_files(only=(*_EDGES, *_FILES))
def embed(
    context: typer.Context,
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="A folder that `nodejepa pretrain` or `embed-graph` wrote."),
    ],
    dataset: DatasetNameIfAny = None,
    *,
    out: Annotated[Path, typer.Option(help="File for the embeddings: .parquet (with node ids) or .npy.")],
    edges: Annotated[
        Path | None,
        typer.Option(help="Instead of DATASET: the edges of your own graph, new nodes included."),
    ] = None,
    nodes: NodeFile = None,
    reading: Any = None,  # the options of reading, see reads_files
    force: Annotated[
        bool, typer.Option("--force", help="Replace --out, and remove a manifest that describes it.")
    ] = False,
    device: Device = "auto",
    memory_limit: MemoryLimit = None,
    data_root: DataRoot = None,
    workers: Workers = 1,
    as_worker: AsWorker = False,
) -> None:
    """Apply a trained encoder to a named graph, or to files of a graph it has never seen."""
    if (dataset is None) == (edges is None):
        raise typer.BadParameter(
            "Give either the name of a data set or --edges of your own graph"
            + (", not both." if dataset is not None else ".")
        )
    from nodejepa.methods import load_method
    from nodejepa.tables import StoredGraph
    from nodejepa.tables.embeddings import check_ending
    from nodejepa.training.distributed import SINGLE
    from nodejepa.workflow.apply import apply_run, help_to_apply
    from nodejepa.workflow.outputs import refuse_existing

    given: Any = edges or dataset
    if edges is None:
        for option in [*(["--nodes"] if nodes else []), *options_given(reading)]:
            raise typer.BadParameter(f"{option} belongs to --edges, not to a data set.")
    if not StoredGraph.is_at(given) and (workers > 1 or as_worker):
        raise typer.BadParameter("Workers embed a graph store: see nodejepa prepare.", param_hint="--workers")
    check_ending(out)  # before the work
    if workers > 1:
        refuse_existing([out], force=force)
        load_method(run, device="cpu").check_processes(workers)
        start_workers(context, out, workers)
        return
    if edges is None and not StoredGraph.is_at(given):
        _embed_dataset(run, given, out, device, data_root, force)
        return
    machine: Any = {"device": device, "memory_limit": memory_limit}
    with joined() if as_worker else nullcontext(SINGLE) as group:
        if not group.leads:
            help_to_apply(run, given, group, scratch=out.parent, **machine)
            return
        applied = apply_run(run, given, nodes, reading, out=out, force=force, group=group, **machine)
    for note in applied.notes if edges else ():
        say(f"- {in_options(note)}", to=stderr)
    _say_written(applied.embeddings.shape, out, applied.diagnostics)


def _embed_dataset(
    run: Path, dataset: str, out: Path, device: str, data_root: Path | None, force: bool
) -> None:
    from nodejepa.data import load_dataset
    from nodejepa.diagnostics import diagnose
    from nodejepa.methods import load_method
    from nodejepa.tables import write_embeddings
    from nodejepa.workflow.outputs import claimed

    with claimed(out, [], force=force) as replace:
        graph = load_dataset(dataset, data_root).graph
        embeddings = load_method(run, device=device).transform(graph)
        replace()
        write_embeddings(out, graph, embeddings)
    _say_written(embeddings.shape, out, diagnose(embeddings))


def _say_written(shape: tuple[int, ...], out: Path, found: Diagnostics) -> None:
    say(f"{shape[0]:,} nodes x {shape[1]} -> {out}")
    stderr.print(Text(f"Embeddings: {found.verdict}"))


def probe(
    dataset: DatasetName,
    method: MethodName = "sgc",
    run: Annotated[
        Path | None, typer.Option(help="Probe the model in this run folder instead of a fresh method.")
    ] = None,
    seeds: Annotated[str, typer.Option(help='"42-46", "1,2,5": one split and one run each.')] = "42-46",
    split: Annotated[
        str | None,
        typer.Option(help='"20-30" labels per class, "random-10-10-80" percent, "official".'),
    ] = None,
    mode: Annotated[
        Literal["fair", "paper"],
        typer.Option("--probe", help="fair: scaling and C chosen on validation. paper: raw, C = 1."),
    ] = "fair",
    preset: Preset = "default",
    settings: Settings = None,
    data_root: DataRoot = None,
    as_json: AsJSON = False,
) -> None:
    """Embed a named graph, or a graph store with labels, then score a linear classifier on the embeddings."""
    chosen = parse_seeds(seeds)
    from nodejepa.config import parse_assignments
    from nodejepa.data import Dataset, load_dataset
    from nodejepa.evaluation.scoring import score_method, score_run
    from nodejepa.tables import StoredGraph

    if stderr.is_terminal:
        stderr.print(
            Text(f"Embedding {dataset} with {run or method}, then probing {len(chosen)} splits"), style="dim"
        )
    changes = parse_assignments(settings or [])
    if run is not None and (changes or preset != "default" or method != "sgc"):
        raise ConfigError(
            "a trained run keeps the method and the settings it was trained with",
            where=f"--run {run}",
            fix="Leave out --method, --preset and --set, or leave out --run.",
        )
    data = Dataset.of_store(dataset) if StoredGraph.is_at(dataset) else load_dataset(dataset, data_root)
    if run is not None:
        score = score_run(data, run, chosen, split=split, probe=mode)
    else:
        score = score_method(data, method, chosen, preset=preset, settings=changes, split=split, probe=mode)
    if as_json:
        typer.echo(json.dumps(score.to_dict(), indent=2, allow_nan=False))
    else:
        _show(score)


def _show(score: MethodScore) -> None:
    title = (
        f"{score.method} ({score.preset}) on {score.dataset}, split {score.split}, {score.result.mode} probe"
    )
    table = Table(title=Text(title), show_footer=True)
    result = score.result
    table.add_column("seed", footer="mean ± std")
    table.add_column(
        "validation %", _mean(result.val_accuracy_mean, result.val_accuracy_std), justify="right"
    )
    table.add_column("test %", _mean(result.test_accuracy_mean, result.test_accuracy_std), justify="right")
    table.add_column("scaling")
    table.add_column("C", justify="right")
    for row in result.scores:
        val = "-" if row.val_accuracy is None else f"{row.val_accuracy:.2f}"
        table.add_row(str(row.seed), val, f"{row.test_accuracy:.2f}", row.scaling, f"{row.C:g}")
    stdout.print(table)
    if score.sampled:
        stdout.print(Text(f"A large graph: {score.sampled}."))
    if score.heads:
        val, test = _mean(*score.head_mean_std("val")), _mean(*score.head_mean_std("test"))
        stdout.print(Text(f"Its own head: validation {val} %, test {test} %"))
    stdout.print(Text(f"Embeddings: {score.diagnostics.verdict}"))
    stdout.print(Text(f"Embedding took {score.embed_seconds:.1f} s, probing {score.probe_seconds:.1f} s."))


def _mean(mean: float | None, std: float | None) -> str:
    if mean is None:
        return "-"
    return f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"
