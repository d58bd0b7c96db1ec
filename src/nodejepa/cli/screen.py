"""Where commands write: results on stdout, everything else on stderr."""

from rich.console import Console

stdout = Console()
stderr = Console(stderr=True)


def counted(number: int, noun: str) -> str:
    """``1 cell``, ``2 cells``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
