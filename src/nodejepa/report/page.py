"""The page that ``nodejepa report`` writes: a chapter for each run, and for each file of embeddings."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from nodejepa.errors import NodeJEPAError
from nodejepa.progress import progress_bar
from nodejepa.report.runs import EmbeddingsFile, embeddings_chapters, is_run_folder, run_chapter
from nodejepa.report.sections import Report, footer
from nodejepa.tables.inputs import near_path


def build_report(
    sources: Sequence[Path], *, dataset: str | None = None, data_root: Path | None = None
) -> Report:
    """The report on runs and embeddings, one chapter each.

    ``sources`` are folders that ``nodejepa pretrain`` wrote, files of embeddings, or the manifest beside
    them. Maps of runs show the nodes of ``dataset``, which is found by its hash if not given.
    """
    folders = list(dict.fromkeys(Path(source) for source in sources))
    if not folders:
        raise NodeJEPAError("there is nothing to report on", fix="Name a run folder.")
    own = {folder: file for folder in folders if (file := EmbeddingsFile.find(folder)) is not None}
    runs = [folder for folder in folders if folder not in own]
    for folder in runs:  # all of them, before the work
        if not is_run_folder(folder):
            raise NodeJEPAError(
                "this is no run or embeddings" if folder.exists() else "there is no such folder",
                where=str(folder),
                fix=f"{'' if folder.exists() else near_path(folder)}Name a folder with model.safetensors or "
                "config.json (nodejepa pretrain), or a file of embeddings (.parquet or .npy).",
            )
    if dataset is not None and not runs:
        raise NodeJEPAError(
            f"a graph is named ({dataset}), but there is no run whose embeddings a map could show",
            fix="Leave dataset=... out, or name a run folder as well.",
        )
    chapters = embeddings_chapters(list({file.path: file for file in own.values()}.values()))
    with progress_bar("Report", total=len(runs)) as advance:
        for folder in runs:
            chapters.append(run_chapter(folder, dataset=dataset, data_root=data_root))
            advance(note=str(folder))
    titles = Counter(chapter.title for chapter in chapters)
    chapters = [c if titles[c.title] == 1 else replace(c, title=f"{c.title}: {c.subtitle}") for c in chapters]
    title = chapters[0].title if len(chapters) == 1 else "nodejepa report"
    return Report(title, tuple(chapters), footer=footer())
