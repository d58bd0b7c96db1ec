"""``nodejepa prepare``: files that may be larger than memory to a graph on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from nodejepa.cli.reading_options import (
    Bipartite,
    Delimiter,
    Directed,
    Drop,
    FreeText,
    Header,
    IdColumn,
    Infinite,
    Missing,
    NodeFile,
    NoWeight,
    Scaling,
    SourceColumn,
    TargetColumn,
    UnknownIds,
    WeightColumn,
    delimiter_choice,
    weight_choice,
)
from nodejepa.cli.screen import in_options, stderr, stdout

if TYPE_CHECKING:
    from nodejepa.store import StoredGraph

PREPARE_EXAMPLES = (
    "Examples:\n\n"
    "nodejepa prepare --edges edges.parquet --nodes nodes.parquet --out graph.store\n\n"
    "nodejepa pretrain graph.store --method linear-jepa --out run\n\n"
    "nodejepa pretrain graph.store --method nodejepa --set parts=100 --set parts_per_step=5 "
    "--set descriptors=pagerank,degree,clustering --out trained\n\n"
    "nodejepa embed run graph.store --out z.parquet\n\n"
    "nodejepa prepare --verify graph.store"
)


def prepare(
    edges: Annotated[
        Path | None, typer.Option(help="Edges, a row each: as in embed-graph.", metavar="FILE")
    ] = None,
    nodes: NodeFile = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the store: there when it is whole.")] = None,
    verify: Annotated[
        Path | None, typer.Option(help="Instead: read a store and compare its checksums.", metavar="STORE")
    ] = None,
    source: SourceColumn = None,
    target: TargetColumn = None,
    weight: WeightColumn = None,
    no_weight: NoWeight = False,
    id_column: IdColumn = None,
    drop: Drop = None,
    directed: Directed = False,
    text: FreeText = "refuse",
    missing: Missing = "fill",
    infinite: Infinite = "refuse",
    scale: Scaling = "auto",
    unknown_ids: UnknownIds = "add",
    bipartite: Bipartite = None,
    header: Header = None,
    delimiter: Delimiter = None,
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
    from nodejepa.io import ReadingOptions
    from nodejepa.store.prepare import prepare_store

    reading = ReadingOptions(
        source=source,
        target=target,
        weight=weight_choice(weight, no_weight),
        id_column=id_column,
        drop=tuple(drop or ()),
        directed=directed,
        text=text,
        missing=missing,
        infinite=infinite,
        scale=scale,
        unknown_ids=unknown_ids,
        bipartite=bipartite,
        header=header,
        delimiter=delimiter_choice(delimiter),
    )
    made = prepare_store(edges, nodes, reading, out=out, force=force)
    for note in [*made.manifest.report["notes"], *made.manifest.report["warnings"]]:
        stderr.print(Text(f"- {in_options(note)}"), soft_wrap=True)
    _say(made, made.content_hash[:16])


def _say(graph: StoredGraph, more: str) -> None:
    sizes = f"{graph.num_nodes:,} nodes, {graph.num_edges:,} stored edges, {graph.num_features:,} features"
    stdout.print(Text(f"{graph.folder}: {sizes}; {more}"), soft_wrap=True)
