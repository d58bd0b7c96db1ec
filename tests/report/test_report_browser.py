"""The report in a real browser: sorting, filtering, hovering, the keyboard, a phone, and hostile names."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from devtools import CHROMIUM, Page, chromium_page

from nodejepa.graph import Graph
from nodejepa.report import write_report
from nodejepa.report.maps import embedding_map, error_sections
from nodejepa.report.sections import (
    Chapter,
    Column,
    Curves,
    Dot,
    DotPlot,
    Facts,
    Report,
    ReportTable,
    Series,
    SortableTable,
    TableCell,
    Text,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None, reason="needs a browser: apt-get install chromium (.ci/run tries to)"
    ),
]

HOSTILE = "<script>alert(1)</script>"
ENDING = "</script><img src=x onerror=alert(2)>\"'&\u2028"
ROWS = {"dgi": 80.5, "bgrl": 9.25, "sgc": None, HOSTILE: 101.0, ENDING: 77.0}


def report() -> Report:
    """Every kind of section, with hostile strings wherever data goes."""
    rows = tuple(
        (TableCell.name(name), TableCell.name("photo" if i % 2 else "cs"), TableCell.number(value))
        for i, (name, value) in enumerate(ROWS.items())
    )
    columns = (Column.name("method"), Column.name("dataset"), Column("accuracy"))
    table = SortableTable(ReportTable("t", f"Scores {HOSTILE}", columns, (rows,), (ENDING,)))
    ring = np.arange(40)
    graph = Graph.from_edges(
        ring, np.roll(ring, 1), features=np.eye(40), node_ids=[HOSTILE, ENDING, *map(str, range(2, 40))]
    )
    angle = 2 * np.pi * ring / 40
    circle = np.stack([np.cos(angle), 0.8 * np.sin(angle)], axis=1)
    labels = np.repeat([0, 1], 20)
    predicted = np.where(ring % 10 == 0, 1 - labels, labels)
    names = (HOSTILE, ENDING)
    drawn = embedding_map(graph, circle, labels=labels, class_names=names, predicted=predicted)
    lines = [Series(HOSTILE, [1, 2, 3], [1.0, 0.5, 0.25]), Series(ENDING, [1, 2, 3], [2.0, None, 0.125])]
    chapters = (
        Chapter("Tables", (Text((HOSTILE, ENDING), tone="warning"), table)),
        Chapter(
            f"Run {ENDING}",
            (
                Facts(HOSTILE, {ENDING: HOSTILE}, folded=True),
                Curves("Training", "epoch", {HOSTILE: lines}, ENDING),
                DotPlot("Dots", "%", {ENDING: [Dot(HOSTILE, 80.0, 1.0, (79.0, 81.0), "#000000")]}),
                drawn,
                *error_sections(labels, predicted, names),
            ),
            subtitle=HOSTILE,
        ),
    )
    return Report(f"Test {HOSTILE}", chapters, ENDING, ENDING)


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(report(), path)
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium_page(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def page(browser: Page, file: Path):
    """The report, freshly opened; whatever a test did, nothing went wrong and nothing was fetched."""
    browser.problems.clear()
    browser.requests.clear()
    browser.open(file)
    yield browser
    browser.run("0")  # collects what is still on its way
    assert browser.problems == []
    assert [address for address in browser.requests if not address.startswith("data:")] == [file.as_uri()]


TABLE = "document.querySelector('.section.table')"
INK = "(c) => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.reduce((a, b) => a + b, 0)"
CANVAS = "document.querySelector('.map canvas')"


def methods(page: Page) -> list[str]:
    return page.run(f"[...{TABLE}.querySelectorAll('tbody tr')].map((row) => row.cells[0].textContent)")


def head(column: int) -> str:
    return f"{TABLE}.querySelectorAll('thead button')[{column}]"


def sorting(page: Page) -> list[str]:
    return page.run(f"[...{TABLE}.querySelectorAll('th')].map((th) => th.getAttribute('aria-sort'))")


def test_a_click_on_a_header_sorts_by_number_and_turns_round(page):
    assert methods(page) == list(ROWS)
    page.click(head(2))
    assert methods(page) == [HOSTILE, "dgi", ENDING, "bgrl", "sgc"]  # not as text; the empty one last
    assert sorting(page) == ["none", "none", "descending"]
    page.click(head(2))
    assert methods(page) == ["bgrl", ENDING, "dgi", HOSTILE, "sgc"]
    assert sorting(page) == ["none", "none", "ascending"]
    page.click(head(0))
    assert methods(page)[-3:] == ["bgrl", "dgi", "sgc"]
    assert sorting(page) == ["ascending", "none", "none"]


def test_text_filters_rows(page):
    page.click(f"{TABLE}.querySelector('input')")
    page.type("DG")
    assert methods(page) == ["dgi"]
    assert page.run(f"{TABLE}.querySelector('.count').textContent") == "1 of 5 rows"
    page.type("zzz")
    assert methods(page) == ["No row fits the filter."]


def test_the_keyboard_reaches_and_sorts(page):
    for _ in range(60):
        page.press("Tab")
        if page.run(f"document.activeElement === {head(2)}"):
            break
    assert page.run("document.activeElement.textContent") == "accuracy"
    page.press("Enter", "\r")
    assert methods(page)[0] == HOSTILE
    seen = set()
    for _ in range(80):
        page.press("Tab")
        seen.add(page.run("document.activeElement.tagName.toLowerCase()"))
    assert {"canvas", "svg", "select", "button", "input", "summary"} <= seen


def test_a_hovered_node_says_what_it_is(page):
    box = page.place(CANVAS)
    tip = "document.querySelector('.map .tip')"
    found = set()
    for share in np.linspace(0, 1, 41):  # along the top half of the ring
        angle = np.pi * share
        radius = min((box["width"] - 48) / 2, (box["height"] - 48) / 1.6)
        x = box["x"] + box["width"] / 2 + radius * np.cos(angle)
        y = box["y"] + box["height"] / 2 - 0.8 * radius * np.sin(angle)
        page.mouse("mouseMoved", x, y)
        if not page.run(f"{tip}.hidden"):
            text = page.run(f"{tip}.textContent")
            found.add(text)
            assert page.run("document.querySelector('.readout').textContent") == text.replace("\n", ", ")
    assert len(found) >= 19
    assert "node 5\nclass <script>alert(1)</script>\ndegree 2\npredicted right" in found
    assert f"node {HOSTILE}\nclass {HOSTILE}\ndegree 2\npredicted {ENDING} (wrong)" in found
    page.mouse("mouseMoved", box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.run(f"{tip}.hidden")


def test_arrow_keys_walk_over_the_map(page):
    page.run(f"{CANVAS}.focus()")
    readout = "document.querySelector('.readout').textContent"
    seen = []
    for key in ("ArrowRight", "ArrowUp", "ArrowUp", "ArrowLeft", "ArrowLeft"):
        page.press(key)
        seen.append(page.run(readout))
    assert all(text.startswith("node ") and "degree 2" in text for text in seen)
    assert len(set(seen)) == len(seen)
    page.press("Escape")
    assert page.run(readout) == ""


def pixels(page: Page) -> str:
    return page.run(f"{CANVAS}.toDataURL()")


def test_the_map_zooms_pans_recolours_and_hides_classes(page):
    shown = [pixels(page)]
    page.run(f"{CANVAS}.focus()")
    page.press("+")
    shown.append(pixels(page))
    box = page.place(CANVAS)
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse("mousePressed", *middle)
    page.mouse("mouseMoved", middle[0] + 80, middle[1] + 40)
    page.mouse("mouseReleased", middle[0] + 80, middle[1] + 40)
    shown.append(pixels(page))
    page.press("0")
    assert pixels(page) == shown[0]
    for choice, values in ((0, ("degree", "error")), (1, ("1",))):
        for value in values:
            change = f"(() => {{ const s = document.querySelectorAll('.map.section select')[{choice}]; "
            page.run(change + f"s.value = '{value}'; s.dispatchEvent(new Event('change')); }})()")
            shown.append(pixels(page))
    page.click("document.querySelector('.map.section .legend button')")
    assert page.run("document.querySelector('.map.section .legend button').ariaPressed") == "false"
    shown.append(pixels(page))
    assert len(set(shown)) == len(shown)


def test_a_node_is_found_by_its_id(page):
    field = "document.querySelector('.map.section input[type=search]')"
    for wanted, says in (("17", "node 17, "), ("nobody", "No node nobody is drawn.")):
        page.click(field)
        page.run(f"{field}.value = ''")
        page.type(wanted)
        page.press("Enter", "\r")
        assert page.run("document.querySelector('.readout').textContent").startswith(says)


def test_curves_tell_their_values_to_pointer_and_keyboard(page):
    chart = "document.querySelector('.section.curves svg[tabindex]')"
    tip = "document.querySelector('.section.curves .tip').textContent"
    box = page.place(chart)
    page.mouse("mouseMoved", box["x"] + box["width"] - 16, box["y"] + 50)
    assert page.run(tip) == f"epoch 3\n{HOSTILE} 0.25\n{ENDING} 0.125"
    page.run(f"{chart}.focus()")
    page.press("ArrowLeft")
    assert page.run(tip) == f"epoch 2\n{HOSTILE} 0.5"
    before = page.run(f"{chart}.querySelector('path').getAttribute('d')")
    page.click("document.querySelector('.section.curves .panel-head button')")
    assert page.run(f"{chart}.querySelector('path').getAttribute('d')") != before


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_shows_all_without_scrolling_sideways(browser, file, dark):
    browser.problems.clear()
    browser.open(file, width=360, height=740, dark=dark)
    browser.run("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    assert browser.run("document.documentElement.scrollWidth <= window.innerWidth")
    assert browser.run(
        "[...document.querySelectorAll('.section')].every((s) => s.getBoundingClientRect().right <= 360)"
    )
    colour = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (colour == "rgb(18, 22, 28)") == dark
    assert base64.b64decode(browser.screenshot()).startswith(b"\x89PNG")
    assert browser.problems == []


def test_a_phone_cuts_no_column_off(browser, tmp_path):
    titles = ["run", "method", "graph", *(f"quite a long measure {i} %" for i in range(6))]
    columns = (*map(Column.name, titles[:3]), *map(Column, titles[3:]))
    rows = tuple(
        (
            TableCell.name(f"run-{i}"),
            TableCell.name("linear-jepa"),
            TableCell.name(ENDING),
            *map(TableCell.number, [80.0 + i] * 6),
        )
        for i in range(3)
    )
    wide = SortableTable(ReportTable("wide", "Wide", columns, (rows,), ()))
    narrow = SortableTable(ReportTable("narrow", "Narrow", columns[:2], (tuple(r[:2] for r in rows),), ()))
    path = tmp_path / "wide.html"
    write_report(Report("Wide", (Chapter("c", (wide, narrow)),)), path)
    cells = "[...document.querySelectorAll('.section.table td, .section.table th')]"
    inside = (
        f"{cells}.map((cell) => cell.getBoundingClientRect()).every((b) => b.left >= 0 && b.right <= 360)"
    )
    stacked = "[...document.querySelectorAll('.scroll')].map((box) => box.classList.contains('stacked'))"
    browser.open(path, width=360, height=740)
    browser.wait(f"{stacked}[0]")
    assert browser.run(inside)
    assert browser.run(stacked) == [True, False]  # what fits stays a table
    assert (
        browser.run("getComputedStyle(document.querySelector('.stacked td'), '::before').content") == '"run"'
    )
    browser.click("document.querySelectorAll('.stacked th button')[3]")  # sorts, as ever
    assert browser.run("document.querySelector('.stacked tbody td').textContent") == "run-2"
    browser.open(path, width=1440, height=740)
    assert browser.run(stacked) == [False, False]


def test_a_finger_reads_the_map_and_the_curves(browser, file):
    browser.problems.clear()
    browser.open(file, width=360, height=740, touch=True)
    box = browser.place(CANVAS)
    radius = min((box["width"] - 48) / 2, (box["height"] - 48) / 1.6)
    browser.tap(box["x"] + box["width"] / 2 + radius, box["y"] + box["height"] / 2)
    assert browser.run("document.querySelector('.readout').textContent").startswith("node ")
    assert not browser.run("document.querySelector('.map .tip').hidden")
    box = browser.place("document.querySelector('.section.curves svg[tabindex]')")
    browser.tap(box["x"] + box["width"] - 16, box["y"] + 50)
    tip = "document.querySelector('.section.curves .tip')"
    assert browser.run(f"{tip}.textContent").startswith("epoch 3")
    assert not browser.run(f"{tip}.hidden")
    assert browser.problems == []


def test_hostile_names_stay_text(page):
    assert page.run("document.querySelectorAll('img').length") == 0
    assert page.run("document.querySelectorAll('script').length") == 2
    assert page.run("document.title") == f"Test {HOSTILE}"
    assert page.run("document.querySelector('h1').textContent") == f"Test {HOSTILE}"
    text = page.run("document.querySelector('main').textContent")
    assert text.count(HOSTILE) > 10
    assert text.count(ENDING) > 10


def test_nothing_else_would_run_if_it_got_in(browser, file):
    """The content security policy, not only the escaping."""
    browser.open(file)
    browser.problems.clear()
    browser.run(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.broken = 1';"
        "document.body.append(s); })()"
    )
    assert browser.run("window.broken === undefined")
    assert any("Content Security Policy" in problem for problem in browser.problems)


def side_by_side(labels=None):
    ring = np.arange(40)
    graph = Graph.from_edges(ring, np.roll(ring, 1), features=np.eye(40))
    angle = 2 * np.pi * ring / 40
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    one = embedding_map(graph, circle, labels=labels, neighbours=False)
    planes = {"raw": circle, "<b>sgc</b>": circle * [1, 0.5], "random-gcn": circle**3}
    return replace(one, projections=planes, side_by_side=True)


def test_all_maps_side_by_side_are_shown_and_act_as_one(browser, tmp_path):
    """One choice of colours, one legend, a node marked in all of them."""
    write_report(
        Report(
            "Maps", (Chapter("One", (side_by_side(np.arange(40) % 2),)), Chapter("Two", (side_by_side(),)))
        ),
        tmp_path / "r.html",
    )
    browser.problems.clear()
    browser.open(tmp_path / "r.html", width=1200)
    titles = browser.run("[...document.querySelectorAll('#chapter-1 .maps h4')].map((h) => h.textContent)")
    assert titles == ["raw", "<b>sgc</b>", "random-gcn"]
    canvases = "[...document.querySelectorAll('#chapter-1 .maps canvas')]"
    tops = browser.run(f"{canvases}.map((c) => Math.round(c.getBoundingClientRect().top))")
    assert len(set(tops)) == 1  # beside each other on a wide screen
    before = browser.run(f"{canvases}.map({INK})")
    assert all(before)
    box = browser.place(f"{canvases}[0]")
    side = min(box["width"], box["height"]) / 2 - 24
    browser.mouse("mouseMoved", box["x"] + box["width"] / 2 + side, box["y"] + box["height"] / 2)
    assert browser.run("document.querySelector('#chapter-1 .readout').textContent").startswith(
        "node 0, class 0"
    )
    assert all(a != b for a, b in zip(browser.run(f"{canvases}.map({INK})"), before, strict=True))
    assert browser.run("document.querySelectorAll('#chapter-1 .tip:not([hidden])').length") == 1
    legend = "[...document.querySelectorAll('#chapter-1 .legend button')]"
    assert browser.run(f"{legend}.map((b) => b.textContent)") == ["0", "1"]
    browser.click(f"{legend}[0]")
    hidden = browser.run(f"{canvases}.map({INK})")
    assert all(a < b for a, b in zip(hidden, before, strict=True))
    browser.run(
        "(() => { const s = document.querySelector('#chapter-1 select'); s.value = 'degree';"
        "s.dispatchEvent(new Event('change')); })()"
    )
    assert browser.run(f"{legend}.map((b) => b.textContent)") != ["0", "1"]
    browser.open(tmp_path / "r.html", width=360)
    assert browser.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    tops = browser.run(f"{canvases}.map((c) => Math.round(c.getBoundingClientRect().top))")
    assert len(set(tops)) == 3  # below each other on a phone
    said = [text for text in browser.problems if "getImageData" not in text]  # which this test asks for
    assert said == []
