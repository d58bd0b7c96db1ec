"""The website in a browser, opened from the disk: phone and screen, light and dark, keyboard, search."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tests.report.devtools import CHROMIUM, chromium_page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium"),
    pytest.mark.skipif(importlib.util.find_spec("furo") is None, reason="needs the extra docs"),
]


def luminance(page) -> float:
    code = "getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).slice(0, 3).map(Number)"
    return sum(page.run(code)) / 3


def test_site_in_a_browser(site: Path, tmp_path: Path) -> None:
    """One browser for all of it."""
    with chromium_page(tmp_path / "profile") as page:
        for dark in (False, True):
            for width in (360, 1440):
                for name in ("index", "how-it-works", "results", "tables", "fidelity", "api/graphs"):
                    page.open(site / "docs" / f"{name}.html", width=width, dark=dark, built="footer")
                    assert page.run("document.documentElement.scrollWidth") <= width, (name, width)
                    assert (luminance(page) < 100) == dark, (name, width)
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
