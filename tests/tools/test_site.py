"""The website builds without a warning, reads without a network, and shows what it should."""

from __future__ import annotations

import importlib.util
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import nodejepa

ROOT = Path(__file__).parents[2]
NEEDED = ("sphinx", "furo", "myst_parser", "sphinx_copybutton", "latex2mathml")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
needs_sphinx = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (extra docs)")


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
@needs_sphinx
def test_pages_load_nothing_from_elsewhere_and_describe_their_images(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        loads = Loads()
        loads.feed(page.read_text(encoding="utf-8"))
        assert [a for a in loads.addresses if re.match(r"(https?:)?//", a)] == [], page
        for address in loads.addresses:
            assert (page.parent / address.split("?")[0].split("#")[0]).exists(), (page, address)
        for image, words in loads.images.items():
            assert len(words or "") > 20, (page, image)


@pytest.mark.slow
@needs_sphinx
def test_every_page_is_in_the_menu(site: Path) -> None:
    menu = (site / "docs" / "index.html").read_text(encoding="utf-8").partition("<article")[0]
    for page in {*ROOT.glob("docs/**/*.md")} - {ROOT / "docs" / "index.md"}:
        assert f'href="{page.relative_to(ROOT / "docs").with_suffix(".html")}"' in menu, page


@pytest.mark.slow
@needs_sphinx
def test_settings_have_names_defaults_and_meanings(site: Path) -> None:
    shown = re.sub(r"<[^>]+>", "", (site / "docs" / "api" / "settings.html").read_text(encoding="utf-8"))
    for name in ("masking.ratio", "training.epochs", "predictability", "loss.covariance_over"):
        assert re.search(rf"^{name}$", shown, flags=re.MULTILINE), name
    assert "features from the context encoder; off: ablation E" in shown


@pytest.mark.slow
@needs_sphinx
def test_reference_shows_every_public_name(site: Path) -> None:
    shown = "".join(page.read_text(encoding="utf-8") for page in (site / "docs" / "api").glob("*.html"))
    for name in set(nodejepa.__all__) - {"__version__"}:
        assert re.search(rf'id="nodejepa\.[\w.]*{name}"|>nodejepa\.{name}<', shown), name
    assert ":class:" not in shown
    assert ".. math::" not in shown
    assert "<math" in shown


@pytest.mark.slow
def test_figures_are_drawn_by_their_script() -> None:
    """``python -m tools.figures`` writes them again."""
    from tools.figures import FOLDER, figures

    drawn = figures()
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(drawn)
    for name, svg in drawn.items():
        assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == svg, name


def test_every_page_is_short() -> None:
    """The log and the tables are as long as they are; code and rows of tables do not count."""
    long = {"log", "tables", "recipe"}
    for page in ROOT.glob("docs/*.md"):
        prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        lines = [line for line in prose.splitlines() if not line.startswith("|")]
        assert page.stem in long or len(lines) <= 80, page


def test_the_prose_of_the_results_quotes_no_accuracy() -> None:
    """Numbers stand in rendered tables, which follow the records; decimals elsewhere would not."""
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    prose = re.sub(r"<!-- table .*?<!-- end -->", "", text, flags=re.DOTALL)
    assert re.findall(r"\d+\.\d+", prose) == []
