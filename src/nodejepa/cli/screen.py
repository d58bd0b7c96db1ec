"""Where commands write: results on stdout, everything else on stderr."""

from rich.console import Console

from nodejepa.errors import Advice, Setting

stdout = Console()
stderr = Console(stderr=True)

_OPTIONS = {"id_column": "id", "root": "data-root"}


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
