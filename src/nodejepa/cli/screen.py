"""Where commands write (results on stdout, all else on stderr), how failures look, and their exit codes."""

from __future__ import annotations

import json
import os
import re
import traceback
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from nodejepa.errors import NodeJEPAError
from nodejepa.machine import ran_out

if TYPE_CHECKING:
    from nodejepa.report.sections import ReportTable

stdout = Console()
stderr = Console(stderr=True)

_OPTIONS = {"id_column": "id", "root": "data-root"}  # that are called otherwise in Python
_NAMES = frozenset(
    (
        *("source", "target", "weight", "id_column", "labels", "drop", "directed", "text", "text_columns"),
        *("scale", "bipartite", "structural", "header", "delimiter"),
        *("out", "run", "runs", "method", "preset", "dim", "score", "use", "resume", "force"),
        *("root", "data_root", "dataset", "memory_limit"),
    )
)
_SETTING = re.compile(r"""(?<![\w.'-])([a-z_]+(?:\.[a-z_]+)*)=(\.\.\.|"[^"]*"|\w+(?:[.,-]\w+)*)""")
BUG, USER, INTERRUPTED = 1, 2, 130


def say(*parts: str | Text | tuple[str, str], to: Console = stdout) -> None:
    """One line, however long; a part may come with its style."""
    to.print(Text.assemble(*parts), soft_wrap=True)


def advise(message: str, *, to: Console = stdout) -> None:
    """One line that may name settings, as options."""
    say(in_options(message), to=to)


def show_notes(notes: Iterable[str], warnings: Iterable[str], *, to: Console = stderr) -> None:
    """What was guessed or left out while files were read, and what somebody has to decide."""
    for note in notes:
        advise(f"- {note}", to=to)
    for warning in warnings:
        say(("Note: ", "yellow"), in_options(warning), to=to)


def print_json(value: Any) -> None:
    """For programs, and nothing else on stdout."""

    def plain(other: Any) -> Any:
        return other.item() if hasattr(other, "item") else str(other)

    typer.echo(json.dumps(value, indent=2, allow_nan=False, default=plain))


def printable(name: object) -> str:
    """An id for the screen: control characters, which could drive the terminal, are written out."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in str(name)
    )


def show_table(table: ReportTable, *, without: Sequence[str] = ()) -> None:
    """A table of a report, but for some columns; rows with a mark are bold."""
    shown = [i for i, column in enumerate(table.columns) if column.title not in without]
    drawn = Table(title=Text(table.title), box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in (table.columns[i] for i in shown):
        whole = column.left or len(column.parts) > 1  # of the others the heading may be broken
        drawn.add_column(Text(column.title), justify="left" if column.left else "right", no_wrap=whole)
    for row in table.rows:
        drawn.add_row(*(Text(row[i].text) for i in shown), style="bold" if row[0].mark else None)
    stdout.print(drawn)


def show_ranked(title: str, score: str, rows: Iterable[tuple[object, float]]) -> None:
    """Nodes from the first on, with their scores."""
    table = Table(title=Text(title))
    table.add_column("", justify="right")
    table.add_column("id", overflow="fold")
    table.add_column(score, justify="right")
    for place, (name, value) in enumerate(rows, start=1):
        table.add_row(str(place), Text(printable(name)), f"{value:.4f}")
    stdout.print(table)


def counted(number: int, noun: str) -> str:
    """``1 cell``, ``2 cells``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def in_options(message: str) -> str:
    """A message of the library with its settings, ``name=value``, as the options they are here.

    >>> in_options('Say weight=False or text="hash", or choose another out=... and encoder.hidden=64.')
    'Say --no-weight or --text hash, or choose another --out and --set encoder.hidden=64.'
    """
    return _SETTING.sub(_option, message)


def _option(found: re.Match[str]) -> str:
    name, value = found[1], found[2].strip('"')
    if "." in name:
        return f"--set {name}={value}"
    if name not in _NAMES:
        return found[0]
    if found[0] == "bipartite=False":
        return "--one-id-space"
    option = _OPTIONS.get(name, name.replace("_", "-"))
    if value in ("True", "..."):
        return f"--{option}"
    return f"--no-{option}" if value == "False" else f"--{option} {value}"


def report_failure(error: Exception) -> int:
    """What is wrong, where and what to do, and the exit code: 2 for what the user can mend, 1 for a bug."""
    if ran_out(error):
        why = " ".join(str(error).split())[:200]
        error = NodeJEPAError(
            f"there was not enough memory ({why})",
            fix="Give it more: end other programs, raise the limit (ulimit -v, the container's). Or use a "
            "smaller graph or smaller settings, such as encoder.hidden=64.",
        )
    elif isinstance(error, OSError):  # missing, not writable, disk full
        where = str(error.filename or "")
        fix = "Check the path, its permissions and the free space."
        error = NodeJEPAError(error.strerror or str(error), where=where, fix=fix)
    if isinstance(error, NodeJEPAError):
        lines = [("", error.what), ("where: ", error.where), ("fix: ", error.fix)]
        _show("Error", [(label, in_options(text)) for label, text in lines if text], error)
        return USER
    lines = [
        ("", f"{type(error).__name__}: {error}"),
        ("", "This is a bug in nodejepa, not your mistake. Please report it with the full output:"),
        ("", "run the same command again with NODEJEPA_DEBUG=1 (or nodejepa --debug COMMAND ...)."),
    ]
    _show("Bug", lines, error)
    return BUG


def report_interrupt(arguments: Sequence[str], said: str = "") -> int:
    """Ctrl-C: what is kept and how to go on, where there is anything to go on with."""
    command = next((word for word in arguments if not word.startswith("-")), "")
    again = ""
    if command == "study":
        again = " The same command goes on with what is missing."
    elif command == "compare":
        again = " The same command with --resume keeps the methods that are done."
    elif command in ("embed-graph", "pretrain") and "--check" not in arguments:
        with_resume = "--resume in place of --force" if "--force" in arguments else "--resume"
        where = "with the scores" if said else "from the last checkpoint"
        again = f" The same command with {with_resume} goes on {where}."
    say(f"{said or 'Stopped.'}{again}", to=stderr)
    return INTERRUPTED


def show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """A warning in one sentence, without file and line of the code that gave it."""
    say(("Warning: ", "yellow"), str(message), to=stderr)


def _show(title: str, lines: list[tuple[str, str]], error: Exception) -> None:
    if os.environ.get("NODEJEPA_DEBUG"):
        say("".join(traceback.format_exception(error)), to=stderr)
    body = Text("\n").join(Text.assemble((label, "bold"), text) for label, text in lines)
    if stderr.is_terminal:
        stderr.print(Panel(body, title=title, title_align="left", border_style="red"))
    else:  # no box: a script may want to search it
        say(f"{title}: ", body, to=stderr)
