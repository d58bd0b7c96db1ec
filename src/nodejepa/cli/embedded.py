"""What ``embed-graph`` tells at the end, and what it tells of a graph store beforehand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table
from rich.text import Text

from nodejepa.cli.screen import in_options, say, stderr, stdout
from nodejepa.errors import Advice, Setting

if TYPE_CHECKING:
    from nodejepa.tables import StoredGraph
    from nodejepa.workflow import EmbeddedGraph, EmbeddedStore


def show_store(
    graph: StoredGraph, trained: dict[str, Any], memory_limit: float | None, as_json: bool = False
) -> None:
    """What is in a store, and what embedding it would take."""
    from nodejepa.memory import Room
    from nodejepa.methods.budget import Workload
    from nodejepa.workflow import make_trainable
    from nodejepa.workflow.apply import store_facts
    from nodejepa.workflow.plan import stored_roads

    if as_json:
        typer.echo(json.dumps({"store": str(graph.folder), "graph": store_facts(graph)}, indent=2))
        return
    table = Table(title=Text(f"The graph in {graph.folder}"), show_header=False)
    for name, value in store_facts(graph).items():
        table.add_row(name, Text(value))
    stdout.print(table)
    entries = graph.manifest.feature_entries
    filled = graph.num_nodes * graph.num_features if entries is None else entries
    work = Workload(graph.num_nodes, graph.num_edges, graph.num_features, filled, entries is None)
    roads = stored_roads(make_trainable(**trained), work, Room.of(memory_limit))
    for road in roads:  # it is on disk already: of each only the options count
        options = road.options or (Setting("method", "linear-jepa"),)
        fitting = Advice("This fits: ", replace(road, options=options, road="").words, ".")
        say(in_options(fitting))
    if not roads:
        say(("No way to embed it fits into the memory there is.", "red"))


def show_result(made: EmbeddedGraph | EmbeddedStore, shape: tuple[int, ...]) -> None:
    """Scores, where the files are, how sound the embeddings are."""
    for warning in made.manifest["warnings"]:
        if warning.startswith("No scores"):
            say(("Warning: ", "yellow"), warning, to=stderr)
    if made.scores is not None:
        from nodejepa.workflow.page import beats_the_floors, floor_words, largest_words

        table = Table(title="What the embeddings are worth, % on test nodes")
        table.add_column("embeddings")
        for title in made.scores.measures.values():
            table.add_column(title, justify="right")
        for method, found in made.scores.table().items():
            table.add_row(
                Text(method), *("-" if value is None else f"{value.mean:.1f}" for value in found.values())
            )
        tuned, name = made.scores.finetuned, made.manifest["method"]
        if tuned is not None:
            table.add_row(f"{name}, fine-tuned (one split)", f"{tuned.test_accuracy:.1f}")
            table.add_row("the same network from random weights", f"{tuned.scratch_test_accuracy:.1f}")
        stdout.print(table)
        say(f"Fair linear probe; {made.scores.split}.")
        style = "" if beats_the_floors(made.scores, name) else "yellow"
        say((floor_words(made.scores, name), style))
        for words in largest_words(made.scores):
            say(words)
    if made.clusters is not None:
        from nodejepa.workflow.page import cluster_words

        say(cluster_words(made.clusters, made.labels))
    if made.manifest["found"]:
        say(made.manifest["found"])
    say(f"{shape[0]:,} nodes x {shape[1]} -> {made.places.embeddings}")
    say(f"Embeddings: {made.manifest['diagnostics']['verdict']}")
    for name, path in (
        ("manifest", made.places.manifest),
        *((("report", made.places.page),) if made.manifest["report"] else ()),
        ("model", made.places.run),
    ):
        say(f"{name:9}{path}")
