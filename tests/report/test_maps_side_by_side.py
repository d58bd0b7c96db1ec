"""Maps side by side in a real browser: one choice of colours, one legend, a node marked in all of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from devtools import CHROMIUM, chromium_page

from nodejepa.graph import Graph
from nodejepa.report import write_report
from nodejepa.report.maps import embedding_map
from nodejepa.report.sections import Chapter, Report

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="needs a browser: apt-get install chromium (.ci/run tries to)"
)
INK = "(c) => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.reduce((a, b) => a + b, 0)"


def drawn(labels=None):
    ring = np.arange(40)
    graph = Graph.from_edges(ring, np.roll(ring, 1), features=np.eye(40))
    angle = 2 * np.pi * ring / 40
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    one = embedding_map(graph, circle, labels=labels, neighbours=False)
    planes = {"raw": circle, "<b>sgc</b>": circle * [1, 0.5], "random-gcn": circle**3}
    return replace(one, projections=planes, side_by_side=True)


@pytest.mark.slow
def test_all_maps_are_shown_and_act_as_one(tmp_path):
    write_report(
        Report("Maps", (Chapter("One", (drawn(np.arange(40) % 2),)), Chapter("Two", (drawn(),)))),
        tmp_path / "r.html",
    )
    with chromium_page(tmp_path / "profile") as page:
        page.open(tmp_path / "r.html", width=1200)
        titles = page.run("[...document.querySelectorAll('#chapter-1 .maps h4')].map((h) => h.textContent)")
        assert titles == ["raw", "<b>sgc</b>", "random-gcn"]
        canvases = "[...document.querySelectorAll('#chapter-1 .maps canvas')]"
        tops = page.run(f"{canvases}.map((c) => Math.round(c.getBoundingClientRect().top))")
        assert len(set(tops)) == 1  # beside each other on a wide screen
        before = page.run(f"{canvases}.map({INK})")
        assert all(before)
        box = page.place(f"{canvases}[0]")
        side = min(box["width"], box["height"]) / 2 - 24
        page.mouse("mouseMoved", box["x"] + box["width"] / 2 + side, box["y"] + box["height"] / 2)
        assert page.run("document.querySelector('#chapter-1 .readout').textContent").startswith(
            "node 0, class 0"
        )
        assert all(a != b for a, b in zip(page.run(f"{canvases}.map({INK})"), before, strict=True))
        assert page.run("document.querySelectorAll('#chapter-1 .tip:not([hidden])').length") == 1
        legend = "[...document.querySelectorAll('#chapter-1 .legend button')]"
        assert page.run(f"{legend}.map((b) => b.textContent)") == ["0", "1"]
        page.click(f"{legend}[0]")
        hidden = page.run(f"{canvases}.map({INK})")
        assert all(a < b for a, b in zip(hidden, before, strict=True))
        page.run(
            "(() => { const s = document.querySelector('#chapter-1 select'); s.value = 'degree';"
            "s.dispatchEvent(new Event('change')); })()"
        )
        assert page.run(f"{legend}.map((b) => b.textContent)") != ["0", "1"]
        page.open(tmp_path / "r.html", width=360)
        assert page.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        tops = page.run(f"{canvases}.map((c) => Math.round(c.getBoundingClientRect().top))")
        assert len(set(tops)) == 3  # below each other on a phone
        said = [text for text in page.problems if "getImageData" not in text]  # which this test asks for
        assert said == []
