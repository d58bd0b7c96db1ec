"""Pages show the rendered tables, and the committed pages are up to date with the committed records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from studies.render.__main__ import rendered_studies
from studies.render.contents import render_study
from studies.render.figures import panels
from studies.render.page import refresh_page

from nodejepa.errors import DataError
from nodejepa.study.records import read_records

ROOT = Path(__file__).parents[2]
PAGES = [path for path in (ROOT / "README.md", *ROOT.glob("docs/*.md")) if "<!-- table " in path.read_text()]


def test_a_table_is_put_in_its_place_without_its_heading(tmp_path: Path) -> None:
    (tmp_path / "t.md").write_text("# Title\n\n| a |\n| - |\n| 1 |\n\n- note\n")
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- table t.md -->\nold\n<!-- end -->\nafter\n")
    assert refresh_page(page)
    assert page.read_text() == (
        "before\n<!-- table t.md -->\n| a |\n| - |\n| 1 |\n\n- note\n<!-- end -->\nafter\n"
    )
    assert not refresh_page(page)


def test_rows_after_the_tenth_are_folded(tmp_path: Path) -> None:
    rows = "".join(f"| {row} |\n" for row in range(12))
    (tmp_path / "t.md").write_text(f"# Title\n\n| a |\n| - |\n{rows}\n- note\n")
    page = tmp_path / "page.md"
    page.write_text("<!-- table t.md -->\n<!-- end -->\n")
    refresh_page(page)
    open_, _, folded = page.read_text().partition("<details>\n<summary>2 more rows, and notes</summary>\n\n")
    assert open_.count("\n| ") == 12
    assert "| 9 |\n" in open_
    assert folded == "| a |\n| - |\n| 10 |\n| 11 |\n\n- note\n\n</details>\n<!-- end -->\n"
    assert not refresh_page(page)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "no place for a table"),
        ("<!-- table t.md -->\nold\n", "no place for a table"),
        ("<!-- table t.md -->\n<!-- end -->\n<!-- table t.md -->\n", "does not end"),
        ("<!-- table none.md -->\n<!-- end -->\n", "cannot read the table none.md"),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "t.md").write_text("# T\n")
    (tmp_path / "page.md").write_text(text)
    with pytest.raises(DataError, match=message):
        refresh_page(tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text() == text


@pytest.mark.slow
@pytest.mark.parametrize("folder", rendered_studies(), ids=lambda path: path.name)
def test_committed_tables_and_figures_are_rebuilt_byte_for_byte(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes of a png are also a matter of the system's zlib: one study draws them, to see that it can."""
    endings = panels.FORMATS if folder.name == "collapse" else ("svg",)
    monkeypatch.setattr(panels, "pictures", partial(panels.pictures, formats=endings))
    copy = tmp_path / folder.name
    for name in {folder.name, "main"}:  # main lends its untrained baselines
        (tmp_path / name).mkdir()
        (tmp_path / name / "records.jsonl").symlink_to(folder.parent / name / "records.jsonl")
    written = render_study(copy)
    tables = [path for path in written if path.parent.name == "tables"]
    assert tables
    assert {path.name for path in tables} == {path.name for path in (folder / "tables").iterdir()}
    drawn = {path.name for path in written if path.parent.name == "figures"}
    committed = folder.glob("figures/*")
    assert drawn == {path.name for path in committed if path.suffix.removeprefix(".") in endings}
    for path in (path for path in written if path.suffix != ".png"):
        assert path.read_bytes() == (folder / path.parent.name / path.name).read_bytes(), path.name


def test_every_committed_figure_is_shown_and_every_shown_figure_is_there() -> None:
    shown = {
        (page.parent / link).resolve()
        for page in ROOT.glob("docs/*.md")
        for link in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.read_text())
    }
    assert [path for path in shown if not path.is_file()] == []
    committed = {path.name for path in ROOT.glob("studies/*/figures/*.png")}
    studies = ROOT / "studies"
    assert committed == {path.name for path in shown if path.is_relative_to(studies)}


@pytest.mark.parametrize("name", ["collapse", "fewshot", "ablation", "finetune"])
def test_encoders_that_were_loaded_again_score_as_in_the_main_study(name: str) -> None:
    main = {_encoder(record): record for record in read_records(ROOT / "studies" / "main")}
    done = [record for record in read_records(ROOT / "studies" / name) if record["status"] == "done"]
    again = [record for record in done if _encoder(record) in main]
    assert again
    for record in again:
        there = main[_encoder(record)]
        for field in ("test_accuracy", "test_accuracy_paper_probe", "effective_rank", "mean_std"):
            assert record[field] == there[field], (name, field, record["key"])


def _encoder(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """What says that two records are about the same weights and the same split."""
    return record["config_hash"], record["method"], record["dataset"], record["split"], record["seed"]


def test_there_are_pages_with_tables() -> None:
    assert ROOT / "docs" / "tables.md" in PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_committed_pages_show_the_committed_tables(page: Path, tmp_path: Path) -> None:
    copy = ROOT / page.relative_to(ROOT)
    text = copy.read_text()
    inside = tmp_path / page.relative_to(ROOT)
    inside.parent.mkdir(parents=True, exist_ok=True)
    inside.write_text(text)
    for folder in ("studies", "benchmarks"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    refresh_page(inside)
    assert inside.read_text() == text
