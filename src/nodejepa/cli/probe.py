"""``nodejepa probe``: embed a named graph and score the embeddings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.table import Table
from rich.text import Text

from nodejepa.cli.catalogue import DataRoot, DatasetName, MethodName, Settings
from nodejepa.cli.screen import stderr, stdout
from nodejepa.config import parse_seeds
from nodejepa.errors import ConfigError

if TYPE_CHECKING:
    from nodejepa.evaluation.scoring import MethodScore

PROBE_EXAMPLES = (
    "Examples:\n\n"
    "nodejepa probe digits --method sgc\n\n"
    "nodejepa probe photo --method random-gcn --seeds 42-46 --data-root ~/datasets\n\n"
    "nodejepa probe cora --split official --seeds 1 --json\n\n"
    "nodejepa probe digits --run runs/digits\n\n"
    "nodejepa probe graph.store --run runs/stored"
)


def probe(
    dataset: DatasetName,
    method: MethodName = "sgc",
    run: Annotated[
        Path | None, typer.Option(help="Probe the model in this run folder instead of a fresh method.")
    ] = None,
    seeds: Annotated[str, typer.Option(help='"42-46", "1,2,5": one split and one run each.')] = "42-46",
    split: Annotated[
        str | None,
        typer.Option(help='"20-30" labels per class, "random-10-10-80" percent, "official".'),
    ] = None,
    mode: Annotated[
        Literal["fair", "paper"],
        typer.Option("--probe", help="fair: scaling and C chosen on validation. paper: raw, C = 1."),
    ] = "fair",
    preset: Annotated[str, typer.Option(help="Settings of the method.")] = "default",
    settings: Settings = None,
    data_root: DataRoot = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on stdout.")] = False,
) -> None:
    """Embed a named graph, or a graph store with labels, then score a linear classifier on the embeddings."""
    chosen = parse_seeds(seeds)
    from nodejepa.config import parse_assignments
    from nodejepa.data import load_dataset
    from nodejepa.data.stored import StoredDataset
    from nodejepa.evaluation.scoring import score_method, score_run
    from nodejepa.tables import StoredGraph

    if stderr.is_terminal:
        stderr.print(
            Text(f"Embedding {dataset} with {run or method}, then probing {len(chosen)} splits"), style="dim"
        )
    changes = parse_assignments(settings or [])
    if run is not None and (changes or preset != "default" or method != "sgc"):
        raise ConfigError(
            "a trained run keeps the method and the settings it was trained with",
            where=f"--run {run}",
            fix="Leave out --method, --preset and --set, or leave out --run.",
        )
    data = (
        StoredDataset.of(StoredGraph(dataset))
        if StoredGraph.is_at(dataset)
        else load_dataset(dataset, data_root)
    )
    if run is not None:
        score = score_run(data, run, chosen, split=split, probe=mode)
    else:
        score = score_method(data, method, chosen, preset=preset, settings=changes, split=split, probe=mode)
    if as_json:
        typer.echo(json.dumps(score.to_dict(), indent=2, allow_nan=False))
    else:
        _show(score)


def _show(score: MethodScore) -> None:
    title = (
        f"{score.method} ({score.preset}) on {score.dataset}, split {score.split}, {score.result.mode} probe"
    )
    table = Table(title=Text(title), show_footer=True)
    result = score.result
    table.add_column("seed", footer="mean ± std")
    table.add_column(
        "validation %", _mean(result.val_accuracy_mean, result.val_accuracy_std), justify="right"
    )
    table.add_column("test %", _mean(result.test_accuracy_mean, result.test_accuracy_std), justify="right")
    table.add_column("scaling")
    table.add_column("C", justify="right")
    for row in result.scores:
        val = "-" if row.val_accuracy is None else f"{row.val_accuracy:.2f}"
        table.add_row(str(row.seed), val, f"{row.test_accuracy:.2f}", row.scaling, f"{row.C:g}")
    stdout.print(table)
    if score.sampled:
        stdout.print(Text(f"A large graph: {score.sampled}."))
    if score.head is not None:
        val, test = _mean(*score.head.mean_std("val")), _mean(*score.head.mean_std("test"))
        stdout.print(Text(f"Its own head: validation {val} %, test {test} %"))
    stdout.print(Text(f"Embeddings: {score.diagnostics.verdict}"))
    stdout.print(Text(f"Embedding took {score.embed_seconds:.1f} s, probing {score.probe_seconds:.1f} s."))


def _mean(mean: float | None, std: float | None) -> str:
    if mean is None:
        return "-"
    return f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"
