"""``python -m studies.render [STUDY ...]``: tables and figures of some studies, or of all, and the pages."""

import argparse
import sys
from pathlib import Path

from nodejepa.errors import NodeJEPAError
from studies.render.contents import render_study
from studies.render.page import read_page, refresh_page

STUDIES = Path(__file__).parents[1]
ROOT = STUDIES.parent


def rendered_studies() -> list[Path]:
    """The folders of the studies that have tables."""
    return sorted(
        path.parent for path in STUDIES.glob("*/records.jsonl") if (path.parent / "tables").is_dir()
    )


def pages() -> list[Path]:
    """The pages of the repository that show rendered tables."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [page for page in found if "<!-- table " in page.read_text(encoding="utf-8")]


def main(arguments: list[str] | None = None) -> None:
    """Render what is asked for; only what changed on a page is written."""
    parser = argparse.ArgumentParser(prog="python -m studies.render", description=__doc__)
    parser.add_argument("study", nargs="*", help="a name or a folder, e.g. main (default: all)")
    asked = parser.parse_args(arguments).study
    folders = [Path(name) if Path(name).is_dir() else STUDIES / name for name in asked] or rendered_studies()
    for page in pages():
        read_page(page)  # what is wrong with one is found before the work
    for folder in folders:
        for path in render_study(folder):
            print(path)
    for page in pages():
        if refresh_page(page):
            print(page)


if __name__ == "__main__":
    try:
        main()
    except NodeJEPAError as error:
        sys.exit(f"{error}")
