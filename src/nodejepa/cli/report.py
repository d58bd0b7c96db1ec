"""``nodejepa report``: runs and studies as one interactive page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from nodejepa.cli.catalogue import DataRoot
from nodejepa.cli.screen import stdout

REPORT_EXAMPLES = (
    "Examples:\n\n"
    "nodejepa report runs/digits --out report.html\n\n"
    "nodejepa report first.parquet second.parquet --out both.html   (of embed-graph, compared)\n\n"
    "nodejepa report studies/main runs/photo --out report.html --data-root ~/datasets"
)


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUNS...",
            help="Run folders, study folders and embeddings of embed-graph, in any mixture.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    dataset: Annotated[
        str | None,
        typer.Option(help="Graph of the maps, as `nodejepa datasets` lists it; else found by its hash."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace --out, even if it is no page.")] = False,
    data_root: DataRoot = None,
) -> None:
    """Write one self-contained HTML page: sortable tables, curves, diagnostics, maps of the embeddings."""
    from nodejepa.io.files_in import refuse_other_kind
    from nodejepa.report import write_report
    from nodejepa.study.render.page import build_report

    refuse_other_kind(out, b"<!doctype html", force=force)
    found = build_report(runs, dataset=dataset, data_root=data_root)
    write_report(found, out)
    stdout.print(Text(f"report  {out} ({out.stat().st_size / 2**20:.1f} MB)"), soft_wrap=True)
