"""The command line. Thin: every command is a few calls of the public API.

Exit codes: 0 all went well, 1 a bug of ours, 2 bad usage or bad input, 130 stopped with Ctrl-C.
"""

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

import nodejepa
from nodejepa.cli.explore import datasets, demo, methods, neighbours
from nodejepa.cli.models import embed, prepare, pretrain, probe
from nodejepa.cli.options import Command
from nodejepa.cli.own_graph import compare, embed_graph, links
from nodejepa.cli.screen import report_failure, report_interrupt, show_warning
from nodejepa.cli.study import report, study
from nodejepa.errors import NodeJEPAError

__all__ = ["app", "main"]

app = typer.Typer(
    name="nodejepa",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: nodejepa demo\n\nExit codes: 0 success, 1 bug, 2 bad usage or bad input, 130 Ctrl-C.",
)
app.add_typer(study, name="study")
_OWN = (demo, embed_graph, compare, prepare, pretrain, embed, probe, report, neighbours, links)
for command in (*_OWN, datasets, methods):
    app.command(command.__name__.replace("_", "-"), cls=Command)(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(nodejepa.__version__)
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_print_version),
]


@app.callback()
def start(
    version: Version = False,  # noqa: ARG001, its callback has done the work
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")] = False,
) -> None:
    """Learn node embeddings of a graph without labels, and compare their scores with untrained baselines."""
    if debug:
        os.environ["NODEJEPA_DEBUG"] = "1"


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and leave with an exit code that scripts can trust."""
    warnings.showwarning = show_warning
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        _require_utf8(given)
        app(args=given, prog_name="nodejepa")
    except (KeyboardInterrupt, SystemExit) as left:
        # Typer makes an exit code of Ctrl-C: what was said with it is found behind
        interrupt = _interrupt(left)
        if interrupt is None:
            raise
        sys.exit(report_interrupt(given, str(interrupt)))
    except Exception as error:
        # Ctrl-C while a library is loaded comes out as whatever the loading then fails with
        sys.exit(report_failure(error) if _interrupt(error) is None else report_interrupt(given))
    sys.exit(0)


def _require_utf8(arguments: Sequence[str]) -> None:
    """Other bytes in a file's name could be opened, but not written into a report after the work."""
    for argument in arguments:
        if not argument.isascii() and argument.encode("utf-8", "replace").decode() != argument:
            shown = argument.encode("utf-8", "backslashreplace").decode()
            raise NodeJEPAError("not UTF-8", where=shown, fix="Rename the file, or reach it by a link.")


def _interrupt(error: BaseException | None) -> KeyboardInterrupt | None:
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error
