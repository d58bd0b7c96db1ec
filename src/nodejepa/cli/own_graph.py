"""``nodejepa embed-graph``, ``compare`` and ``links``: a user's own files in, what is known of them out."""

from __future__ import annotations

import os
import shlex
from dataclasses import asdict, replace
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
    Resume,
    Seed,
    Settings,
    Use,
    Workers,
    folder_path,
    given_again,
    joined,
    output_option,
    reads_files,
    start_workers,
    training_option,
)
from nodejepa.cli.screen import (
    advise,
    in_options,
    print_json,
    printable,
    say,
    show_notes,
    show_ranked,
    show_table,
    stderr,
    stdout,
)
from nodejepa.config import DEFAULT_METHOD

if TYPE_CHECKING:
    from rich.console import Console

    from nodejepa.workflow import Comparison, EmbeddedGraph, Inspection, MethodRow

_OF_THE_METHOD = ("method", "preset", "settings", "epochs", "dim", "seed")
_LEFT_OUT = ("balanced %", "F1 %", "ROC-AUC %")  # of a terminal's width; the report has them


# ------------------------------------------------------------------ embed-graph


@reads_files()
def embed_graph(
    context: typer.Context,
    edges: EdgeFile,
    nodes: NodeFile = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File for the embeddings: .parquet (with ids) or .npy. Manifest, report and model are "
            "written beside it."
        ),
    ] = None,
    reading: Any = None,  # the options of reading, see reads_files
    use: Use = None,
    method: MethodName = DEFAULT_METHOD,
    preset: Preset = "default",
    settings: Settings = None,
    epochs: Annotated[int | None, typer.Option(help="Number of epochs.", min=0)] = None,
    dim: Annotated[
        int | None,
        training_option(help="Number of columns: keep the leading principal components.", min=1),
    ] = None,
    seed: Seed = 0,
    device: Device = "auto",
    check: Annotated[bool, typer.Option("--check", help="Print the data report and stop.")] = False,
    report: Annotated[bool, output_option("--report/--no-report", help="Write the HTML report.")] = True,
    score: Annotated[
        bool, output_option("--score/--no-score", help="Score the embeddings if there are labels.")
    ] = True,
    resume: Resume = False,
    force: Force = False,
    memory_limit: MemoryLimit = None,
    checkpoint_epochs: CheckpointEpochs = 50,
    workers: Workers = 1,
    as_worker: AsWorker = False,
    as_json: AsJSON = False,
) -> None:
    """Learn node embeddings of your own graph. The result has one row per node, with your ids.

    Examples:
        nodejepa embed-graph --edges edges.csv --check
        nodejepa embed-graph --edges edges.parquet --nodes nodes.parquet --out z.parquet
        nodejepa embed-graph --edges graph.store --out z.parquet
        nodejepa embed-graph --edges edges.csv --source from --target to --nodes nodes.csv --id user
           --labels team --epochs 100 --out z.parquet
    """
    from nodejepa import workflow
    from nodejepa.config import parse_assignments
    from nodejepa.tables import StoredGraph, is_store
    from nodejepa.training.logger import Logging
    from nodejepa.workflow.embed import OutputPaths, help_to_embed
    from nodejepa.workflow.plan import make_plan

    changes: dict[str, Any] = dict(parse_assignments(settings or []))
    if epochs is not None:
        changes["training.epochs"] = epochs
    trained: dict[str, Any] = {"method": method, "preset": preset, "settings": changes}
    trained |= {"seed": seed, "device": device, "dim": dim}
    read: dict[str, Any] = {"memory_limit": memory_limit, "score": score, "use": use}
    if check:
        estimator = workflow.make_trainable(**trained)
        found = workflow.inspect_graph(edges, nodes, reading, estimator=estimator, **read)
        if as_json:
            print_json(found.to_dict())
        else:
            show_inspection(stdout, found)
        return
    if out is None:
        raise typer.BadParameter(
            "Say where the embeddings go, or --check the graph only.", param_hint="--out"
        )
    if (workers > 1 or as_worker) and not is_store(edges):
        raise typer.BadParameter("It needs a graph store: see nodejepa prepare.", param_hint="--workers")
    if workers > 1:
        estimator = workflow.make_trainable(**trained)
        estimator.check_processes(workers)
        OutputPaths.beside(out).require_free(resume=resume, force=force)
        graph = StoredGraph(edges)
        make_plan(estimator, graph, memory_limit, processes=workers, started=workers).require_fit()
        start_workers(context, out, workers)
        return
    if as_worker and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0":
        begun = OutputPaths.beside(out).begun  # by processes that were killed
        resume, force = resume or begun, force and not begun
    with joined(as_worker) as group:
        if not group.leads:
            help_to_embed(edges, group, out=out, memory_limit=memory_limit, score=score, **trained)
            return
        made = workflow.embed_graph(
            edges,
            nodes,
            reading,
            out=out,
            report=report,
            resume=resume,
            force=force,
            announce=lambda found: show_inspection(stderr, found),
            logging=Logging(checkpoint_epochs=checkpoint_epochs, description=f"Training {method}"),
            group=group,
            **read,
            **trained,
        )
    if as_json:
        print_json(made.manifest)
    else:
        show_result(made, context)


