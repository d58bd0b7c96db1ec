"""The demo: embed the built-in digits, score them with few labels, write embeddings and a page about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nodejepa.data import Dataset, load_dataset
from nodejepa.diagnostics import Diagnostics, diagnose
from nodejepa.evaluation import ProbeResult, fewshot_probe
from nodejepa.files import write_text
from nodejepa.graph_checks import Features
from nodejepa.io import write_embeddings
from nodejepa.methods import METHODS, make_method
from nodejepa.study.page import Section, demo_page

DEMO_METHODS = ("nodejepa", "raw", "sgc", "random-gcn")
SHOTS = (5, 20)  # labels per class


@dataclass(frozen=True, eq=False)
class DemoRow:
    """One method's embeddings of the demo graph and what they are worth."""

    method: str
    embeddings: Features
    few_shot: dict[int, ProbeResult]
    diagnostics: Diagnostics
    path: Path


@dataclass(frozen=True, eq=False)
class Demo:
    """What the demo found and where it wrote it."""

    dataset: Dataset
    rows: tuple[DemoRow, ...]
    report: Path


def run_demo(
    out: str | Path, *, methods: Sequence[str] = DEMO_METHODS, draws: int = 5, seed: int = 42
) -> Demo:
    """Embed ``digits`` with each method; write ``out/embeddings/METHOD.parquet`` and ``out/report.html``."""
    Path(out).mkdir(parents=True, exist_ok=True)  # a folder that cannot be written fails before the work
    dataset = load_dataset("digits")
    rows = tuple(_row(dataset, method, Path(out), draws, seed) for method in methods)
    report = Path(out) / "report.html"
    write_text(report, demo_page(dataset, [_section(row) for row in rows], draws=draws))
    return Demo(dataset, rows, report)


def accuracy(result: ProbeResult) -> str:
    """Mean and standard deviation of the test accuracy, percent."""
    spread = result.test_accuracy_std
    return f"{result.test_accuracy_mean:.1f}" + (f" ± {spread:.1f}" if spread is not None else "")


def _row(dataset: Dataset, method: str, out: Path, draws: int, seed: int) -> DemoRow:
    graph = dataset.graph
    embeddings = make_method(method, dataset=dataset.name, seed=seed).fit(graph).transform(graph)
    path = out / "embeddings" / f"{method}.parquet"
    write_embeddings(path, graph, embeddings)
    few_shot = fewshot_probe(embeddings, dataset.labels, shots=SHOTS, draws=draws, seed=seed)
    return DemoRow(method, embeddings, few_shot, diagnose(embeddings), path)


def _section(row: DemoRow) -> Section:
    scores = {f"{shots} labels per class": accuracy(result) for shots, result in row.few_shot.items()}
    return Section(
        row.method,
        METHODS[row.method].summary,
        scores,
        row.diagnostics.verdict,
        row.path.name,
        row.embeddings,
    )
