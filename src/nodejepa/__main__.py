"""``python -m nodejepa``."""

from nodejepa.cli import main

if __name__ == "__main__":
    main()
