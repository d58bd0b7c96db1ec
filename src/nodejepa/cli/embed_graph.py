"""``nodejepa embed-graph``: a user's own files in, embeddings out."""

from __future__ import annotations

import json
import os
import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from nodejepa.cli.options import (
    AsJSON,
    AsWorker,
    CheckpointEpochs,
    Device,
    EdgeFile,
    Force,
    MemoryLimit,
    MethodName,
    NodeFile,
    Preset,
    Seed,
    Settings,
    Use,
    Workers,
    folder_path,
    given_again,
    joined,
    options_given,
    output_option,
    reads_files,
    start_workers,
    training_option,
)
from nodejepa.cli.screen import in_options, say, show_table, stderr, stdout
from nodejepa.config import DEFAULT_METHOD

if TYPE_CHECKING:
    from rich.console import Console

    from nodejepa.workflow import EmbeddedGraph, Inspection

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
    context: typer.Context,
    edges: EdgeFile,
    nodes: NodeFile = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Embeddings: .parquet (with ids) or .npy; .json and .html go beside it."),
    ] = None,
    run: Annotated[
        Path | None,
        output_option(
            help="Folder of the trained model (default: beside --out, .run).",
            parser=folder_path,
            metavar="PATH",
        ),
    ] = None,
    reading: Any = None,  # the options of reading, see reads_files
    use: Use = None,
    method: MethodName = DEFAULT_METHOD,
    preset: Preset = "default",
    settings: Settings = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs of training.", min=0)] = None,
    dim: Annotated[
        int | None,
        training_option(help="Columns: of wider embeddings keep so many principal components.", min=1),
    ] = None,
    clusters: Annotated[
        str | None,
        output_option(help="Also group the nodes: a number of groups, or auto.", metavar="auto|K"),
    ] = None,
    seed: Seed = 0,
    device: Device = "auto",
    check: Annotated[bool, typer.Option("--check", help="Stop after the data report.")] = False,
    report: Annotated[bool, output_option("--report/--no-report", help="Write the HTML report.")] = True,
    score: Annotated[
        bool, output_option("--score/--no-score", help="With --labels: score what was written.")
    ] = True,
    finetune: Annotated[
        bool, output_option("--finetune/--no-finetune", help="With --labels: also fine-tune.")
    ] = True,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was killed.")] = False,
    force: Force = False,
    memory_limit: MemoryLimit = None,
    checkpoint_epochs: CheckpointEpochs = 50,
    workers: Workers = 1,
    as_worker: AsWorker = False,
    as_json: AsJSON = False,
) -> None:
    """Learn embeddings of your own graph: files in, embeddings keyed by your ids out."""
    from nodejepa import workflow
    from nodejepa.config import parse_assignments
    from nodejepa.memory import TooLarge
    from nodejepa.tables import StoredGraph
    from nodejepa.training.distributed import SINGLE
    from nodejepa.training.logger import Logging
    from nodejepa.workflow.embed import help_to_embed
    from nodejepa.workflow.outputs import OutputPaths
    from nodejepa.workflow.plan import make_plan

    changes: dict[str, Any] = dict(parse_assignments(settings or []))
    if epochs is not None:
        changes["training.epochs"] = epochs
    trained: dict[str, Any] = {"method": method, "preset": preset, "settings": changes}
    trained |= {"seed": seed, "device": device, "dim": dim}
    if StoredGraph.is_at(edges):
        others = {"--nodes": nodes, "--use": use}
        for option in [*(name for name, given in others.items() if given), *options_given(reading)]:
            raise typer.BadParameter(f"{option} does not go with a graph store.")
    elif workers > 1 or as_worker:
        raise typer.BadParameter("Workers share a graph store: see nodejepa prepare.", param_hint="--workers")
    if check:
        estimator = workflow.make_trainable(**trained)
        try:
            found = workflow.inspect_graph(
                edges,
                nodes,
                reading,
                estimator=estimator,
                memory_limit=memory_limit,
                describe=False,
                score=score,
                use=use,
            )
        except TooLarge as error:  # nothing is wrong with the files: the answer is another way
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
    if out is None:
        raise typer.BadParameter(
            "Say where the embeddings go, or --check the graph only.", param_hint="--out"
        )
    if workers > 1:
        estimator = workflow.make_trainable(**trained)
        estimator.check_processes(workers)
        OutputPaths.beside(out, run).require_free(resume=resume, force=force)
        graph = StoredGraph(edges)
        make_plan(estimator, graph, memory_limit, processes=workers, started=workers).require_fit()
        start_workers(context, out, workers)
        return
    if as_worker and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0":
        begun = OutputPaths.beside(out, run).begun  # by processes that were killed
        resume, force = resume or begun, force and not begun
    with joined() if as_worker else nullcontext(SINGLE) as group:
        if not group.leads:
            shared: dict[str, Any] = {"memory_limit": memory_limit, "score": score}
            help_to_embed(edges, group, out=out, run=run, **shared, **trained)
            return
        made = workflow.embed_graph(
            edges,
            nodes,
            reading,
            out=out,
            run=run,
            use=use,
            clusters=clusters,
            report=report,
            score=score,
            finetune=finetune,
            resume=resume,
            force=force,
            memory_limit=memory_limit,
            announce=lambda found: show_inspection(stderr, found),
            logging=Logging(checkpoint_epochs=checkpoint_epochs, description=f"Training {method}"),
            group=group,
            **trained,
        )
    show_result(made, as_json, context)


