"""Where commands write: results on stdout, everything else on stderr."""

from rich.console import Console

stdout = Console()
stderr = Console(stderr=True)
