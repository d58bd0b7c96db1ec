"""Rendered tables inside hand-written pages.

Between two comments of such a page stands what the records say, nothing else:

<!-- table ../studies/main/tables/main.md -->
(replaced)
<!-- end -->
"""

import re
from pathlib import Path

from nodejepa.errors import DataError
from nodejepa.files import write_text

SHOWN = 10  # rows of a table that stand open

_PLACE = re.compile(r"(<!-- table (?P<path>\S+) -->\n)(?P<body>.*?)(<!-- end -->)", re.DOTALL)


def refresh_page(page: str | Path) -> bool:
    """Put the tables that a page names (relative to itself) into their places; True if it changed."""
    text = read_page(page)
    refreshed = _PLACE.sub(lambda place: place[1] + _body(Path(page), place["path"]) + place[4], text)
    if refreshed != text:
        write_text(Path(page), refreshed)
    return refreshed != text


def read_page(page: str | Path) -> str:
    """The text of a page; refused if it has no place for a table."""
    try:
        text = Path(page).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise DataError(
            f"cannot read the page: {why}", where=str(page), fix="Name a Markdown page, e.g. docs/results.md."
        ) from None
    places = _PLACE.findall(text)
    if not places or len(places) != text.count("<!-- table "):
        raise DataError(
            "the page has no place for a table" if not places else "a table's place does not end",
            where=str(page),
            fix="Write <!-- table PATH.md --> and, on a line below, <!-- end -->.",
        )
    return text


def _body(page: Path, path: str) -> str:
    """The table and its notes; the page has headings of its own, and rows after the tenth are folded."""
    try:
        text = (page.parent / path).read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(
            f"cannot read the table {path}: {error.strerror}",
            where=str(page),
            fix="Render its study first: python -m studies.render STUDY.",
        ) from None
    body = re.sub(r"\A# .*\n", "", text).strip("\n")
    lines, _, notes = body.partition("\n\n")
    head, rows = lines.split("\n")[:2], lines.split("\n")[2:]
    if len(rows) <= SHOWN:
        return body + "\n"
    more = ["<details>", f"<summary>{len(rows) - SHOWN} more rows, and notes</summary>", ""]
    folded = [*head, *rows[:SHOWN], "", *more, *head, *rows[SHOWN:], "", notes, "", "</details>"]
    return "\n".join(folded) + "\n"
