"""``nodejepa compare``: which embedding of my graph should I trust?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodejepa.cli.embed_graph import show_inspection
from nodejepa.cli.options import (
    AsJSON,
    Device,
    EdgeFile,
    Force,
    MemoryLimit,
    NodeFile,
    Seed,
    Use,
    folder_path,
    reads_files,
)
from nodejepa.cli.screen import say, show_table, stderr

if TYPE_CHECKING:
    from nodejepa.workflow import Comparison, MethodRow

COMPARE_EXAMPLES = (
    "Examples:\n\n"
    "nodejepa compare --edges edges.csv --nodes nodes.csv --out compared --minutes 10\n\n"
    "nodejepa compare --edges edges.csv --nodes nodes.csv --labels team --methods sgc,dgi --out compared"
)
_LEFT_OUT = ("balanced %", "F1 %", "ROC-AUC %")  # of a terminal's width; report and results have them


@reads_files()
def compare(
    edges: EdgeFile,
    out: Annotated[
        Path,
        typer.Option(
            help="Folder of models, scores, report and embeddings.", parser=folder_path, metavar="PATH"
        ),
    ],
    nodes: NodeFile = None,
    reading: Any = None,  # the options of reading, see reads_files
    use: Use = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Names that `nodejepa methods` lists, separated by commas (default: linear-jepa, untrained "
            "baselines, nodejepa, patchjepa).",
            metavar="NAMES",
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Epochs of every method trained by gradient descent.", min=0)
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(help="Skip methods that would, by estimate, take longer than this.", metavar="N"),
    ] = None,
    seed: Seed = 0,
    device: Device = "auto",
    resume: Annotated[bool, typer.Option("--resume", help="Go on: methods that are done are kept.")] = False,
    force: Force = False,
    memory_limit: MemoryLimit = None,
    as_json: AsJSON = False,
) -> None:
    """Compare embeddings of your own graph, with or without labels, and say which one to take."""
    from nodejepa import workflow

    chosen = workflow.COMPARED if methods is None else [name.strip() for name in methods.split(",")]
    made = workflow.compare_files(
        edges,
        nodes,
        reading,
        out=out,
        use=use,
        methods=chosen,
        epochs=epochs,
        minutes=minutes,
        seed=seed,
        device=device,
        resume=resume,
        force=force,
        memory_limit=memory_limit,
        inspected=lambda found: show_inspection(stderr, found),
        announce=say_row,
    )
    if as_json:
        typer.echo(json.dumps(made.to_dict(), indent=2, allow_nan=False))
        return
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
    found = comparison_table(made.rows, chosen.method, made.split)
    show_table(found, without=_LEFT_OUT)
    for words in found.notes:
        say((words, "dim"), to=stderr)
    for words in (*made.notes, *problems(made.rows)):
        say(("Note: ", "yellow"), words, to=stderr)
    for words in chosen.words:
        say(words)
    for name, file in (("embeddings", EMBEDDINGS), ("report", PAGE), ("results", RESULT)):
        say(f"{name:11}{out / file}")
