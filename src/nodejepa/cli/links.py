"""``nodejepa links``: are hidden links found again, and which links of a node are likely?"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from nodejepa.cli.explore import printable
from nodejepa.cli.options import (
    AsJSON,
    Device,
    EdgeFile,
    MemoryLimit,
    MethodName,
    NodeFile,
    Preset,
    Seed,
    Settings,
    reads_files,
)
from nodejepa.cli.screen import in_options, say, stderr, stdout
from nodejepa.config import DEFAULT_METHOD

LINKS_EXAMPLES = (
    "Examples:\n\n"
    "nodejepa links --edges edges.csv --nodes nodes.csv\n\n"
    "nodejepa links --edges edges.csv --node ann --node bob -k 5 --json"
)
# All but the structural features: they would know the links that are hidden
_READING = (
    *("source", "target", "weight", "no_weight", "id_column", "labels", "drop", "directed", "text"),
    *("text_columns", "missing", "infinite", "scale", "bipartite", "header", "delimiter"),
)


@reads_files(only=_READING)
def links(
    edges: EdgeFile,
    nodes: NodeFile = None,
    reading: Any = None,  # the options of reading, see reads_files
    node: Annotated[
        list[str] | None,
        typer.Option(help="List likely new links of the node with this id; repeatable.", metavar="ID"),
    ] = None,
    k: Annotated[int, typer.Option("-k", "--k", help="How many of them.", min=1)] = 10,
    share: Annotated[float, typer.Option(help="Of the links to hide.", metavar="SHARE")] = 0.1,
    method: MethodName = DEFAULT_METHOD,
    preset: Preset = "default",
    settings: Settings = None,
    seed: Seed = 0,
    device: Device = "auto",
    memory_limit: MemoryLimit = None,
    as_json: AsJSON = False,
) -> None:
    """Predict links: hide some, learn without them, say how well they are found; list likely ones of a node.

    A graph without features is described by the links that are left.
    """
    import numpy as np

    from nodejepa.config import parse_assignments
    from nodejepa.evaluation.links import likely_links, score_links, split_links
    from nodejepa.methods import make_method, refuse_supervised
    from nodejepa.tables import find_row, read_graph

    refuse_supervised(method)
    how: Any = {"preset": preset, "settings": parse_assignments(settings or []), "seed": seed}
    loaded = read_graph(edges, nodes, replace(reading, structural=()), memory_limit=memory_limit)
    for note in loaded.notes:
        say(f"- {in_options(note)}", to=stderr)
    graph = loaded.graph
    ids = np.arange(graph.num_nodes) if graph.node_ids is None else graph.node_ids
    asked = [ids[find_row(ids, text)] for text in node or ()]  # a wrong id is found before the work
    split = split_links(graph, share=share, seed=seed)
    found = score_links(make_method(method, device=device, **how).fit_transform(split.graph), split)
    result: dict[str, Any] = {
        "method": method,
        "hidden_links": len(split.links),
        "scored_links": len(split.negatives),
        "scores": None if found is None else asdict(found),
    }
    if asked:
        z = make_method(method, device=device, **how).fit_transform(graph)
        likely = {str(name): likely_links(z, graph, name, k=k) for name in asked}
        result["likely"] = {
            name: [{"id": other, "closeness": close} for other, close in near]
            for name, near in likely.items()
        }
    if as_json:
        typer.echo(json.dumps(result, indent=2, allow_nan=False, default=str))
    else:
        _show(result)


def _show(result: dict[str, Any]) -> None:
    scores, scored = result["scores"], result["scored_links"]
    if scores is None:
        say("Every node is linked to nearly every other: there is nothing to rank links among.")
    else:
        say(
            f"{result['method']}: of {result['hidden_links']:,} hidden links ({scored:,} scored) AUC "
            f"{scores['auc']:.3f}, mean reciprocal rank {scores['mrr']:.3f} among 20 nodes not linked"
        )
    for name, near in result.get("likely", {}).items():
        table = Table("", "id", "closeness", title=Text(f"Likely links of {printable(name)}"))
        for place, row in enumerate(near, start=1):
            table.add_row(str(place), Text(printable(row["id"])), f"{row['closeness']:.4f}")
        stdout.print(table)
