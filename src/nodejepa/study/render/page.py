"""The page on run folders and study folders, one chapter each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nodejepa.errors import Advice, NodeJEPAError, Setting
from nodejepa.progress import progress_bar
from nodejepa.report import Chapter, Report, footer
from nodejepa.report.runs import is_run_folder, run_chapter
from nodejepa.study.render.chapter import is_study_folder, study_chapter


def build_report(
    sources: Sequence[Path], *, dataset: str | None = None, data_root: Path | None = None
) -> Report:
    """The report on run folders and study folders, one chapter each.

    Args:
        sources: folders that ``nodejepa pretrain`` or ``nodejepa study`` wrote.
        dataset: the graph whose nodes the maps show; found by its hash if not given.
        data_root: folder of the data files.
    """
    folders = list(dict.fromkeys(Path(source) for source in sources))
    if not folders:
        raise NodeJEPAError("there is nothing to report on", fix="Name a run folder or a study folder.")
    for folder in folders:  # all of them, before the work
        if not is_run_folder(folder) and not is_study_folder(folder):
            raise NodeJEPAError(
                "the folder holds neither a run nor a study"
                if folder.is_dir()
                else "there is no such folder",
                where=str(folder),
                fix="Name a folder with model.safetensors or config.json (nodejepa pretrain) or with "
                "records.jsonl (nodejepa study run).",
            )
    if dataset is not None and not any(is_run_folder(folder) for folder in folders):
        raise NodeJEPAError(
            f"a graph is named ({dataset}), but there is no run whose embeddings a map could show",
            fix=Advice("Leave ", Setting("dataset"), " out, or name a run folder as well."),
        )
    chapters: list[Chapter] = []
    with progress_bar("Report", total=len(folders)) as advance:
        for folder in folders:
            if is_study_folder(folder):
                chapters.append(study_chapter(folder))
            if is_run_folder(folder):
                chapters.append(run_chapter(folder, dataset=dataset, data_root=data_root))
            advance(note=str(folder))
    title = chapters[0].title if len(chapters) == 1 else "nodejepa report"
    return Report(title, tuple(chapters), footer=footer())