def show_inspection(console: Console, found: Inspection) -> None:
    """The data report."""
    table = Table(title=Text(f"The graph in {found.data.name}"), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in found.facts().items():
        table.add_row(name, Text(value))
    console.print(table)
    show_notes(found.data.report.notes, found.warnings(), to=console)
    if not found.plan.fits:
        say(("Does not fit. ", "red"), in_options(found.plan.advice), to=console)


def show_result(made: EmbeddedGraph, context: typer.Context) -> None:
    """Scores and what follows from them, where the files are, how sound the embeddings are."""
    from nodejepa.workflow.scores import score_table

    name, paths = made.estimator.name, made.paths
    for warning in made.warnings:
        if warning.startswith("No scores"):
            say(("Warning: ", "yellow"), in_options(warning), to=stderr)
    if made.scores is not None:
        table = score_table(made.scores, name)
        show_table(table, without=("what it is",))
        for note in table.notes:
            say((note, "dim"), to=stderr)
        better = made.scores.beats_baselines(name)
        for words in made.scores.findings(name):
            say((in_options(words), "" if better else "yellow"))
        if not better:
            best = made.scores.best_baseline(name)
            out = paths.embeddings.with_stem(f"{paths.embeddings.stem}-{best}")
            # the row that was scored: of columns, whatever else was asked for, and with no other settings
            other = ("use", "structural") if made.scores.baselines_of == "columns" else ()
            same = given_again(context, *_OF_THE_METHOD, "out", "resume", "force", *other)
            same += ["--use", "columns"] if other else []
            say("  ", shlex.join(["nodejepa", *same, "--method", best, "--out", str(out)]))
    if made.estimator.describe():
        say(made.estimator.describe())
    nodes, columns = made.embeddings.shape
    say(f"{nodes:,} nodes x {columns} -> {paths.embeddings}")
    say(f"Embeddings: {made.diagnostics.verdict}")
    written = {"manifest": paths.manifest, "report": paths.page, "model": paths.run}
    for what, path in written.items():
        if what != "report" or made.manifest["report"]:
            say(f"{what:9}{path}")


# ------------------------------------------------------------------ compare


@reads_files()
def compare(
    edges: EdgeFile,
    out: Annotated[
        Path,
        typer.Option(
            help="Folder for models, scores, report and embeddings.", parser=folder_path, metavar="PATH"
        ),
    ],
    nodes: NodeFile = None,
    reading: Any = None,  # the options of reading, see reads_files
    use: Use = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Methods, separated by commas (default: linear-jepa, untrained baselines, nodejepa, "
            "patchjepa).",
            metavar="NAMES",
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Number of epochs of every trained method.", min=0)
    ] = None,
    node2vec: Annotated[
        bool, typer.Option("--node2vec", help="Add a row of node2vec (extra: node2vec).")
    ] = False,
    seed: Seed = 0,
    device: Device = "auto",
    resume: Resume = False,
    force: Force = False,
    memory_limit: MemoryLimit = None,
    as_json: AsJSON = False,
) -> None:
    """Compare methods on your own graph, with or without labels, and recommend one.

    Examples:
        nodejepa compare --edges edges.csv --nodes nodes.csv --out compared
        nodejepa compare --edges edges.csv --nodes nodes.csv --labels team --methods sgc,dgi --out compared
    """
    from nodejepa import workflow

    chosen = workflow.COMPARED if methods is None else [name.strip() for name in methods.split(",")]
    made = workflow.compare_files(
        edges,
        nodes,
        reading,
        out=out,
        use=use,
        methods=chosen,
        random_walks=node2vec,
        epochs=epochs,
        seed=seed,
        device=device,
        resume=resume,
        force=force,
        memory_limit=memory_limit,
        inspected=lambda found: show_inspection(stderr, found),
        announce=say_row,
    )
    if as_json:
        print_json(made.to_dict())
    else:
        show_comparison(made, out)


def say_row(row: MethodRow) -> None:
    """That a method is done, or why not."""
    done = f"{row.seconds:,.1f} s" if row.seconds is not None else row.problem
    say(f"{row.method:15}{done}", to=stderr)


def show_comparison(made: Comparison, out: Path) -> None:
    """The table, what was found, which method to take and where the files are."""
    from nodejepa.workflow import EMBEDDINGS, PAGE, RESULT
    from nodejepa.workflow.compare_page import comparison_table, problems

    chosen = made.recommendation
    found = comparison_table(made.rows, chosen.method, made.split, made.made_of)
    show_table(found, without=_LEFT_OUT)
    for words in found.notes:
        say((words, "dim"), to=stderr)
    for words in (*made.notes, *problems(made.rows)):
        say(("Note: ", "yellow"), in_options(words), to=stderr)
    for words in chosen.words:
        say(words)
    for name, file in (("embeddings", EMBEDDINGS), ("report", PAGE), ("results", RESULT)):
        say(f"{name:11}{out / file}")


# ------------------------------------------------------------------ links


@reads_files(without=("structural",))  # structural features would know the links that are hidden
def links(
    edges: EdgeFile,
    nodes: NodeFile = None,
    reading: Any = None,  # the options of reading, see reads_files
    node: Annotated[
        list[str] | None,
        typer.Option(help="List likely new links of the node with this id. Repeatable.", metavar="ID"),
    ] = None,
    k: Annotated[int, typer.Option("-k", "--k", help="Number of likely links.", min=1)] = 10,
    method: MethodName = DEFAULT_METHOD,
    preset: Preset = "default",
    settings: Settings = None,
    seed: Seed = 0,
    device: Device = "auto",
    memory_limit: MemoryLimit = None,
    as_json: AsJSON = False,
) -> None:
    """Link prediction: hide a tenth of the links and score how well they are found.

    With --node, list likely new links of a node. Structural features do not use the hidden links.

    Examples:
        nodejepa links --edges edges.csv --nodes nodes.csv
        nodejepa links --edges edges.csv --node ann --node bob -k 5 --json
    """
    import numpy as np

    from nodejepa.config import parse_assignments
    from nodejepa.evaluation.links import likely_links, score_links, split_links
    from nodejepa.tables import find_row, read_graph
    from nodejepa.workflow import make_trainable

    how: Any = {"preset": preset, "settings": parse_assignments(settings or [])}
    how |= {"seed": seed, "device": device}
    estimator = make_trainable(method, **how)
    loaded = read_graph(edges, nodes, replace(reading, structural=()), memory_limit=memory_limit)
    for note in loaded.notes:
        advise(f"- {note}", to=stderr)
    graph = loaded.graph
    ids = np.arange(graph.num_nodes) if graph.node_ids is None else graph.node_ids
    asked = [ids[find_row(ids, text)] for text in node or ()]  # a wrong id is found before the work
    sides = loaded.sides.get("side")
    split = split_links(graph, seed=seed, sides=sides)
    found = score_links(estimator.fit_transform(split.graph), split)
    z = make_trainable(method, **how).fit_transform(graph) if asked else None
    likely = {str(name): likely_links(z, graph, name, k=k, sides=sides) for name in asked}
    if as_json:
        result: dict[str, Any] = {"method": method, "hidden_links": len(split.links)}
        result |= {"scored_links": len(split.negatives), "scores": None if found is None else asdict(found)}
        if likely:
            result["likely"] = {
                name: [{"id": other, "closeness": close} for other, close in near]
                for name, near in likely.items()
            }
        print_json(result)
        return
    if found is None:
        say("Every node is linked to nearly every other: there is nothing to rank links among.")
    else:
        say(
            f"{method}: of {len(split.links):,} hidden links ({len(split.negatives):,} scored) AUC "
            f"{found.auc:.3f}, mean reciprocal rank {found.mrr:.3f} among 20 nodes not linked"
        )
    for name, near in likely.items():
        show_ranked(f"Likely links of {printable(name)}", "closeness", near)
