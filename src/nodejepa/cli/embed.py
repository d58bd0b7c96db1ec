"""``nodejepa embed``: from a model to embeddings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from nodejepa.cli.catalogue import DataRoot, DatasetNameIfAny, Device
from nodejepa.cli.reading_options import MemoryLimit, NodeFile, options_given, reads_files
from nodejepa.cli.screen import in_options, say, stderr

if TYPE_CHECKING:
    from nodejepa.diagnostics import Diagnostics

EMBED_EXAMPLES = (
    "Examples:\n\n"
    "nodejepa embed runs/digits digits --out z.parquet\n\n"
    "nodejepa embed z.run --edges new_edges.parquet --nodes new_nodes.parquet --out z2.parquet"
)


# How features are read is written in the run: only ids and edges are new
_EDGES = ("source", "target", "weight", "no_weight", "bipartite")
_FILES = ("id_column", "unknown_ids", "header", "delimiter")


@reads_files(only=(*_EDGES, *_FILES))
def embed(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="A folder that `nodejepa pretrain` or `embed-graph` wrote."),
    ],
    dataset: DatasetNameIfAny = None,
    *,
    out: Annotated[Path, typer.Option(help="File for the embeddings: .parquet (with node ids) or .npy.")],
    edges: Annotated[
        Path | None,
        typer.Option(help="Instead of DATASET: the edges of your own graph, new nodes included."),
    ] = None,
    nodes: NodeFile = None,
    reading: Any = None,  # the options of reading, see reads_files
    force: Annotated[
        bool, typer.Option("--force", help="Replace --out, and take away a manifest that told of it.")
    ] = False,
    device: Device = "auto",
    memory_limit: MemoryLimit = None,
    data_root: DataRoot = None,
) -> None:
    """Apply a trained encoder to a named graph, or to files of a graph it has never seen."""
    if (dataset is None) == (edges is None):
        raise typer.BadParameter(
            "Give either the name of a data set or --edges of your own graph"
            + (", not both." if dataset is not None else ".")
        )
    if edges is None:
        for option in [*(["--nodes"] if nodes else []), *options_given(reading)]:
            raise typer.BadParameter(f"{option} belongs to --edges, not to a data set.")
        from nodejepa.tables import StoredGraph

        if StoredGraph.is_at(dataset):
            from nodejepa.workflow.apply import embed_store

            graph = StoredGraph(str(dataset))
            shape, found = embed_store(run, graph, out, force=force, memory_limit=memory_limit)
            _say_written(shape, out, found)
        else:
            _embed_dataset(run, str(dataset), out, device, data_root, force)
        return
    from nodejepa.workflow import apply_run

    applied = apply_run(
        run, edges, nodes, reading, out=out, device=device, force=force, memory_limit=memory_limit
    )
    for note in applied.notes:
        say(f"- {in_options(note)}", to=stderr)
    _say_written(applied.embeddings.shape, out, applied.diagnostics)


def _embed_dataset(
    run: Path, dataset: str, out: Path, device: str, data_root: Path | None, force: bool
) -> None:
    from nodejepa.data import load_dataset
    from nodejepa.diagnostics import diagnose
    from nodejepa.files import output_owned
    from nodejepa.methods import load_method
    from nodejepa.tables.embeddings import check_ending, write_embeddings
    from nodejepa.tables.inputs import refuse_other_kind
    from nodejepa.workflow.places import drop_manifest, refuse_losing

    check_ending(out)  # before the work
    begins, columns = (b"\x93NUMPY", ()) if out.suffix == ".npy" else (b"PAR1", ("id", "z0"))
    refuse_other_kind(out, begins, columns, force=force)
    refuse_losing(out, force=force, manifest_only=True)
    estimator = load_method(run, device=device)
    graph = load_dataset(dataset, data_root).graph
    embeddings = estimator.transform(graph)
    with output_owned(out):
        refuse_losing(out, force=force, manifest_only=True)  # again: the work took its time
        drop_manifest(out)
        write_embeddings(out, graph, embeddings)
    _say_written(embeddings.shape, out, diagnose(embeddings))


def _say_written(shape: tuple[int, ...], out: Path, found: Diagnostics) -> None:
    say(f"{shape[0]:,} nodes x {shape[1]} -> {out}")
    stderr.print(Text(f"Embeddings: {found.verdict}"))
