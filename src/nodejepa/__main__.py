"""``nodejepa`` and ``python -m nodejepa``."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; Ctrl-C while it is still being loaded ends it quietly, too."""
    try:
        from nodejepa.cli import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
