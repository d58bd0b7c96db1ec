"""The page on runs, studies and graphs of a user's own; rendered tables inside hand-written pages.

Between two comments of such a page stands what the records say, nothing else:

<!-- table ../studies/main/tables/main.md -->
(replaced)
<!-- end -->
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from nodejepa.errors import Advice, DataError, NodeJEPAError, Setting
from nodejepa.files import write_text
from nodejepa.io.files_in import near_path
from nodejepa.progress import progress_bar
from nodejepa.report import Chapter, Report, footer
from nodejepa.report.own_runs import find_own_run, own_chapters
from nodejepa.report.runs import is_run_folder, run_chapter
from nodejepa.study.render.chapter import is_study_folder, study_chapter

_PLACE = re.compile(r"(<!-- table (?P<path>\S+) -->\n)(?P<body>.*?)(<!-- end -->)", re.DOTALL)


def build_report(
    sources: Sequence[Path], *, dataset: str | None = None, data_root: Path | None = None
) -> Report:
    """The report on runs and studies, one chapter each; runs of ``embed-graph`` are compared as well.

    ``sources`` are folders that ``nodejepa pretrain`` or ``nodejepa study`` wrote, or of ``embed-graph`` the
    embeddings, their manifest or the run folder beside them. Maps show the nodes of ``dataset``, which is
    found by its hash if not given.
    """
    folders = list(dict.fromkeys(Path(source) for source in sources))
    if not folders:
        raise NodeJEPAError("there is nothing to report on", fix="Name a run folder or a study folder.")
    own = {folder: run for folder in folders if (run := find_own_run(folder)) is not None}
    for folder in folders:  # all of them, before the work
        if folder not in own and not is_run_folder(folder) and not is_study_folder(folder):
            raise NodeJEPAError(
                "this is neither a run nor a study" if folder.exists() else "there is no such folder",
                where=str(folder),
                fix=f"{'' if folder.exists() else near_path(folder)}Name a folder with model.safetensors or "
                "config.json (nodejepa pretrain) or with records.jsonl (nodejepa study run), or embeddings "
                "with their manifest beside them (nodejepa embed-graph).",
            )
    if dataset is not None and not any(is_run_folder(folder) for folder in folders):
        raise NodeJEPAError(
            f"a graph is named ({dataset}), but there is no run whose embeddings a map could show",
            fix=Advice("Leave ", Setting("dataset"), " out, or name a run folder as well."),
        )
    chapters: list[Chapter] = own_chapters(list({run.path: run for run in own.values()}.values()))
    with progress_bar("Report", total=len(folders)) as advance:
        for folder in folders:
            if is_study_folder(folder):
                chapters.append(study_chapter(folder))
            if is_run_folder(folder) and folder not in own:
                chapters.append(run_chapter(folder, dataset=dataset, data_root=data_root))
            advance(note=str(folder))
    titles = Counter(chapter.title for chapter in chapters)
    chapters = [c if titles[c.title] == 1 else replace(c, title=f"{c.title}: {c.subtitle}") for c in chapters]
    title = chapters[0].title if len(chapters) == 1 else "nodejepa report"
    return Report(title, tuple(chapters), footer=footer())


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
    """The table and its notes; the page has headings of its own."""
    try:
        text = (page.parent / path).read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(
            f"cannot read the table {path}: {error.strerror}",
            where=str(page),
            fix="Render its study first: nodejepa study render FOLDER.",
        ) from None
    return re.sub(r"\A# .*\n", "", text).strip("\n") + "\n"
