"""``nodejepa prepare``: files that may be larger than memory to a graph on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from nodejepa.cli.reading_options import NodeFile, reads_files
from nodejepa.cli.screen import in_options, stderr, stdout

if TYPE_CHECKING:
    from nodejepa.store import StoredGraph

PREPARE_EXAMPLES = (
    "Examples:\n\n"
    "nodejepa prepare --edges edges.parquet --nodes nodes.parquet --labels topic --out graph.store\n\n"
    "nodejepa prepare --edges edges.parquet --structural pagerank,degree,clustering --out graph.store\n\n"
    "nodejepa pretrain graph.store --method linear-jepa --out run\n\n"
    "nodejepa pretrain graph.store --method nodejepa --preset paper --set parts=100 --set parts_per_step=5 "
    "--set descriptors=pagerank,degree,clustering --out trained\n\n"
    "nodejepa embed run graph.store --out z.parquet\n\n"
    "nodejepa probe graph.store --run run\n\n"
    "nodejepa prepare --verify graph.store"
)


@reads_files()
def prepare(
    edges: Annotated[
        Path | None, typer.Option(help="Edges, a row each: as in embed-graph.", metavar="FILE")
    ] = None,
    nodes: NodeFile = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the store: there when it is whole.")] = None,
    verify: Annotated[
        Path | None, typer.Option(help="Instead: read a store and compare its checksums.", metavar="STORE")
    ] = None,
    reading: Any = None,  # the options of reading, see reads_files
    force: Annotated[bool, typer.Option("--force", help="Replace a store that is there.")] = False,
) -> None:
    """Keep a graph that is larger than memory on disk; killed, it goes on where it was."""
    if verify is not None:
        from nodejepa.store import StoredGraph

        found = StoredGraph(verify)
        found.verify()
        _say(found, "every checksum matches")
        return
    if edges is None or out is None:
        raise typer.BadParameter("Give --edges and --out, or --verify a store.")
    from nodejepa.store.prepare import prepare_store

    def announce(notes: Sequence[str]) -> None:
        for note in notes:
            stderr.print(Text(f"- {in_options(note)}"), soft_wrap=True)

    made = prepare_store(edges, nodes, reading, out=out, force=force, announce=announce)
    _say(made, made.content_hash[:16])


def _say(graph: StoredGraph, more: str) -> None:
    sizes = f"{graph.num_nodes:,} nodes, {graph.num_edges:,} stored edges, {graph.num_features:,} features"
    classes = graph.manifest.classes
    labels = "" if classes is None else f", labels of {len(classes):,} classes"
    stdout.print(Text(f"{graph.folder}: {sizes}{labels}; {more}"), soft_wrap=True)
