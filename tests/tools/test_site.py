"""The website builds without a warning, reads without a network, and shows what it should."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.report.devtools import CHROMIUM, Page, chromium_page

import nodejepa

ROOT = Path(__file__).parents[2]
NEEDED = ("sphinx", "furo", "myst_parser", "sphinx_copybutton", "latex2mathml")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (extra docs)")
def test_the_site_builds_without_a_warning_and_shows_what_it_should(tmp_path: Path) -> None:
    """One build for all of it; broken links are warnings, too, and there is no network."""
    site, nowhere = tmp_path / "site", {f"{way}_proxy": "http://127.0.0.1:9" for way in ("http", "https")}
    options = ["-q", "-W", "--keep-going", "-c", "docs", "-d", str(tmp_path / "doctrees")]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, ".", str(site)],
        cwd=ROOT,
        env=os.environ | nowhere,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    check_pages_load_nothing_from_elsewhere_and_describe_their_images(site)
    check_every_page_is_in_the_menu(site)
    check_settings_have_names_defaults_and_meanings(site)
    check_reference_shows_every_public_name(site)
    if CHROMIUM is not None:
        with chromium_page(tmp_path / "profile") as page:
            check_pages_in_a_browser(page, site)


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


def check_pages_load_nothing_from_elsewhere_and_describe_their_images(site: Path) -> None:
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


def check_every_page_is_in_the_menu(site: Path) -> None:
    menu = (site / "docs" / "index.html").read_text(encoding="utf-8").partition("<article")[0]
    for page in {*ROOT.glob("docs/**/*.md")} - {ROOT / "docs" / "index.md"}:
        assert f'href="{page.relative_to(ROOT / "docs").with_suffix(".html")}"' in menu, page


def check_settings_have_names_defaults_and_meanings(site: Path) -> None:
    shown = re.sub(r"<[^>]+>", "", (site / "docs" / "api" / "settings.html").read_text(encoding="utf-8"))
    for name in ("masking.ratio", "training.epochs", "predictability", "loss.covariance_over"):
        assert re.search(rf"^{name}$", shown, flags=re.MULTILINE), name
    assert "features from the context encoder; off: ablation E" in shown


def check_reference_shows_every_public_name(site: Path) -> None:
    shown = "".join(page.read_text(encoding="utf-8") for page in (site / "docs" / "api").glob("*.html"))
    for name in set(nodejepa.__all__) - {"__version__"}:
        assert re.search(rf'id="nodejepa\.[\w.]*{name}"|>nodejepa\.{name}<', shown), name
    assert ":class:" not in shown
    assert ".. math::" not in shown
    assert "<math" in shown


LUMINANCE = (
    "getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).slice(0, 3)"
    ".reduce((sum, part) => sum + Number(part) / 3, 0)"
)


def check_pages_in_a_browser(page: Page, site: Path) -> None:
    """Phone and screen, light and dark, keyboard and search, opened from the disk."""
    for dark, width in ((False, 1440), (True, 360)):
        for name in ("index", "how-it-works", "results", "tables", "fidelity", "api/graphs"):
            page.open(site / "docs" / f"{name}.html", width=width, dark=dark, built="footer")
            assert page.run("document.documentElement.scrollWidth") <= width, (name, width)
            assert (page.run(LUMINANCE) < 100) == dark, (name, width)
            page.run("localStorage.clear()")

    page.open(site / "docs" / "index.html", width=1440, built="footer")
    seen = set()
    for _ in range(12):
        page.press("Tab")
        facts = page.run(
            "(() => { const e = document.activeElement, s = getComputedStyle(e);"
            "return [e.textContent.trim().slice(0, 40), s.outlineStyle, parseFloat(s.outlineWidth)]; })()"
        )
        seen.add(facts[0])
        assert facts[1] == "solid", facts
        assert facts[2] >= 2, facts
    assert len(seen) > 5

    page.open(site / "search.html", width=1440, built="footer")
    page.run("void (location.search = '?q=collapse')")
    page.wait("document.querySelectorAll('#search-results li').length > 2")
    elsewhere = [r for r in page.requests if not r.startswith(("file:", "data:", "about:", "blob:"))]
    assert elsewhere == []
    assert page.problems == []


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
