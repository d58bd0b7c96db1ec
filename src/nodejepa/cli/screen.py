"""Where commands write (results on stdout, all else on stderr), how failures look, and their exit codes."""

import os
import traceback
from collections.abc import Sequence

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from nodejepa.errors import Advice, NodeJEPAError, Setting

stdout = Console()
stderr = Console(stderr=True)

_OPTIONS = {"id_column": "id", "root": "data-root"}
BUG, USER, INTERRUPTED = 1, 2, 130


def say(*parts: str | Text | tuple[str, str], to: Console = stdout) -> None:
    """One line, however long; a part may come with its style."""
    to.print(Text.assemble(*parts), soft_wrap=True)


def counted(number: int, noun: str) -> str:
    """``1 cell``, ``2 cells``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def in_options(message: str) -> str:
    """A message of the library with its settings as the options they are here.

    >>> in_options(Advice("Say ", Setting("weight", False), " or ", Setting("text", "hash"), "."))
    'Say --no-weight or --text hash.'
    """
    return message.worded(_option) if isinstance(message, Advice) else message


def _option(setting: Setting) -> str:
    name, value = _OPTIONS.get(setting.name, setting.name.replace("_", "-")), setting.value
    if setting == Setting("bipartite", False):
        return "--one-id-space"
    if isinstance(value, dict):
        return " ".join(f"--set {key}={changed}" for key, changed in value.items())
    if value is None or isinstance(value, bool):
        return f"--no-{name}" if value is False else f"--{name}"
    return f"--{name} {value or 'COLUMN'}"


def report_error(error: NodeJEPAError) -> int:
    """What is wrong, where and what to do; exit code 2."""
    lines = [("", error.what), ("where: ", error.where), ("fix: ", error.fix)]
    _show("Error", [(label, in_options(text)) for label, text in lines if text], error)
    return USER


def report_os_error(error: OSError) -> int:
    """A file or folder that cannot be used (missing, not writable, disk full): the user's to mend."""
    return report_error(
        NodeJEPAError(
            error.strerror or str(error),
            where=str(error.filename or ""),
            fix="Check the path, its permissions and the free space.",
        )
    )


def report_interrupt(arguments: Sequence[str]) -> int:
    """Ctrl-C: how to go on, where there is anything to go on with."""
    command = next((word for word in arguments if not word.startswith("-")), "")
    again = ""
    if command == "study":
        again = " The same command goes on with what is missing."
    elif command == "compare":
        again = " The same command with --resume keeps the methods that are done."
    elif command in ("embed-graph", "pretrain") and "--check" not in arguments:
        with_resume = "--resume in place of --force" if "--force" in arguments else "--resume"
        again = f" The same command with {with_resume} goes on from the last checkpoint."
    say(f"Stopped.{again}", to=stderr)
    return INTERRUPTED


def report_memory(error: Exception) -> int:
    """The machine, a container or a limit had no memory left: the user's to mend, too."""
    return report_error(
        NodeJEPAError(
            "there was not enough memory (" + " ".join(str(error).split())[:200] + ")",
            fix="Give it more: end other programs, raise the limit (ulimit -v, the container's). Or use a "
            "smaller graph or smaller settings, such as --set encoder.hidden=64.",
        )
    )


def report_bug(error: Exception) -> int:
    """Anything else is ours; exit code 1."""
    lines = [
        ("", f"{type(error).__name__}: {error}"),
        ("", "This is a bug in nodejepa, not your mistake. Please report it with the full output:"),
        ("", "run the same command again with NODEJEPA_DEBUG=1 (or nodejepa --debug COMMAND ...)."),
    ]
    _show("Bug", lines, error)
    return BUG


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
