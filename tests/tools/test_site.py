"""The website builds without a warning, reads without a network, and shows what it should."""

from __future__ import annotations

import importlib.util
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tools.docstrings import readable

import nodejepa

ROOT = Path(__file__).parents[2]
NEEDED = ("mkdocs", "material", "mkdocstrings_handlers")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
needs_mkdocs = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (extra docs)")


class Loads(HTMLParser):
    """What a page loads, and the alternative texts of its images."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.images: dict[str, str | None] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        facts = dict(attrs)
        address = facts.get("src") or (facts.get("href") if tag == "link" else None)
        if address and facts.get("rel") != "canonical":
            self.addresses.append(address)
        if tag == "img":
            self.images[facts["src"] or ""] = facts.get("alt")


@pytest.mark.slow
@needs_mkdocs
def test_pages_load_nothing_from_elsewhere_and_describe_their_images(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        loads = Loads()
        loads.feed(page.read_text(encoding="utf-8"))
        assert [a for a in loads.addresses if re.match(r"(https?:)?//", a)] == [], page
        if page.name == "404.html":  # its addresses are those of a server's root
            continue
        for address in loads.addresses:
            assert (page.parent / address.split("?")[0].split("#")[0]).exists(), (page, address)
        for image, words in loads.images.items():
            assert len(words or "") > 20, (page, image)


@pytest.mark.slow
@needs_mkdocs
def test_reference_shows_every_public_name(site: Path) -> None:
    shown = "".join(page.read_text(encoding="utf-8") for page in (site / "api").glob("*.html"))
    for name in set(nodejepa.__all__) - {"__version__"}:
        assert re.search(rf'id="nodejepa\.[\w.]*{name}"|<code>nodejepa\.{name}</code>', shown), name
    assert ":class:" not in shown
    assert ".. math::" not in shown


def test_docstrings_become_markdown() -> None:
    text = "Makes a :class:`~nodejepa.Graph`.\n\n.. math::\n\n    a = b\n\n>>> 1 + 1\n2\n\nMore.\n"
    assert readable(text) == (
        "Makes a `nodejepa.Graph`.\n\n```text\na = b\n```\n\n```python\n>>> 1 + 1\n2\n```\n\nMore.\n"
    )


@pytest.mark.slow
def test_figures_are_drawn_by_their_script() -> None:
    """``python -m tools.figures`` writes them again."""
    from tools.figures import FOLDER, figures

    drawn = figures()
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(drawn)
    for name, svg in drawn.items():
        assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == svg, name


def test_every_page_is_short() -> None:
    """Results, records of the work and the paper's statements are as long as they are; code and rows of
    tables do not count."""
    long = {"results", "log", "fidelity", "decisions", "recipe"}
    for page in ROOT.glob("docs/*.md"):
        prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        lines = [line for line in prose.splitlines() if not line.startswith("|")]
        assert page.stem in long or len(lines) <= 80, page


def test_the_prose_of_the_results_quotes_no_accuracy() -> None:
    """Numbers stand in rendered tables, which follow the records; decimals elsewhere would not."""
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    prose = re.sub(r"<!-- table .*?<!-- end -->", "", text, flags=re.DOTALL)
    assert re.findall(r"\d+\.\d+", prose) == []
