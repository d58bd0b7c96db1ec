"""The baselines with their authors' settings against what was published for them."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nodejepa.report.table import Column, ReportTable, Row, TableCell, summarise
from studies.render.paper import FLOORS, dataset_name, method_name
from studies.render.selection import Record, means_on_shared_seeds, unfinished_notes, values_by
from studies.render.tables.shared import Note

_DATASETS = ("photo", "computers")


@dataclass(frozen=True)
class Published:
    """One figure of the literature and what of ours it compares with."""

    method: str
    dataset: str
    split: str
    field: str
    accuracy: float
    tolerance: float
    source: str


@cache
def literature() -> tuple[Published, ...]:
    """All of ``literature.toml``."""
    text = Path(__file__).parents[1].joinpath("literature.toml").read_text(encoding="utf-8")
    return tuple(
        Published(row["method"], dataset, row["split"], row["field"], accuracy, tolerance, row["source"])
        for row in tomllib.loads(text)["published"]
        for dataset in _DATASETS
        for accuracy, tolerance in [row[dataset]]
    )


def official_table(records: Sequence[Record]) -> ReportTable:
    """Ours, published, their difference, whether that is near enough, and the best floor of the split."""
    floors = values_by(
        [r for r in records if r["method"] in FLOORS],
        "test_accuracy",
        lambda r: (r["method"], r["dataset"], r["split"]),
    )
    groups = []
    for method in dict.fromkeys(figure.method for figure in literature()):
        rows: list[Row] = []
        for figure in (figure for figure in literature() if figure.method == method):
            values = values_by(
                [r for r in records if (r["method"], r.get("preset")) == (method, "official")],
                figure.field,
                lambda r: (r["dataset"], r["split"]),
            ).get((figure.dataset, figure.split), {})
            ours = summarise([*values.values()])
            difference = None if ours is None else ours.mean - figure.accuracy
            near = (
                "-" if difference is None else "yes" if round(difference + figure.tolerance, 6) >= 0 else "no"
            )
            shared = [
                means_on_shared_seeds({"ours": values, "floor": floor})
                for (_, *place), floor in floors.items()
                if place == [figure.dataset, figure.split]
            ]
            best = max((means["floor"] for means in shared if means), default=None)
            rows.append(
                (
                    *map(TableCell.name, (method_name(method), dataset_name(figure.dataset), figure.split)),
                    TableCell.score(ours),
                    TableCell.number(figure.accuracy, decimals=1),
                    TableCell.number(difference, signed=True),
                    TableCell.name(f"{near} ({figure.tolerance:g})"),
                    TableCell.number(best),
                )
            )
        groups.append(tuple(rows))
    epochs = {
        f"{method_name(r['method'])}: {r['config']['training']['epochs']:,} epochs at most"
        for r in records
        if r.get("preset") == "official" and r.get("config", {}).get("training")
    }
    sources = {f"{method_name(f.method)}: {f.source}" for f in literature()}
    return ReportTable(
        "official",
        "Authors' settings against the literature: test accuracy (%)",
        (
            *map(Column.name, ("Method", "Dataset", "Split")),
            Column.score("Ours"),
            *map(Column, ("Published", "Difference")),
            Column.name("Near enough (points)"),
            Column("Best floor"),
        ),
        tuple(groups),
        (
            f"Published figures: {'; '.join(sorted(sources))}.",
            f"Ours: {'; '.join(sorted(epochs))}.",
            f"The supervised GCN is judged by its own classifier, the others by the probe. {Note.FAIR_PROBE}",
            "Best floor: on the split and the seeds that stand under ours; dash: not measured on them.",
            Note.SEEDS,
            *unfinished_notes(records),
        ),
    )
