"""``nodejepa embed-graph``: a user's own files in, embeddings out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from nodejepa.cli.catalogue import MethodName, Settings, folder_path
from nodejepa.cli.embedded import show_result, show_store
from nodejepa.cli.reading_options import EdgeFile, MemoryLimit, NodeFile, options_given, reads_files
from nodejepa.cli.screen import in_options, say, stderr, stdout
from nodejepa.config import DEFAULT_METHOD

if TYPE_CHECKING:
    from rich.console import Console

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
        ),
    ] = None,
    reading: Any = None,  # the options of reading, see reads_files
    method: MethodName = DEFAULT_METHOD,
    preset: Annotated[str, typer.Option(help="Settings to start from.")] = "default",
    settings: Settings = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs of training.", min=0)] = None,
    dim: Annotated[
        int | None,
        typer.Option(help="Columns: of wider embeddings keep so many principal components.", min=1),
    ] = None,
    clusters: Annotated[
        str | None,
        typer.Option(help="Also group the nodes: a number of groups, or auto.", metavar="auto|K"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of everything random.", min=0)] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    check: Annotated[bool, typer.Option("--check", help="Stop after the data report.")] = False,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write the HTML report.")] = True,
    umap: Annotated[
        bool, typer.Option("--umap", help="Also a UMAP on the map of the report; needs nodejepa[umap].")
    ] = False,
    finetune: Annotated[
        bool, typer.Option("--finetune/--no-finetune", help="With --labels: also fine-tune.")
    ] = True,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was killed.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
    memory_limit: MemoryLimit = None,
    checkpoint_epochs: Annotated[int, typer.Option(help="Epochs between checkpoints.", min=1)] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on stdout.")] = False,
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
    logging = Logging(checkpoint_epochs=checkpoint_epochs, description=f"Training {method}")
    if StoredGraph.is_at(edges):
        for option in [*(["--nodes"] if nodes else []), *options_given(reading)]:
            raise typer.BadParameter(f"{option} does not go with a graph store.")
        if check:
            show_store(StoredGraph(edges), trained, memory_limit, as_json)
            return
        kept = workflow.embed_stored_graph(
            edges,
            out=_require(out),
            run=run,
            clusters=clusters,
            report=report,
            umap=umap,
            resume=resume,
            force=force,
            memory_limit=memory_limit,
            logging=logging,
            **trained,
        )
        _tell(kept, kept.shape, as_json)
        return
    if check:
        estimator = workflow.make_trainable(**trained)
        try:
            found = workflow.inspect_graph(
                edges, nodes, reading, estimator=estimator, memory_limit=memory_limit, describe=False
            )
        except TooLarge as error:  # nothing is wrong with the files: the answer is another road
            if not error.has_road:
                raise
            if as_json:
                answer = {"plan": {"fits": False, "what": error.what, "fix": in_options(error.fix)}}
                typer.echo(json.dumps(answer, indent=2))
            else:
                said = f"{error.what}. {in_options(error.fix)}"
                say(("Does not fit. ", "red"), said)
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
        run=run,
        clusters=clusters,
        report=report,
        umap=umap,
        finetune=finetune,
        resume=resume,
        force=force,
        memory_limit=memory_limit,
        announce=lambda found: show_inspection(stderr, found),
        logging=logging,
        **trained,
    )
    _tell(made, made.embeddings.shape, as_json)


def _require(out: Path | None) -> Path:
    if out is None:
        raise typer.BadParameter(
            "Say where the embeddings go, or --check the graph only.", param_hint="--out"
        )
    return out


def _tell(made: EmbeddedGraph | EmbeddedStore, shape: tuple[int, ...], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(made.manifest, indent=2, allow_nan=False))
    else:
        show_result(made, shape)


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