def show_inspection(console: Console, found: Inspection) -> None:
    """The data report."""
    table = Table(title=Text(f"The graph in {found.data.name}"), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in found.facts().items():
        table.add_row(name, Text(value))
    console.print(table)
    for note in found.data.report.notes:
        say(f"- {in_options(note)}", to=console)
    for warning in found.warnings():
        say(("Note: ", "yellow"), in_options(warning), to=console)
    if not found.plan.fits:
        fitting = in_options(found.plan.proposed) or "nothing smaller fits either"
        say(("Does not fit. ", "red"), f"What does: {fitting}.", to=console)


def show_result(made: EmbeddedGraph, as_json: bool, context: typer.Context) -> None:
    """Scores, where the files are, how sound the embeddings are."""
    if as_json:
        typer.echo(json.dumps(made.manifest, indent=2, allow_nan=False))
        return
    for warning in made.warnings:
        if warning.startswith("No scores"):
            say(("Warning: ", "yellow"), in_options(warning), to=stderr)
    if made.scores is not None:
        from nodejepa.workflow.page import (
            baseline_words,
            beats_baselines,
            best_baseline,
            edges_words,
            largest_words,
            score_sections,
        )

        name = made.estimator.name
        for section in score_sections(made.scores, name):
            show_table(section.table, without=("what it is",))
            for note in section.table.notes:
                say((note, "dim"), to=stderr)
        better = beats_baselines(made.scores, name)
        for words in baseline_words(made.scores, name):
            say((in_options(words), "" if better else "yellow"))
        if not better:
            best = best_baseline(made.scores, name)
            out = made.paths.embeddings.with_stem(f"{made.paths.embeddings.stem}-{best}")
            same = given_again(context, "method", "preset", "settings", "out", "run", "resume", "force")
            say("  ", shlex.join(["nodejepa", *same, "--method", best, "--out", str(out)]))
        for words in (*edges_words(made.scores, name), *largest_words(made.scores)):
            say(in_options(words))
    if made.clusters is not None:
        from nodejepa.workflow.page import cluster_words

        say(cluster_words(made.clusters, made.labels))
    if made.estimator.describe():
        say(made.estimator.describe())
    nodes, columns = made.embeddings.shape
    say(f"{nodes:,} nodes x {columns} -> {made.paths.embeddings}")
    say(f"Embeddings: {made.diagnostics.verdict}")
    for name, path in (
        ("manifest", made.paths.manifest),
        *((("report", made.paths.page),) if made.manifest["report"] else ()),
        ("model", made.paths.run),
    ):
        say(f"{name:9}{path}")
