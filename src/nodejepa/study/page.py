"""The page on runs, studies and graphs of a user's own; a study's chapter says what any records say."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from nodejepa.errors import ConfigError, NodeJEPAError
from nodejepa.methods import METHODS
from nodejepa.methods.estimator import Estimator
from nodejepa.progress import progress_bar
from nodejepa.report import Chapter, Report, footer
from nodejepa.report.runs import EmbeddingsFile, embeddings_chapters, is_run_folder, run_chapter
from nodejepa.report.sections import Dot, DotPlot, Figures, Section, SortableTable, Text
from nodejepa.report.table import summarise
from nodejepa.study.records import Record, read_records, require_names
from nodejepa.study.spec import load_spec
from nodejepa.study.table import cells_table, missing_words, study_rows, study_table, values_by_seed
from nodejepa.tables.inputs import near_path

_CHOICES = ("method", "preset", "variant", "dataset", "split", "status")
_DRAWN = {  # what to draw: the first field that the study has
    "finetune_test_accuracy": ("Accuracy after fine-tuning", "test accuracy after fine-tuning, %"),
    "test_accuracy": ("Accuracy", "test accuracy under the fair probe, %"),
    "epoch_seconds": ("Time", "seconds per epoch"),
}


def build_report(
    sources: Sequence[Path], *, dataset: str | None = None, data_root: Path | None = None
) -> Report:
    """The report on runs, studies and embeddings, one chapter each.

    ``sources`` are folders that ``nodejepa pretrain`` or ``nodejepa study`` wrote, files of embeddings, or
    the manifest beside them. Maps of runs show the nodes of ``dataset``, which is found by its
    hash if not given.
    """
    folders = list(dict.fromkeys(Path(source) for source in sources))
    if not folders:
        raise NodeJEPAError("there is nothing to report on", fix="Name a run folder or a study folder.")
    own = {folder: file for folder in folders if (file := EmbeddingsFile.find(folder)) is not None}
    for folder in folders:  # all of them, before the work
        if folder not in own and not is_run_folder(folder) and not _is_study_folder(folder):
            raise NodeJEPAError(
                "this is no run, study or embeddings" if folder.exists() else "there is no such folder",
                where=str(folder),
                fix=f"{'' if folder.exists() else near_path(folder)}Name a folder with model.safetensors or "
                "config.json (nodejepa pretrain) or with records.jsonl (nodejepa study run), or a file "
                "of embeddings (.parquet or .npy).",
            )
    if dataset is not None and not any(is_run_folder(folder) for folder in folders):
        raise NodeJEPAError(
            f"a graph is named ({dataset}), but there is no run whose embeddings a map could show",
            fix="Leave dataset=... out, or name a run folder as well.",
        )
    chapters = embeddings_chapters(list({file.path: file for file in own.values()}.values()))
    with progress_bar("Report", total=len(folders)) as advance:
        for folder in folders:
            if _is_study_folder(folder):
                chapters.append(study_chapter(folder))
            if is_run_folder(folder) and folder not in own:
                chapters.append(run_chapter(folder, dataset=dataset, data_root=data_root))
            advance(note=str(folder))
    titles = Counter(chapter.title for chapter in chapters)
    chapters = [c if titles[c.title] == 1 else replace(c, title=f"{c.title}: {c.subtitle}") for c in chapters]
    title = chapters[0].title if len(chapters) == 1 else "nodejepa report"
    return Report(title, tuple(chapters), footer=footer())


def _is_study_folder(folder: Path) -> bool:
    return (folder / "records.jsonl").is_file()


def study_chapter(folder: Path) -> Chapter:
    """How far a study is, its scores as a picture, figures that lie in its folder, its table, every cell."""
    records = read_records(folder)
    require_names(records, folder)
    sections: list[Section] = [Text(tuple(_progress_words(folder, records)))]
    if records:
        table = SortableTable(study_table(records), choices=_CHOICES)
        sections += [*_drawn(records), *_rendered(folder), table]
        sections.append(SortableTable(cells_table(records), choices=_CHOICES, folded=True))
    name = str(records[0].get("study") or folder.name) if records else folder.name
    return Chapter(f"Study {name}", tuple(sections), subtitle=str(folder))


def _progress_words(folder: Path, records: Sequence[Record]) -> list[str]:
    """How much of the study there is, and why the rest is not."""
    if not records:
        return ["No cell has been measured yet."]
    states = Counter(str(record.get("status")) for record in records)
    counts = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    planned = _planned(folder)
    cells = f"{len(records)} cells" if planned is None else f"{len(records)} of {planned} cells"
    return [f"{cells} on record: {counts}.", *missing_words(records)]


def _planned(folder: Path) -> int | None:
    """The number of cells of the specification beside the folder, if there is one."""
    name = folder.name.removesuffix("-quick")
    specification = folder.with_name(f"{name}.toml")
    if not specification.is_file():
        return None
    try:
        return len(load_spec(specification, quick=folder.name != name).cells)
    except ConfigError:
        return None


def _rendered(folder: Path) -> list[Section]:
    pictures = {path.stem: path.read_bytes() for path in sorted((folder / "figures").glob("*.png"))}
    return [Figures("Figures", pictures, "A click or Enter makes one large.")] if pictures else []


def _drawn(records: Sequence[Record]) -> list[Section]:
    """A panel for each data set, and for each split: scores on different splits are different questions."""
    field = next((f for f in _DRAWN if any(r.get(f) is not None for r in records)), None)
    if field is None:
        return []
    rows = study_rows(records)
    several = len({split for _, split, _ in rows}) > 1
    panels: dict[str, list[Dot]] = {}
    for (dataset, split, name), found in rows.items():
        values = tuple(values_by_seed(found, field).values())
        score, entry = summarise(values), METHODS.get(found[0]["method"])
        if score is None:
            continue
        known = entry or Estimator
        dot = Dot(name, score.mean, score.std, values, known.style.colour, emphasised=known.trained)
        panels.setdefault(f"{dataset}, split {split}" if several else dataset, []).append(dot)
    caption = (
        "Large: mean over seeds, with one standard deviation to either side; small: single seeds; hollow: "
        "what needs no training. The axes do not start at zero."
    )
    return [DotPlot(*_DRAWN[field], panels, caption)]
