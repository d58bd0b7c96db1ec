"""The demo: embed the built-in digits, score them with few labels, write embeddings and a page about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    comparison: str
    report: Path


def run_demo(
    out: str | Path, *, methods: Sequence[str] = DEMO_METHODS, draws: int = 5, seed: int = 42
) -> Demo:
    """Embed ``digits`` with each method; write ``out/embeddings/METHOD.parquet`` and ``out/report.html``."""
    Path(out).mkdir(parents=True, exist_ok=True)  # a folder that cannot be written fails before the work
    dataset = load_dataset("digits")
    rows = tuple(_row(dataset, method, Path(out), draws, seed) for method in methods)
    comparison = compare_with_floors({row.method: row.few_shot for row in rows})
    report = Path(out) / "report.html"
    page = demo_page(dataset, [_section(row) for row in rows], draws=draws, comparison=comparison)
    write_text(report, page)
    return Demo(dataset, rows, comparison, report)


def compare_with_floors(results: Mapping[str, Mapping[int, ProbeResult]]) -> str:
    """What the scores of each trained method mean beside the best method without training, in words.

    Args:
        results: method -> labels per class -> score. A difference counts once it exceeds the larger of the
            two standard deviations over draws of the labels.
    """
    floors = [name for name in results if not METHODS[name].trained]
    trained = [name for name in results if METHODS[name].trained]
    return " ".join(_compare(name, floors, results) for name in trained) if floors else ""


def _compare(name: str, floors: Sequence[str], results: Mapping[str, Mapping[int, ProbeResult]]) -> str:
    parts, gains = [], 0
    for shots, result in results[name].items():
        best = max(floors, key=lambda floor: results[floor][shots].test_accuracy_mean)
        floor = results[best][shots]
        # as rounded in the table, so that a reader who subtracts finds the same
        gain = round(result.test_accuracy_mean, 1) - round(floor.test_accuracy_mean, 1)
        spread = max(result.test_accuracy_std or 0.0, floor.test_accuracy_std or 0.0)
        size = f" ({'within' if abs(gain) <= spread else 'more than'} one standard deviation)"
        if floor.test_accuracy_std is None:  # a single draw
            size = ""
        side = "above" if gain > 0 else "below"
        parts.append(f"{abs(gain):.1f} points {side} {best} with {shots} labels per class{size}")
        gains += gain > spread
    verdict = "" if gains else " So this small graph does not show that training helps."
    return f"Beside the best floor, {name} is {' and '.join(parts)}.{verdict}"


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
