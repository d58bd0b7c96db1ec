"""``nodejepa study`` and ``nodejepa report``: the evidence from one command each, and as a page."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table
from rich.text import Text

from nodejepa.cli.options import Command, DataRoot
from nodejepa.cli.screen import counted, say, stderr, stdout
from nodejepa.errors import ConfigError

if TYPE_CHECKING:
    from nodejepa.study.runner import Worklist
    from nodejepa.study.spec import Cell

study = typer.Typer(
    no_args_is_help=True, help="Run a study: methods, graphs and seeds of a TOML file. Print its table."
)


@study.command(cls=Command)
def run(
    specification: Annotated[
        Path, typer.Argument(metavar="SPEC", help="Study as a TOML file, such as studies/main.toml.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the records (default: SPEC without .toml).")
    ] = None,
    runs: Annotated[
        Path | None, typer.Option(help="Folder for trained models (default: runs, beside SPEC).")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of cells to measure at the same time.")] = 1,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads per cell (default: cores / jobs).")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Run a small version of the study.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the cells that are left and stop.")
    ] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Measure failed cells again.")] = False,
    method: Annotated[list[str] | None, typer.Option(help="Only this method. Repeatable.")] = None,
    dataset: Annotated[list[str] | None, typer.Option(help="Only this graph. Repeatable.")] = None,
    seeds: Annotated[str | None, typer.Option(help='Only these seeds, such as "42-43".')] = None,
    data_root: DataRoot = None,
) -> None:
    """Measure the cells of a study that have no record yet. Run it again after a stop.

    Examples:
        nodejepa study run studies/main.toml --quick
        nodejepa study run studies/main.toml --jobs 2 --dry-run
        nodejepa study run studies/main.toml --jobs 2 --dataset photo --method nodejepa
    """
    from nodejepa.config import parse_seeds
    from nodejepa.study.runner import Folders, check_run, make_worklist, run_study
    from nodejepa.study.spec import load_spec

    spec = load_spec(specification, quick=quick)
    beside = specification.with_suffix("")
    folders = Folders(
        out or (beside.with_name(f"{beside.name}-quick") if quick else beside),
        runs or specification.parent / "runs",
        data_root,
    )
    asked: dict[str, list[Any]] = {"method": method or [], "dataset": dataset or []}
    asked["seed"] = parse_seeds(seeds) if seeds else []
    for what, names in asked.items():
        there = {getattr(cell, what) for cell in spec.cells}
        for name in (name for name in names if name not in there):
            raise ConfigError(
                f"the study has no {what} {name!r}",
                where=str(specification),
                fix=f"It has {', '.join(map(str, sorted(there)))}.",
            )

    def wanted(cell: Cell) -> bool:
        return all(not names or getattr(cell, what) in names for what, names in asked.items())

    work = make_worklist(spec, folders, retry_failed=retry_failed, wanted=wanted)
    say(f"{spec.name}: {spec.summary}", to=stderr)
    check_run(work, folders, jobs)
    if dry_run:
        _show(work, data_root)
        return
    outcome = run_study(
        work,
        folders,
        jobs=jobs,
        threads=threads,
        retry_failed=retry_failed,
        say=lambda line: say(line, to=stderr),
    )
    say(
        f"{counted(outcome['done'], 'cell')} measured, {work.measured} were there before, "
        f"{outcome['FAILED']} failed, {work.failed} had failed before, {outcome['killed']} were killed, "
        f"{outcome['not run']} without data, {outcome['taken by another runner']} taken by another runner. "
        f"Records: {folders.out / 'records.jsonl'}",
        to=stderr,
    )
    if outcome["FAILED"] or outcome["killed"] or work.failed:
        say(
            f"What went wrong is in {folders.runs / 'failures'}. --retry-failed measures failed cells again.",
            to=stderr,
        )
        raise typer.Exit(2)


@study.command(cls=Command)
def table(
    study: Annotated[
        Path, typer.Argument(metavar="STUDY", help="Folder or TOML file of the study, such as studies/main.")
    ],
    form: Annotated[
        Literal["markdown", "csv"], typer.Option("--format", help="markdown or csv.")
    ] = "markdown",
) -> None:
    """Print mean and standard deviation of every method and graph of a study, and the number of seeds.

    Examples:
        nodejepa study table studies/main > main.md
    """
    from nodejepa.report.sections import to_csv, to_markdown
    from nodejepa.study.table import read_study, study_table

    made = study_table(read_study(study))
    typer.echo(to_csv(made) if form == "csv" else to_markdown(made), nl=False)


def _show(work: Worklist, data_root: Path | None) -> None:
    from nodejepa.data.catalogue import CATALOGUE

    table = Table("method", "graph", "split", "cells", "graph is here")
    counts = Counter(
        (f"{c.method} ({c.variant})" if c.variant else c.method, c.dataset, c.split) for c in work.cells
    )
    for (name, graph, split), count in counts.items():
        here = "yes" if CATALOGUE[graph].is_present(data_root) else "no"
        table.add_row(Text(name), graph, split, str(count), here)
    stdout.print(table)
    stdout.print(f"{counted(len(work.cells), 'cell')} left, {work.measured} measured.")


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUNS",
            help="Model folders and files of embeddings.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="HTML file to write.")] = Path("report.html"),
    force: Annotated[bool, typer.Option("--force", help="Replace --out, even if it is no report.")] = False,
    data_root: DataRoot = None,
) -> None:
    """Write a report as one HTML file: tables, training curves, collapse checks and maps.

    Examples:
        nodejepa report runs/digits --out report.html
        nodejepa report first.parquet second.parquet --out both.html
        nodejepa report runs/photo --out report.html --data-root ~/datasets
    """
    from nodejepa.report import write_report
    from nodejepa.report.runs import build_report
    from nodejepa.tables.table import refuse_other_kind

    refuse_other_kind(out, b"<!doctype html", force=force)
    found = build_report(runs, data_root)
    write_report(found, out)
    say(f"report  {out} ({out.stat().st_size / 2**20:.1f} MB)")
