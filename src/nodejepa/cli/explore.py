"""``nodejepa demo``, ``datasets``, ``methods``; ``neighbours`` of a file of embeddings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.table import Table
from rich.text import Text

from nodejepa.cli.options import AsJSON, DataRoot
from nodejepa.cli.screen import print_json, printable, say, show_ranked, stderr, stdout
from nodejepa.errors import DataError

EmbeddingsFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="Embeddings: .parquet (with ids) or .npy (row numbers).")
]


def datasets(data_root: DataRoot = None) -> None:
    """List the named graphs, and whether their files are present."""
    from nodejepa.data.catalogue import CATALOGUE
    from nodejepa.data.catalogue import data_root as resolve

    table = Table("name", "what it is", "here", show_lines=True)
    for entry in CATALOGUE.values():
        counts = f"{entry.nodes:,} nodes, {entry.edges:,} edges, {entry.features:,} features"
        task = f"{entry.classes} classes, split {entry.default_split}"
        about = Text.assemble(entry.summary, (f"\n{counts}\n{task}\n{entry.source}", "dim"))
        here = ("yes" if entry.files else "built in") if entry.is_present(data_root) else "no"
        table.add_row(entry.name, about, here)
    stdout.print(table)
    say(f"Data root: {resolve(data_root)}", to=stderr)


def methods() -> None:
    """List the methods, their presets and their papers."""
    from nodejepa.methods import METHODS

    table = Table("name", "what it is", "trained", "presets", "citation")
    for entry in METHODS.values():
        trained = "yes" if entry.trained else "no"
        presets = Text("\n".join(filter(None, (", ".join(entry.presets), entry.about_presets))))
        table.add_row(entry.name, Text(entry.summary), trained, presets, Text(entry.citation))
    stdout.print(table)


def demo(
    out: Annotated[Path, typer.Option(help="Folder for graph, embeddings and report.")] = Path("demo"),
) -> None:
    """Compare methods on a built-in graph. Writes the graph, embeddings and a report."""
    say("Embedding 1,797 handwritten digits with six methods and scoring them: a minute or two", to=stderr)
    from nodejepa.cli.own_graph import say_row, show_comparison
    from nodejepa.demo import run_demo

    found = run_demo(out, announce=say_row)
    show_comparison(found, out)
    say(f"graph      {out / 'edges.csv'}, {out / 'nodes.csv'}")


def neighbours(
    embeddings: EmbeddingsFile,
    node: Annotated[str, typer.Option("--id", help="Id of the node.")],
    k: Annotated[int, typer.Option("-k", "--k", help="Number of neighbours.", min=1)] = 10,
    metric: Annotated[
        Literal["cosine", "euclidean"],
        typer.Option(help="cosine (similarity) or euclidean (distance).", metavar="HOW"),
    ] = "cosine",
    among: Annotated[
        str | None,
        typer.Option(help="Only nodes of this side of a bipartite graph, or of this class.", metavar="TYPE"),
    ] = None,
    as_json: AsJSON = False,
) -> None:
    """List the nearest nodes of a node in a file of embeddings. The search is exact.

    Examples:
        nodejepa neighbours z.parquet --id user-17
        nodejepa neighbours z.parquet --id user:17 --among item
        nodejepa neighbours z.npy --id 0 -k 5 --metric euclidean --json
    """
    import numpy as np

    from nodejepa.neighbours import nearest_neighbours
    from nodejepa.tables import find_row, read_embeddings

    stored = read_embeddings(embeddings)
    row = find_row(stored.ids, node)
    looked_at = np.arange(len(stored.ids)) if among is None else _rows_of(embeddings, among, row)
    found = nearest_neighbours(stored.matrix[looked_at], np.flatnonzero(looked_at == row), k=k, metric=metric)
    found = replace(found, rows=looked_at[found.rows])
    if metric == "cosine" and not stored.matrix[row].any():
        say("This node's embedding is all zeros: its similarity to every node counts as 0.", to=stderr)
    scores = found.scores[0].tolist()
    name = "similarity" if metric == "cosine" else "distance"
    near = [
        {"id": stored.ids[i], "row": int(i), name: score}
        for i, score in zip(found.rows[0], scores, strict=True)
    ]
    if as_json:
        print_json({"id": stored.ids[row], "row": row, "metric": metric, "neighbours": near})
        return
    title = f"Nearest to {printable(stored.ids[row])}"
    show_ranked(title, name, ((one["id"], one[name]) for one in near))


def _rows_of(embeddings: Path, kind: str, node: int) -> Any:
    """Rows of the nodes of a kind, and that of the node that is asked about."""
    import numpy as np

    from nodejepa.tables import read_columns

    columns = read_columns(embeddings)
    kinds = columns.get("side") or columns.get("label") or []
    there = {str(value) for value in kinds if value is not None}
    if kind not in there:
        raise DataError(
            f"no node is of type {kind!r}",
            where=str(embeddings),
            fix=f"There are: {', '.join(sorted(there)[:20]) or 'no columns side or label in the file'}.",
        )
    return np.array([i for i, value in enumerate(kinds) if i == node or str(value) == kind])
