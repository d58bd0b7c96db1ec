"""``nodejepa demo``: the whole path on the built-in graph, in a minute or two."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from nodejepa.cli.screen import stderr, stdout


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the embeddings and the report.")] = Path("demo"),
) -> None:
    """Embed the built-in graph `digits`, score it with few labels, write embeddings and a report."""
    stderr.print("Embedding 1,797 handwritten digits and probing with few labels: about a minute")
    from nodejepa.demo import SHOTS, accuracy, run_demo

    found = run_demo(out)
    table = Table(title="digits: test accuracy (%), mean ± std over draws of the labels")
    table.add_column("method")
    for shots in SHOTS:
        table.add_column(f"{shots} labels per class", justify="right")
    for row in found.rows:
        table.add_row(row.method, *(accuracy(row.few_shot[shots]) for shots in SHOTS))
    stdout.print(table)
    stdout.print(Text(found.comparison))
    for path in found.files:
        stdout.print(Text(f"graph       {path}"), soft_wrap=True)
    for row in found.rows:
        stdout.print(Text(f"embeddings  {row.path}"), soft_wrap=True)
    stdout.print(Text(f"report      {found.report}"), soft_wrap=True)
