"""``nodejepa embed-graph``: a user's own files in, embeddings out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from nodejepa.cli.options import (
    OUTPUT,
    TRAINING,
    AsJSON,
    Device,
    EdgeFile,
    Force,
    MemoryLimit,
    MethodName,
    NodeFile,
    Preset,
    Seed,
    Settings,
    folder_path,
    options_given,
    reads_files,
)
from nodejepa.cli.screen import in_options, say, stderr, stdout
from nodejepa.config import DEFAULT_METHOD
from nodejepa.errors import Advice, Setting

if TYPE_CHECKING:
    from rich.console import Console

    from nodejepa.tables import StoredGraph
    from nodejepa.workflow import EmbeddedGraph, EmbeddedStore, Inspection

EMBED_GRAPH_EXAMPLES = (
    "Examples:\n\n"
    "nodejepa embed-graph --edges edges.csv --check\n\n"
    "nodejepa embed-graph --edges edges.parquet --nodes nodes.parquet --out z.parquet\n\n"
    "nodejepa embed-graph --edges graph.store --out z.parquet\n\n"
    "nodejepa embed-graph --edges edges.csv --source from --target to --nodes nodes.csv --id user "
    "--labels team --epochs 100 --out z.parquet"
)


@reads_files()
def embed_graph(
    edges: EdgeFile,
    nodes: NodeFile = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Embeddings: .parquet (with ids) or .npy; .json and .html go beside it."),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the trained model (default: beside --out, .run).",
            parser=folder_path,
            metavar="PATH",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    reading: Any = None,  # the options of reading, see reads_files
    method: MethodName = DEFAULT_METHOD,
    preset: Preset = "default",
    settings: Settings = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs of training.", min=0)] = None,
    dim: Annotated[
        int | None,
        typer.Option(
            help="Columns: of wider embeddings keep so many principal components.",
            min=1,
            rich_help_panel=TRAINING,
        ),
    ] = None,
    clusters: Annotated[
        str | None,
        typer.Option(
            help="Also group the nodes: a number of groups, or auto.",
            metavar="auto|K",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    seed: Seed = 0,
    device: Device = "auto",
    check: Annotated[bool, typer.Option("--check", help="Stop after the data report.")] = False,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write the HTML report.", rich_help_panel=OUTPUT)
    ] = True,
    umap: Annotated[
        bool,
        typer.Option(
            "--umap",
            help="Also a UMAP on the map of the report; needs nodejepa[umap].",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    finetune: Annotated[
        bool,
        typer.Option(
            "--finetune/--no-finetune", help="With --labels: also fine-tune.", rich_help_panel=OUTPUT
        ),
    ] = True,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was killed.")] = False,
    force: Force = False,
    memory_limit: MemoryLimit = None,
    checkpoint_epochs: Annotated[
        int, typer.Option(help="Epochs between checkpoints.", min=1, rich_help_panel=TRAINING)
    ] = 50,
    as_json: AsJSON = False,
) -> None:
    """Learn embeddings of your own graph: files in, embeddings keyed by your ids out."""
    from nodejepa import workflow
    from nodejepa.config import parse_assignments
    from nodejepa.memory import TooLarge
    from nodejepa.tables import StoredGraph
    from nodejepa.training.logger import Logging

    changes: dict[str, Any] = dict(parse_assignments(settings or []))
    if epochs is not None:
        changes["training.epochs"] = epochs
    trained: dict[str, Any] = {"method": method, "preset": preset, "settings": changes}
    trained |= {"seed": seed, "device": device, "dim": dim}
    written: dict[str, Any] = {"run": run, "clusters": clusters, "report": report, "umap": umap}
    written |= {"resume": resume, "force": force, "memory_limit": memory_limit}
    written["logging"] = Logging(checkpoint_epochs=checkpoint_epochs, description=f"Training {method}")
    if StoredGraph.is_at(edges):
        for option in [*(["--nodes"] if nodes else []), *options_given(reading)]:
            raise typer.BadParameter(f"{option} does not go with a graph store.")
        if check:
            show_store(StoredGraph(edges), trained, memory_limit, as_json)
        else:
            kept = workflow.embed_stored_graph(edges, out=_require(out), **written, **trained)
            show_result(kept, kept.shape, as_json)
        return
    if check:
        estimator = workflow.make_trainable(**trained)
        try:
            found = workflow.inspect_graph(
                edges, nodes, reading, estimator=estimator, memory_limit=memory_limit, describe=False
            )
        except TooLarge as error:  # nothing is wrong with the files: the answer is another option
            if not error.has_road:
                raise
            if as_json:
                answer = {"plan": {"fits": False, "what": error.what, "fix": in_options(error.fix)}}
                typer.echo(json.dumps(answer, indent=2))
            else:
                say(("Does not fit. ", "red"), f"{error.what}. {in_options(error.fix)}")
            return
        if as_json:
            typer.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False))
        else:
            show_inspection(stdout, found)
        return
    made = workflow.embed_graph(
        edges,
        nodes,
        reading,
        out=_require(out),
        finetune=finetune,
        announce=lambda found: show_inspection(stderr, found),
        **written,
        **trained,
    )
    show_result(made, made.embeddings.shape, as_json)


def _require(out: Path | None) -> Path:
    if out is None:
        raise typer.BadParameter(
            "Say where the embeddings go, or --check the graph only.", param_hint="--out"
        )
    return out


def show_inspection(console: Console, found: Inspection) -> None:
    """The data report."""
    table = Table(title=Text(f"The graph in {found.loaded.report.edge_file}"), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in found.facts().items():
        table.add_row(name, Text(value))
    console.print(table)
    for note in found.loaded.report.notes:
        say(f"- {in_options(note)}", to=console)
    for warning in found.warnings():
        say(("Note: ", "yellow"), in_options(warning), to=console)
    if not found.plan.fits:
        fitting = in_options(found.plan.proposed) or "nothing smaller fits either"
        say(("Does not fit. ", "red"), f"What does: {fitting}.", to=console)


def show_store(
    graph: StoredGraph, trained: dict[str, Any], memory_limit: float | None, as_json: bool = False
) -> None:
    """What is in a store, and what embedding it would take."""
    from nodejepa.memory import Room
    from nodejepa.methods.budget import Workload
    from nodejepa.workflow import make_trainable
    from nodejepa.workflow.apply import store_facts
    from nodejepa.workflow.plan import stored_roads

    if as_json:
        typer.echo(json.dumps({"store": str(graph.folder), "graph": store_facts(graph)}, indent=2))
        return
    table = Table(title=Text(f"The graph in {graph.folder}"), show_header=False)
    for name, value in store_facts(graph).items():
        table.add_row(name, Text(value))
    stdout.print(table)
    entries = graph.manifest.feature_entries
    filled = graph.num_nodes * graph.num_features if entries is None else entries
    work = Workload(graph.num_nodes, graph.num_edges, graph.num_features, filled, entries is None)
    roads = stored_roads(make_trainable(**trained), work, Room.of(memory_limit))
    for road in roads:  # it is on disk already: of each only the options count
        options = road.options or (Setting("method", "linear-jepa"),)
        fitting = Advice("This fits: ", replace(road, options=options, road="").words, ".")
        say(in_options(fitting))
    if not roads:
        say(("No way to embed it fits into the memory there is.", "red"))


def show_result(made: EmbeddedGraph | EmbeddedStore, shape: tuple[int, ...], as_json: bool) -> None:
    """Scores, where the files are, how sound the embeddings are."""
    if as_json:
        typer.echo(json.dumps(made.manifest, indent=2, allow_nan=False))
        return
    for warning in made.manifest["warnings"]:
        if warning.startswith("No scores"):
            say(("Warning: ", "yellow"), warning, to=stderr)
    if made.scores is not None:
        from nodejepa.workflow.page import beats_the_floors, floor_words, largest_words

        table = Table(title="What the embeddings are worth, % on test nodes")
        table.add_column("embeddings")
        for title in made.scores.measures.values():
            table.add_column(title, justify="right")
        for method, found in made.scores.table().items():
            table.add_row(
                Text(method), *("-" if value is None else f"{value.mean:.1f}" for value in found.values())
            )
        tuned, name = made.scores.finetuned, made.manifest["method"]
        if tuned is not None:
            table.add_row(f"{name}, fine-tuned (one split)", f"{tuned.test_accuracy:.1f}")
            table.add_row("the same network from random weights", f"{tuned.scratch_test_accuracy:.1f}")
        stdout.print(table)
        say(f"Fair linear probe; {made.scores.split}.")
        style = "" if beats_the_floors(made.scores, name) else "yellow"
        say((floor_words(made.scores, name), style))
        for words in largest_words(made.scores):
            say(words)
    if made.clusters is not None:
        from nodejepa.workflow.page import cluster_words

        say(cluster_words(made.clusters, made.labels))
    if made.manifest["found"]:
        say(made.manifest["found"])
    say(f"{shape[0]:,} nodes x {shape[1]} -> {made.places.embeddings}")
    say(f"Embeddings: {made.manifest['diagnostics']['verdict']}")
    for name, path in (
        ("manifest", made.places.manifest),
        *((("report", made.places.page),) if made.manifest["report"] else ()),
        ("model", made.places.run),
    ):
        say(f"{name:9}{path}")
